"""A publisher that knows the truth, a network that loses what it may, a consumer that must not lie.

The view equals the truth at one number of one life of the worker, or is declared lost; and when all
is quiet, a view that is called live is the truth of now. The publisher is ours, or vLLM's of two
ages; its replies may be lost on the way (vLLM's ROUTER drops), its ring is short, it falls silent.
"""

import os
from collections import Counter, deque

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from zerohop.serving.kv.blocks import PresentBlocks
from zerohop.serving.kv.deliveries import Applied, Health, HealthChanged, Lost, Restarted, Snapshot
from zerohop.serving.kv.encode import BatchEncoder
from zerohop.serving.kv.events import AllBlocksCleared, BlockRemoved, BlockStored
from zerohop.serving.kv.follower import KvFollower
from zerohop.serving.kv.questions import OrderOptions
from zerohop.serving.kv.replies import (
    answer_replay,
    answer_snapshot,
    parse_request,
    seq_octets,
)
from zerohop.serving.kv.ring import ReplayRing

HASHES = st.integers(1, 5)
EVENTS = st.one_of(
    st.builds(lambda h: BlockStored([h], None, [h], 1, None, "GPU", None), HASHES),
    st.builds(lambda h: BlockStored([h], None, [h], 1, None, "CPU", None), HASHES),
    st.builds(lambda h: BlockRemoved([h], "GPU"), HASHES),
    st.builds(AllBlocksCleared),
)
SOAK = float(os.environ.get("SOAK", "0"))  # seconds, about
EXAMPLES = 100 + int(60 * SOAK)
encode = BatchEncoder().encode_events


class Life:
    """One life of the worker: its batches, and what was present after each of them."""

    def __init__(self, number, ring):
        self.incarnation = bytes([number + 1]) * 16
        self.ring = ReplayRing(ring)
        self.blocks = PresentBlocks()
        self.truths = [{}]  # before batch 0, before batch 1, ...

    def step(self, events, ts):
        self.blocks.apply(events, 0)
        self.truths.append(self.blocks.copies())
        return encode(ts, events, 0)


class KvMachine(RuleBasedStateMachine):
    """Rules are what engines and networks do; the driver part is what a subscriber does."""

    @initialize(
        make=st.sampled_from(["ours", "vllm", "old vllm", "no replay"]),
        ring=st.sampled_from([2, 5, 100]),
        held=st.sampled_from([2, 100]),
        late_start=st.lists(st.lists(EVENTS, max_size=2), max_size=4),
    )
    def begin(self, make, ring, held, late_start):
        self.make, self.ring = make, ring
        self.ts = 0.0
        self.lives = [Life(0, ring)]
        self.up = False  # SUB's connection
        self.subscribed = False  # whether the publisher has heard so on this connection
        self.wire = deque()  # from PUB to SUB; None is a new connection
        self.channels = {}  # a DEALER for each question: unserved frames, replies
        self.silent = False
        self.view = PresentBlocks()
        self.health = Health.CATCHING_UP
        self.now = 0.0
        self.poisoned = False
        self.applied = []
        options = OrderOptions(replay=make != "no replay", max_held=held, check=None)
        self.follower = KvFollower("w", options)
        for events in late_start:
            self.publish(events, "sent")
        self.drive(self.follower.start(self.now))

    # ---- what engines and networks do ----

    @rule(
        events=st.lists(EVENTS, max_size=3),
        fate=st.sampled_from(["sent"] * 5 + ["dropped", "never encoded"]),
    )
    def publish(self, events, fate):
        life = self.lives[-1]
        self.ts += 1.0
        seq = len(life.truths) - 1
        payload = life.step(events, self.ts)
        if fate == "never encoded" and self.make == "ours":
            return
        life.ring.append(seq, payload)
        if self.subscribed and fate == "sent":
            self.wire.append([b"t", seq_octets(seq), payload])

    @rule()
    def publish_what_nobody_can_read(self):
        life = self.lives[-1]
        self.ts += 1.0
        self.poisoned = True
        seq = len(life.truths) - 1
        life.step([], self.ts)
        payload = b"\xc1" + str(self.ts).encode()
        life.ring.append(seq, payload)
        if self.subscribed:
            self.wire.append([b"t", seq_octets(seq), payload])

    @rule(kept=st.integers(0, 3))
    def restart(self, kept):
        self.lives.append(Life(len(self.lives), self.ring))
        self.up = self.subscribed = False
        self.poisoned = False
        for channel in self.channels.values():
            del channel["replies"][kept:]

    @rule()
    def lose_connection(self):
        self.up = self.subscribed = False

    @precondition(lambda self: not self.up)
    @rule()
    def connect(self):
        self.up = True
        self.wire.append(None)

    @precondition(lambda self: self.up)
    @rule()
    def subscription_arrives(self):
        self.subscribed = True

    @precondition(lambda self: self.make in ("vllm", "old vllm"))
    @rule(silent=st.booleans())
    def fall_silent_or_speak(self, silent):
        self.silent = silent

    @precondition(lambda self: any(c["request"] for c in self.channels.values()))
    @rule()
    def answer(self):
        for channel in self.channels.values():
            if channel["request"] and not self.silent:
                channel["replies"] += self.replies(channel["request"])
                channel["request"] = None

    @precondition(lambda self: self.make != "ours" and self.channels)
    @rule(data=st.data())
    def drop_a_reply(self, data):
        channel = data.draw(st.sampled_from(list(self.channels.values())))
        if channel["replies"]:
            del channel["replies"][data.draw(st.integers(0, len(channel["replies"]) - 1))]

    # ---- what a subscriber does ----

    @precondition(lambda self: self.wire)
    @rule(count=st.integers(1, 4))
    def receive_live(self, count):
        for _ in range(min(count, len(self.wire))):
            frames = self.wire.popleft()
            if frames is None:
                self.drive(self.follower.connected(self.now))
            else:
                self.drive(self.follower.receive_live(frames, self.now))

    @precondition(lambda self: any(c["replies"] for c in self.channels.values()))
    @rule(count=st.integers(1, 6))
    def receive_reply(self, count):
        for _ in range(count):
            waiting = [i for i, c in self.channels.items() if c["replies"]]
            if waiting:
                frames = self.channels[waiting[0]]["replies"].pop(0)
                self.drive(self.follower.receive_reply(waiting[0], frames, self.now))

    @precondition(lambda self: self.follower.next_deadline() is not None)
    @rule()
    def time_passes(self):
        self.now = max(self.now, self.follower.next_deadline())
        self.drive(self.follower.handle_deadline(self.now))

    @rule()
    def everything_comes_to_rest(self):
        self.silent = False
        if not self.up:
            self.connect()
        self.subscription_arrives()
        self.publish([], "sent")  # what was dropped shows with the next number
        self.rest()
        if self.health is Health.LIVE:
            assert self.view.copies() == self.lives[-1].truths[-1]
        if self.make == "ours" and not self.poisoned:
            assert self.health is Health.LIVE

    def rest(self):
        for _ in range(200):
            while self.wire:
                self.receive_live(1)
            self.answer()
            if any(c["replies"] for c in self.channels.values()):
                self.receive_reply(6)
            elif self.follower.next_deadline() is not None:
                self.time_passes()
            else:
                return
        raise AssertionError("it goes round in circles")

    # ---- machinery ----

    def replies(self, frames):
        life = self.lives[-1]
        octets = frames[-1]
        if self.make == "ours":
            request = parse_request(frames)
            next_seq = len(life.truths) - 1
            if request.ask == "snapshot":
                payloads = [encode(b.ts, b.events, b.dp_rank) for b in life.blocks.snapshot(0.5, 2)]
                return list(answer_snapshot(request, payloads, next_seq, life.incarnation, b"t"))
            replay = life.ring.replay(request.start)
            return list(answer_replay(request, replay, life.incarnation, b"t"))
        batches = life.ring.replay(int.from_bytes(octets, "big")).batches
        between = [b"t"] if self.make == "vllm" else []
        made = [[b"", *between, seq_octets(seq), payload] for seq, payload in batches]
        return [*made, [b"", *between[:0], *([b""] * len(between)), b"\xff" * 8, b""]]

    def drive(self, deliveries):
        for each in deliveries:
            self.view.deliver(each)
            match each:
                case HealthChanged(health=health):
                    self.health = health
                case Applied(seq=seq):
                    assert self.applied == [] or seq > self.applied[-1]
                    self.applied.append(seq)
                case Restarted() | Lost() | Snapshot():
                    self.applied = []
        asks = {ask.id: ask for ask in self.follower.asks}
        for gone in self.channels.keys() - asks.keys():
            del self.channels[gone]
        for new in asks.keys() - self.channels.keys():
            self.channels[new] = {"request": asks[new].frames, "replies": []}

    @invariant()
    def the_view_is_the_truth_of_some_moment_or_declared_lost(self):
        view = self.view.copies()
        truths = [truth for life in self.lives for truth in life.truths]
        if self.health is not Health.LOST:
            assert view in truths
        else:
            assert any(covers(truth, view) for truth in truths)

    @invariant()
    def a_view_that_is_whole_has_the_number_that_it_says(self):
        if self.health is not Health.LOST:
            next_seq = self.follower._orders[0].next_seq
            view = self.view.copies()
            at = [life.truths[next_seq] for life in self.lives if next_seq < len(life.truths)]
            assert view in at


def covers(truth, view):
    return all(
        not Counter(blocks) - Counter(truth.get(place, {})) for place, blocks in view.items()
    )


@pytest.mark.timeout(60 + 3 * SOAK)
def test_the_view_is_the_truth_or_declared_lost():
    run_state_machine_as_test(
        KvMachine, settings=settings(max_examples=EXAMPLES, stateful_step_count=40, deadline=None)
    )
