"""A dialled connection that is cut anywhere loses nothing that was not wholly written.

Two streams run through one connection after another, octet by octet: out of the socket, through a
kernel that takes what it likes, and back. Whenever it is cut, what the kernel had is gone.
"""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.core.kit import Network, Remote
from zerohop.errors import Again

octets = st.one_of(st.integers(1, 30), st.integers(1, 2000))


class Reader:
    """Tells which messages are whole in the octets so far."""

    def __init__(self):
        self.remote = Remote("DEALER")

    def hear(self, octets):
        self.remote.hear(octets, 0.0)
        return [number_of(message) for message in self.remote.taken()]


def number_of(message):
    return int((message[0] if isinstance(message, list) else message)[:6])


class ReconnectMachine(RuleBasedStateMachine):
    @initialize(hwm=st.sampled_from([1, 2, 3, 5, 0]), batch=st.sampled_from([1, 3, 128]))
    def begin(self, hwm, batch):
        self.hwm, self.batch = hwm, batch
        self.net = Network("DEALER", sndhwm=hwm, rcvhwm=hwm, reconnect_ivl=0.1)
        self.dialer = self.net.connect()
        self.peer = self.dialer.peer
        self.most = hwm  # that the pipe may hold: more only after a batch came back
        self.sent = []  # by the application
        self.written = []  # wholly taken by a kernel
        self.said = 0  # by the peers
        self.heard = []  # by the core: whole messages of the peers that came through
        self.got = []  # by the application
        self.link = None
        self.settle()
        self.dial(shaken=True)

    # What the driver would do

    def settle(self):
        links = self.net.links
        self.net.core.settle()
        if any(peer.link is self.link for peer in links.to_flush) or self.link in links.to_write:
            self.noted = True
        for notes in (links.to_flush, links.to_write, links.to_resume):
            notes.clear()
        assert not links.to_close  # the peer does nothing wrong

    def write(self, size):
        """The kernel takes up to so many octets."""
        if not self.noted:
            return
        taken = self.net.takes(self.link, size)
        self.written += self.by_kernel.hear(taken)
        self.kernel += taken
        empty = len(taken) < size
        if empty and (not self.link.handshaken or self.link.peer.outbound.sleep()):
            self.noted = False
        self.settle()

    def deliver(self, size):
        """Octets of the kernel arrive at the peer, which answers what must be answered."""
        arrived, self.kernel = self.kernel[:size], self.kernel[size:]
        before = len(self.remote.said)
        self.remote.hear(arrived, 0.0)
        self.back += self.remote.said[before:]

    def answer(self, size):
        """Octets of the peer arrive at the core."""
        arrived, self.back = bytes(self.back[:size]), self.back[size:]
        if arrived and not (self.link.handshaken and self.peer.inbound.full):
            self.heard += self.by_core.hear(arrived)
            self.net.links.receive_data(self.link, arrived, self.net.now)
            self.settle()
        else:
            self.back = arrived + self.back

    # Rules

    @rule(count=st.integers(1, 5), size=st.integers(6, 40), parts=st.integers(1, 3))
    def send(self, count, size, parts):
        for _ in range(count):
            self.send_one(size, parts)
        self.settle()

    def send_one(self, size, parts):
        body = b"%06d" % len(self.sent)
        message = body.ljust(size, b".") if parts == 1 else [body, *[b"part"] * (parts - 1)]
        was_full = self.peer.outbound.full
        try:
            self.net.core.send(message)
        except Again:
            assert was_full
        else:
            assert not was_full
            self.sent.append(len(self.sent))

    @precondition(lambda self: self.net.links.to_dial)
    @rule(shaken=st.sampled_from([True, True, False]))
    def dial(self, shaken):
        """There is a connection; perhaps the handshake is done at once."""
        self.link = self.net.dial()
        self.link.batch = self.batch
        self.remote = Remote("DEALER")
        self.by_kernel, self.by_core = Reader(), Reader()
        self.kernel, self.back, self.noted = b"", bytes(self.remote.said), True
        self.settle()
        while shaken and not self.link.handshaken:
            self.write(64)
            self.deliver(1000)
            self.answer(1000)

    @precondition(lambda self: self.net.links.to_dial)
    @rule()
    def refuse(self):
        self.net.refuse()

    @precondition(lambda self: not self.link)
    @rule(seconds=st.sampled_from([0.05, 0.5, 0.5]))
    def wait(self, seconds):
        self.net.now += seconds
        self.net.links.handle_deadline(self.net.now)
        self.settle()

    @precondition(lambda self: self.link)
    @rule(size=octets)
    def some_octets_are_written(self, size):
        self.write(size)

    @precondition(lambda self: self.link)
    @rule(size=octets)
    def some_octets_arrive(self, size):
        self.deliver(size)

    @precondition(lambda self: self.link)
    @rule(size=octets)
    def some_octets_come_back(self, size):
        self.answer(size)

    @precondition(lambda self: self.link and self.remote.handshaken)
    @rule(size=st.integers(6, 300))
    def the_peer_says_something(self, size):
        before = len(self.remote.said)
        self.remote.say((b"%06d" % self.said).ljust(size, b"."))
        self.said += 1
        self.back += self.remote.said[before:]

    @rule()
    def receive(self):
        try:
            self.got.append(number_of(self.net.core.receive()))
        except Again:
            assert self.got == self.heard
        self.settle()

    @precondition(lambda self: self.link and self.link.handshaken and self.noted)
    @rule(messages=st.integers(0, 3), octets=st.sampled_from([0, 0, 1, 7]), cut=st.booleans())
    def some_messages_are_written(self, messages, octets, cut):
        """So many whole messages and perhaps a little of the next; perhaps it breaks there."""
        self.net.links.output(self.link)
        self.settle()
        sizes = map(self.link.connection.encoded_size, self.link.sending[:messages])
        size = self.link.control_size + sum(sizes) + octets - self.link.written
        if size > 0:
            self.write(size)
        if cut:
            self.cut()

    @precondition(lambda self: self.link)
    @rule()
    def cut(self):
        link, self.link = self.link, None
        self.net.links.lost(link, None, self.net.now)
        self.most = max(self.hwm, len(self.peer.outbound))
        self.settle()

    @rule()
    def it_holds(self):
        """A connection that holds for long enough brings everything across."""
        if self.link is None:
            self.wait(0.5)
            self.dial(shaken=False)
        for _ in range(len(self.sent) + self.said + 20):
            self.write(10_000)
            self.deliver(10_000)
            self.answer(10_000)
            self.receive()
        assert not self.noted
        assert len(self.kernel) == len(self.back) == 0
        assert self.written == self.sent
        assert self.net.core.pattern.can_send_now()
        assert self.got == self.heard

    # Promises

    @invariant()
    def what_was_written_is_what_was_sent_in_order_and_once(self):
        assert self.written == self.sent[: len(self.written)]

    @invariant()
    def nothing_is_lost_on_the_way_to_the_kernel(self):
        in_flight = len(self.link.sending) if self.link else 0
        waiting = len(self.peer.outbound) + in_flight
        assert len(self.sent) - waiting <= len(self.written)

    @invariant()
    def what_is_received_is_what_came_through_in_order_and_once(self):
        assert self.got == self.heard[: len(self.got)]
        assert self.heard == sorted(set(self.heard))

    @invariant()
    def never_over_the_high_water_mark_but_for_what_came_back(self):
        if self.hwm:
            assert len(self.peer.outbound) <= self.most
            self.most = max(self.hwm, min(self.most, len(self.peer.outbound)))

    @invariant()
    def a_sender_is_stopped_only_by_a_full_pipe(self):
        if not len(self.peer.outbound):
            assert self.net.core.pattern.can_send_now()


TestReconnect = ReconnectMachine.TestCase
TestReconnect.settings = settings(max_examples=200, stateful_step_count=50, deadline=None)
