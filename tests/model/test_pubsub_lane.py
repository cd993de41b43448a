"""What is sent on a publisher's lane arrives as if it had been routed when it was sent."""

from collections import Counter

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.patterns.world import make, new_peer
from zerohop.errors import Again
from zerohop.patterns.pattern import HWM_REACHED

PEERS = 3
peers = st.integers(0, PEERS - 1)
topics = st.sampled_from([b"", b"a", b"ab", b"b", b"abc"])
messages = st.sampled_from([b"", b"a", b"ab", b"abcd", b"b", b"c", [b"a", b"b"], [b"c", b"a"]])


class LaneMachine(RuleBasedStateMachine):
    """One XPUB, and peers over the network whose connections take messages now and then.

    The model routes each message at once. It may do so since no peer's pipe is emptied between a
    send on the lane and its being handed out: the driver hands out before it writes.
    """

    @initialize(hwm=st.sampled_from([0, 1, 9, 12]), nodrop=st.booleans())
    def make(self, hwm, nodrop):
        self.hwm = hwm
        self.xpub = make("XPUB", xpub_nodrop=nodrop)
        self.peers = [None] * PEERS
        self.wanted = [set() for _ in range(PEERS)]
        self.expected = [[] for _ in range(PEERS)]
        self.full = [False] * PEERS
        self.dropped = [Counter() for _ in range(PEERS)]
        self.before = [0] * PEERS  # what was queued when the limit was changed

    def wants(self, p, message):
        first = message[0] if isinstance(message, list) else message
        return self.peers[p] is not None and any(first.startswith(t) for t in self.wanted[p])

    def route(self, message):
        for p in range(PEERS):
            if not self.wants(p, message):
                continue
            if self.full[p]:
                self.dropped[p][HWM_REACHED] += 1
            else:
                self.expected[p].append(message)
                self.full[p] = 0 < self.peers[p].outbound.hwm <= len(self.expected[p])

    @rule(p=peers, topic=topics)
    def come_or_go(self, p, topic):
        if self.peers[p] is None:
            self.peers[p] = new_peer(hwm=self.hwm)
            self.xpub.attach(self.peers[p])
            self.xpub.connected(self.peers[p])
            self.expected[p], self.full[p], self.dropped[p] = [], False, Counter()
            self.before[p], self.wanted[p] = 0, set()
            self.subscribe(p, topic, True)
        else:
            gone = self.peers[p]
            self.xpub.detach(gone)
            assert list(gone.outbound.messages) == self.expected[p]
            self.peers[p] = None

    @rule(p=peers, topic=topics, subscribe=st.booleans())
    def subscribe(self, p, topic, subscribe):
        if self.peers[p] is not None:
            self.xpub.subscription(self.peers[p], topic, subscribe=subscribe)
            (self.wanted[p].add if subscribe else self.wanted[p].discard)(topic)

    @rule(message=messages, count=st.integers(1, 20))
    def send_on_the_lane(self, message, count):
        """As drivers do: append while it is not full, and leave a note if the reader sleeps."""
        for _ in range(count):
            lane = self.xpub.send_lane
            if lane is None or lane.full:
                return
            lane.messages.append(message)
            if 0 < lane.hwm <= len(lane.messages):
                lane.mark_full()
            if lane.asleep:
                lane.reader_signals.append(lane.reader)
                lane.asleep = False
            self.route(message)

    @rule(message=messages)
    def send_past_the_lane(self, message):
        stopped = [p for p in range(PEERS) if self.wants(p, message) and self.full[p]]
        refused = False
        try:
            self.xpub.send(message)
        except Again:
            refused = True
        assert refused == bool(self.xpub.options.xpub_nodrop and stopped)
        if not refused:
            self.route(message)

    @rule()
    def hand_out(self):
        self.xpub.hand_out()
        assert not self.xpub._handout.lane.messages

    @rule(p=peers, count=st.integers(1, 30))
    def write(self, p, count):
        """A connection takes messages from its pipe; when half is drained there is room again."""
        self.xpub.hand_out()
        if self.peers[p] is None:
            return
        pipe = self.peers[p].outbound
        for _ in range(min(count, len(self.expected[p]))):
            assert pipe.pop() == self.expected[p].pop(0)
        self.full[p] = pipe.full
        if pipe.writer_signals:
            pipe.writer_signals.clear()
            self.xpub.writable(self.peers[p])
        self.xpub.hand_out()

    @precondition(lambda self: not any(self.full))
    @rule(nodrop=st.booleans(), invert=st.booleans())
    def set_options(self, nodrop, invert):
        self.xpub.hand_out()
        self.xpub.options.xpub_nodrop = nodrop
        self.xpub.options.invert_matching = invert
        self.xpub.hand_out()
        assert (self.xpub.send_lane is None) >= invert
        self.xpub.options.invert_matching = False
        self.xpub.hand_out()

    @rule(hwm=st.sampled_from([0, 1, 9, 12]))
    def change_the_limit(self, hwm):
        self.xpub.hand_out()
        self.hwm = hwm
        for p, peer in enumerate(self.peers):
            if peer is not None:
                peer.outbound.set_hwm(hwm)
                self.before[p] = len(peer.outbound)
                self.full[p] = peer.outbound.full
                if peer.outbound.writer_signals:
                    peer.outbound.writer_signals.clear()
                    self.xpub.writable(peer)
        self.xpub.limits_changed()
        self.xpub.hand_out()

    @invariant()
    def what_was_handed_out_is_the_beginning_of_what_was_sent(self):
        for p, peer in enumerate(self.peers):
            if peer is not None:
                handed = list(peer.outbound.messages)
                assert handed == self.expected[p][: len(handed)]
                if not self.xpub._handout.lane.messages:
                    assert handed == self.expected[p]
                    assert peer.outbound.full == self.full[p]
                    assert peer.dropped == self.dropped[p]

    @invariant()
    def never_over_the_high_water_mark(self):
        for p, peer in enumerate(self.peers):
            if peer is not None and self.hwm:
                assert len(peer.outbound) <= max(self.hwm, self.before[p])

    @invariant()
    def a_note_is_there_while_the_lane_has_messages(self):
        lane = self.xpub._handout.lane
        assert not lane.messages or (lane.reader_signals and not lane.asleep)


TestLane = LaneMachine.TestCase
TestLane.settings = settings(max_examples=150, stateful_step_count=60, deadline=None)
