"""The numbers of one worker: each row of the table on the page about KV events, and each proof.

A batch of life "a" with number 3 is written "a3": its payload, and its time, tell it from others.
"""

from itertools import count

import pytest

from zerohop.serving.errors import Malformed
from zerohop.serving.kv.deliveries import (
    Applied,
    Health,
    HealthChanged,
    Lost,
    Restarted,
    Snapshot,
    Undecodable,
)
from zerohop.serving.kv.events import AllBlocksCleared, EventBatch
from zerohop.serving.kv.order import Order
from zerohop.serving.kv.questions import Item, OrderOptions
from zerohop.serving.kv.replies import Head, parse_request

LIFE, OTHER = b"a" * 16, b"b" * 16


class Consumer:
    """An order, and in short words what it delivers and asks."""

    def __init__(self, **options):
        self.options = OrderOptions(**{"check": None, **options})
        self.order = Order("w", count(), self.options)
        self.now = 0.0

    def item(self, name, live):
        batch = EventBatch(float(name[1:]), [AllBlocksCleared()] if name[0] == "c" else [], 0)
        if name[0] == "!":
            batch = Malformed(name.encode(), "why")
        return Item(int(name[1:]), name.encode(), batch, live)

    def start(self):
        return words(self.order.start(self.now))

    def connected(self):
        return words(self.order.connected(self.now))

    def live(self, *names):
        return [w for n in names for w in words(self.order.live(self.item(n, True), self.now))]

    def replied(self, *names):
        ask = self.order.ask.id
        return [
            word
            for name in names
            for word in words(self.order.replied(ask, self.item(name, False), self.now))
        ]

    def head(self, incarnation=LIFE, oldest=0, next=0, too_old=False):
        head = Head(1, 0, incarnation, oldest, next, too_old)
        return words(self.order.head(self.order.ask.id, head, self.now))

    def end(self):
        return words(self.order.end(self.order.ask.id, self.now))

    def answered(self, *names):
        """A whole answer in vLLM's form."""
        return self.replied(*names) + self.end()

    def waits(self, seconds=0.0):
        self.now = self.order.next_deadline() + seconds
        return words(self.order.handle_deadline(self.now))

    @property
    def asks(self):
        ask = self.order.ask
        if ask is None:
            return None
        request = parse_request(ask.frames)
        form = "vllm" if request.id is None else "ours"
        return (request.ask, request.start, form) if request.ask == "replay" else request.ask


def words(deliveries):
    found = []
    for each in deliveries:
        assert each.worker == "w"
        match each:
            case Applied(seq=seq):
                found.append(seq)
            case Restarted():
                found.append("restarted")
            case Lost():
                found.append("lost")
            case Snapshot(next_seq=next_seq):
                found.append(f"snapshot to {next_seq}")
            case HealthChanged(health=health):
                found.append(f"({health.value})")
            case Undecodable(seq=seq):
                found.append(f"undecodable {seq}")
    return found


def of_vllm(*names):
    """A consumer of a publisher that is known to speak vLLM's form, and has these batches."""
    consumer = Consumer()
    consumer.connected()
    consumer.end()  # no head: it is not ours
    consumer.answered(*names)
    assert consumer.asks is None
    return consumer


def live_with_vllm(*names):
    """And the live stream is joined."""
    consumer = of_vllm(*names[:-1])
    consumer.live(names[-1])
    if consumer.asks:
        consumer.answered(*names[-2:])
    assert consumer.order.health is Health.LIVE
    return consumer


def of_ours(*names, **options):
    consumer = Consumer(**options)
    consumer.connected()
    consumer.head(next=len(names))
    consumer.replied(*names)
    consumer.end()
    assert consumer.order.health is Health.LIVE
    return consumer


# ---- the beginning ----


def test_what_was_before_is_asked_for_at_once():
    consumer = Consumer()
    assert consumer.start() == []
    assert consumer.order.health is Health.CATCHING_UP
    assert consumer.asks == ("replay", 0, "ours")


def test_a_publisher_that_does_not_know_our_form_is_asked_in_vllms():
    consumer = Consumer()
    consumer.connected()
    assert consumer.end() == []
    assert consumer.asks == ("replay", 0, "vllm")
    assert consumer.answered("a0", "a1") == [0, 1, "(live)"]
    assert consumer.asks is None


def test_who_is_answered_but_has_never_been_connected_does_not_hear_what_is_new():
    consumer = Consumer()
    consumer.start()
    consumer.head(next=1)
    assert consumer.replied("a0") + consumer.end() == [0]
    assert consumer.order.health is Health.CATCHING_UP
    assert consumer.connected() == []
    consumer.head(next=2)
    assert consumer.replied("a0", "a1") + consumer.end() == [1, "(live)"]


def test_a_publisher_of_ours_that_has_nothing_yet_is_live():
    consumer = Consumer()
    consumer.connected()
    assert consumer.head(next=0) == []
    assert consumer.end() == ["(live)"]


def test_of_another_make_nothing_may_also_mean_that_it_keeps_nothing():
    consumer = of_vllm()
    assert consumer.order.health is Health.CATCHING_UP
    assert consumer.live("a0", "a1") == [0, "(live)", 1]


def test_a_late_start_is_completed_by_a_replay():
    consumer = Consumer()
    consumer.connected()
    consumer.end()
    assert consumer.live("a2") == []
    assert consumer.answered("a0", "a1", "a2") == [0, 1, 2, "(live)"]


def test_a_late_start_that_vllm_can_not_complete_is_lost_from_there_on():
    consumer = Consumer()
    consumer.connected()
    consumer.end()
    assert consumer.answered("a5", "a6") == ["lost", 5, "(lost)", 6]
    assert consumer.order.next_seq == 7


def test_without_a_replay_socket_a_first_number_0_is_live_and_another_is_lost():
    consumer = Consumer(replay=False)
    assert consumer.start() + consumer.connected() == []
    assert consumer.live("a0", "a1") == [0, "(live)", 1]
    consumer = Consumer(replay=False)
    consumer.connected()
    assert consumer.live("a5", "a6") == ["lost", 5, "(lost)", 6]


def test_numbers_may_begin_at_1():
    consumer = Consumer(replay=False, first=1)
    assert consumer.live("a1", "a2") == [1, "(live)", 2]


def test_to_start_twice_asks_once():
    consumer = Consumer()
    consumer.start()
    ask = consumer.order.ask
    consumer.start()
    assert consumer.order.ask is ask


# ---- in order, and gaps ----


def test_numbers_in_order_are_applied_at_once():
    consumer = live_with_vllm("a0", "a1")
    assert consumer.live("a2", "a3") == [2, 3]


def test_a_gap_is_asked_for_from_the_last_applied_batch_on():
    consumer = live_with_vllm("a0", "a1")
    assert consumer.live("a4") == ["(catching up)"]
    assert consumer.asks == ("replay", 1, "vllm")
    assert consumer.live("a5") == []
    assert consumer.replied("a1", "a2") == [2]
    assert consumer.replied("a3") == [3, 4, 5]
    assert consumer.answered("a4", "a5") == ["(live)"]


def test_without_a_replay_socket_a_gap_is_lost_and_it_goes_on_from_there():
    consumer = Consumer(replay=False)
    consumer.live("a0")
    assert consumer.live("a2", "a3") == ["lost", 2, "(lost)", 3]
    assert consumer.live("c4") == [4, "(live)"]


def test_no_batch_is_applied_twice():
    consumer = live_with_vllm("a0", "a1")
    consumer.live("a3")
    assert consumer.answered("a1", "a2", "a3") == [2, 3, "(live)"]
    assert consumer.live("a4") == [4]


def test_some_publishers_give_more_than_they_were_asked_for():
    consumer = live_with_vllm("a0", "a1")
    consumer.live("a3")
    assert consumer.answered("a0", "a1", "a2", "a3") == [2, 3, "(live)"]


def test_a_replay_that_lost_a_batch_is_asked_for_again():
    consumer = live_with_vllm("a0", "a1")
    consumer.live("a4")
    assert consumer.answered("a1", "a3", "a4") == []
    assert consumer.asks == ("replay", 1, "vllm")
    assert consumer.answered("a1", "a2", "a3") == [2, 3, 4, "(live)"]


def test_what_no_replay_brings_is_lost_after_some_questions():
    consumer = live_with_vllm("a0", "a1")
    consumer.live("a3")
    assert consumer.answered("a1", "a3") == consumer.answered("a1", "a3") == []
    assert consumer.answered("a1", "a3") == ["lost", 3, "(lost)"]
    assert consumer.live("a4") == [4]


def test_what_could_not_be_held_is_a_gap_of_its_own():
    consumer = Consumer(max_held=1)
    consumer.connected()
    consumer.end()
    consumer.answered("a0")
    consumer.live("a1")
    consumer.answered("a0", "a1")
    consumer.live("a3", "a4", "a5")  # 4 and 5 are not held
    assert consumer.answered("a1", "a2", "a3") == [2, 3]
    assert consumer.asks == ("replay", 3, "vllm")
    assert consumer.answered("a3", "a4", "a5") == [4, 5, "(live)"]


def test_replies_to_an_old_question_are_ignored():
    consumer = live_with_vllm("a0", "a1")
    consumer.live("a3")
    old = consumer.order.ask.id
    consumer.connected()
    item = consumer.item("a2", False)
    assert consumer.order.replied(old, item, 0.0) == []
    assert consumer.order.head(old, Head(1, 0, OTHER), 0.0) == []
    assert consumer.order.end(old, 0.0) == []
    assert consumer.order.next_seq == 2


def test_live_batches_that_the_replay_has_brought_already_are_late():
    consumer = live_with_vllm("a0", "a1")
    consumer.live("a3")
    assert consumer.answered("a1", "a2", "a3", "a4", "a5") == [2, 3, 4, 5, "(live)"]
    assert consumer.live("a4", "a5", "a6") == [6]


# ---- restarts ----


def test_a_live_number_that_goes_back_is_a_restart():
    consumer = live_with_vllm("a0", "a1", "a2")
    assert consumer.live("b0", "b1") == ["restarted", 0, 1]


def test_a_restart_that_was_joined_late_is_asked_for_from_0():
    consumer = live_with_vllm("a0", "a1", "a2")
    assert consumer.live("b1") == ["restarted", "(catching up)"]
    assert consumer.asks == ("replay", 0, "vllm")
    assert consumer.answered("b0", "b1") == [0, 1, "(live)"]


def test_a_replay_that_begins_with_another_batch_is_a_restart_though_the_numbers_fit():
    consumer = live_with_vllm("a0", "a1")
    assert consumer.connected() == ["(catching up)"]
    consumer.live("b2")
    consumer.end()  # it is asked in our form again: it may be ours now
    assert consumer.asks == ("replay", 1, "vllm")
    assert consumer.replied("b1") == ["restarted"]
    assert consumer.asks == ("replay", 0, "vllm")
    assert consumer.answered("b0", "b1", "b2") == [0, 1, 2, "(live)"]


def test_a_replay_that_has_nothing_is_a_restart():
    consumer = live_with_vllm("a0", "a1")
    consumer.connected()
    consumer.end()
    assert consumer.end() == ["restarted"]
    assert consumer.asks == ("replay", 0, "vllm")
    assert consumer.end() == []
    assert consumer.live("b0") == [0, "(live)"]


def test_another_incarnation_is_a_restart():
    consumer = of_ours("a0", "a1")
    consumer.connected()
    assert consumer.asks == ("replay", 2, "ours")
    assert consumer.head(OTHER, next=5) == ["restarted"]
    assert consumer.asks == ("replay", 0, "ours")
    consumer.head(OTHER, next=1)
    assert consumer.replied("b0") + consumer.end() == [0, "(live)"]


def test_an_incarnation_is_believed_once_the_last_batch_has_proved_it():
    consumer = of_ours("a0")
    assert consumer.live("a0", "a0") == ["restarted", 0]  # what was live is of a life unknown
    consumer.live("a2")
    assert consumer.asks == ("replay", 0, "ours")
    consumer.head(OTHER, next=3)
    assert consumer.replied("a0", "a1", "a2") + consumer.end() == [1, 2, "(live)"]
    consumer.connected()
    assert consumer.asks == ("replay", 3, "ours")
    assert consumer.head(OTHER, next=3) + consumer.end() == ["(live)"]


def test_an_incarnation_that_nothing_proves_any_more_leads_to_a_snapshot():
    consumer = of_ours("a0")
    consumer.live("a0", "a0", "a2")
    assert consumer.head(OTHER, oldest=2, next=3, too_old=True) == []
    assert consumer.asks == "snapshot"


def test_a_publisher_of_another_make_in_its_place_is_a_restart():
    consumer = of_ours("a0")
    consumer.connected()
    assert consumer.end() == ["restarted"]
    assert consumer.asks == ("replay", 0, "vllm")


def test_a_connection_that_was_made_anew_costs_one_question_where_nothing_changed():
    consumer = of_ours("a0", "a1")
    assert consumer.connected() == ["(catching up)"]
    assert consumer.head(next=2) + consumer.end() == ["(live)"]


def test_a_connection_made_anew_without_a_replay_socket_is_lost():
    consumer = Consumer(replay=False)
    consumer.live("a0")
    assert consumer.connected() == ["lost", "(lost)"]
    assert consumer.live("a1", "a2") == [1, 2]
    consumer.connected()
    assert consumer.live("b0", "b1") == [0, "(live)", 1]  # nothing was before it


def test_after_a_new_connection_what_was_held_is_asked_for_again():
    consumer = live_with_vllm("a0", "a1")
    consumer.live("a5")
    consumer.connected()
    consumer.end()
    assert consumer.answered("a1", "a2", "a3", "a4") == [2, 3, 4, "(live)"]


def test_after_a_new_connection_the_live_stream_must_be_joined_again():
    consumer = live_with_vllm("a0", "a1")
    consumer.connected()
    consumer.end()
    assert consumer.answered("a1") == ["(live)"]
    assert consumer.live("a2") == ["(catching up)"]
    assert consumer.answered("a1", "a2") == [2, "(live)"]


# ---- is the live stream of the same life? ----


def test_live_batches_are_held_until_a_replay_brings_one_of_them():
    consumer = of_vllm("a0", "a1")
    assert consumer.live("a2") == ["(catching up)"]
    assert consumer.asks == ("replay", 1, "vllm")
    assert consumer.answered("a1", "a2") == [2, "(live)"]
    assert consumer.live("a3") == [3]


def test_a_late_live_batch_that_was_applied_last_joins_the_stream():
    consumer = of_vllm("a0", "a1")
    assert consumer.live("a0", "a1", "a2") == [2]


def test_a_late_live_batch_that_is_another_than_that_applied_is_a_restart():
    consumer = of_vllm("a0", "a1")
    assert consumer.live("b1") == ["restarted", "(catching up)"]
    assert consumer.asks == ("replay", 0, "vllm")
    assert consumer.answered("b0", "b1") == [0, 1, "(live)"]  # it is the one that was live


def test_live_batches_of_another_life_than_the_replays_are_not_applied():
    consumer = of_vllm("b0", "b1")
    consumer.live("a2")  # left in the queue, from before the restart
    consumer.live("a3")
    assert consumer.answered("b1", "b2") == [2]  # not a2
    assert consumer.asks == ("replay", 2, "vllm")
    assert consumer.answered("b2", "b3") == [3, "(live)"]  # not a3


def test_what_is_held_below_a_batch_that_joins_may_be_of_another_life():
    consumer = of_vllm("b0")
    consumer.live("a1", "b2")
    assert consumer.answered("b0", "b2") == []  # b1 was lost on the way
    assert consumer.answered("b0", "b1", "b2") == [1, 2, "(live)"]


def test_late_numbers_that_nothing_explains_are_asked_about_after_a_while():
    consumer = of_vllm("a0", "a1", "a2")
    assert consumer.live("b0", "b1") == []
    assert consumer.waits() == ["(catching up)"]
    assert consumer.asks == ("replay", 2, "vllm")
    assert consumer.answered() == ["restarted"]


# ---- time limits ----


def test_a_question_without_an_answer_is_asked_again_in_the_other_form():
    consumer = Consumer()
    consumer.start()
    assert consumer.order.next_deadline() == consumer.options.silence
    assert consumer.waits() == []
    assert consumer.asks == ("replay", 0, "vllm")
    assert consumer.waits() == []
    assert consumer.asks == ("replay", 0, "ours")


def test_before_the_deadline_nothing_is_given_up():
    consumer = Consumer()
    consumer.start()
    ask = consumer.order.ask
    assert consumer.waits(-0.1) == []
    assert consumer.order.ask is ask


def test_every_batch_puts_the_deadline_off():
    consumer = live_with_vllm("a0", "a1")
    consumer.live("a9")
    consumer.now = 3.0
    consumer.replied("a1")
    assert consumer.order.next_deadline() == 3.0 + consumer.options.silence
    consumer.now = 4.0
    consumer.replied("a1")  # not the same one again
    assert consumer.order.next_deadline() == 3.0 + consumer.options.silence


def test_after_silence_it_is_lost_and_goes_on_without_asking_for_a_while():
    consumer = Consumer()
    consumer.connected()
    consumer.live("a5")
    assert consumer.waits() + consumer.waits() == []
    assert consumer.waits() == ["lost", 5, "(lost)"]
    assert consumer.asks is None
    assert consumer.live("a7") == ["lost", 7]
    assert consumer.waits() == []  # the pause is over
    assert consumer.asks == ("replay", 7, "ours")


def test_after_silence_with_nothing_heard_it_begins_with_whatever_comes():
    consumer = Consumer()
    consumer.connected()
    assert [consumer.waits(), consumer.waits(), consumer.waits()] == [[], [], ["lost", "(lost)"]]
    assert consumer.live("a5", "a6") == [5, 6]


def test_after_a_pause_with_nothing_heard_it_begins_from_the_beginning():
    consumer = Consumer()
    consumer.connected()
    consumer.waits(), consumer.waits(), consumer.waits()
    assert consumer.waits() == ["(catching up)"]
    assert consumer.asks == ("replay", 0, "ours")


def test_after_a_pause_nothing_is_asked_where_nothing_is_missing():
    consumer = live_with_vllm("a0", "a1")
    consumer.live("a3")
    consumer.waits(), consumer.waits()
    assert consumer.waits() == ["lost", 3, "(lost)"]
    assert consumer.live("c4") == [4, "(live)"]
    assert consumer.waits() == []
    assert (consumer.asks, consumer.order.next_deadline()) == (None, None)


def test_during_a_pause_nothing_is_asked_about_late_numbers():
    consumer = of_vllm("a0", "a1", "a2")
    consumer.order._questions.quiet_until = 99.0
    consumer.live("b0", "b1")
    assert consumer.waits() == []
    assert consumer.asks is None


def test_a_replay_that_goes_on_and_on_is_not_given_up():
    consumer = live_with_vllm("a0", "a1")
    consumer.live("a9")
    for seq in range(2, 6):
        consumer.replied(f"a{seq - 1}", f"a{seq}")
        consumer.waits()  # no end marker: vLLM's ROUTER drops it, too
        assert consumer.asks == ("replay", seq, "vllm")
    assert consumer.answered("a5", "a6", "a7", "a8") == [6, 7, 8, 9, "(live)"]


def test_after_a_while_without_live_batches_it_is_asked_whether_there_were_any():
    consumer = of_ours("a0", check=8.0)
    assert consumer.live("a0", "a1") == [1]
    consumer.now = 3.0
    assert consumer.live("a2") == [2]
    assert consumer.order.next_deadline() == 11.0
    assert consumer.waits() == []
    assert consumer.head(next=4) == ["(catching up)"]
    assert consumer.replied("a3") + consumer.end() == [3, "(live)"]
    assert consumer.order.next_deadline() == 19.0


def test_to_ask_whether_there_were_any_is_no_doubt_in_what_is_known():
    consumer = of_ours("a0", check=8.0)
    assert consumer.waits() == []
    assert consumer.asks == ("replay", 1, "ours")
    assert consumer.head(next=1) + consumer.end() == []
    assert consumer.order.health is Health.LIVE


def test_after_a_new_connection_it_is_asked_soon_and_then_less_and_less_often():
    """The publisher may not know yet what is subscribed, and drops what it sends till then."""
    consumer = Consumer(check=1.0)
    consumer.connected()
    consumer.head()
    assert consumer.end() == ["(live)"]
    asked_at = []
    for _ in range(5):
        consumer.waits()
        asked_at.append(consumer.now)
        consumer.head()
        consumer.end()
    assert asked_at == [0.25, 0.75, 1.75, 2.75, 3.75]
    consumer.connected()
    consumer.head()
    consumer.end()
    assert consumer.order.next_deadline() == 4.0


def test_what_was_sent_before_the_subscription_came_is_had_by_asking():
    consumer = of_ours("a0", check=30.0)
    consumer.waits()
    assert consumer.now < 1.0
    consumer.head(next=2)
    assert consumer.replied("a1") + consumer.end() == [1, "(live)"]


def test_what_can_not_be_asked_is_not_checked():
    consumer = Consumer(check=8.0, replay=False)
    consumer.start()
    consumer.live("a0")
    assert consumer.order.next_deadline() is None


# ---- too old, and snapshots ----


def test_too_old_leads_to_a_snapshot():
    consumer = Consumer()
    consumer.connected()
    assert consumer.head(oldest=5, next=9, too_old=True) == []
    assert consumer.asks == "snapshot"
    consumer.live("a9")
    consumer.head(oldest=9, next=9)
    consumer.replied("s0", "s1")
    assert consumer.end() == ["snapshot to 9"]
    assert consumer.asks == ("replay", 9, "ours")  # is a9 of the same life?
    consumer.head(next=10)
    assert consumer.replied("a9") + consumer.end() == [9, "(live)"]


def test_a_snapshot_has_all_that_is_held_below_its_number():
    consumer = Consumer()
    consumer.connected()
    consumer.head(oldest=5, next=9, too_old=True)
    consumer.live("a7", "a8")
    consumer.head(oldest=9, next=9)
    assert consumer.end() == ["snapshot to 9", "(live)"]
    assert consumer.live("a9") == ["(catching up)"]


def test_too_old_without_a_snapshot_is_lost_from_the_oldest_on():
    consumer = Consumer()
    consumer.connected()
    consumer.head(oldest=5, next=7, too_old=True)
    assert consumer.head(oldest=7, next=7, too_old=True) == []
    assert consumer.end() == []
    assert consumer.asks == ("replay", 0, "ours")
    assert consumer.head(oldest=5, next=7, too_old=True) == ["lost", "(lost)"]
    assert consumer.replied("a5", "a6") + consumer.end() == [5, 6]


def test_too_old_of_vllm_in_the_middle_is_lost_from_there_on():
    consumer = live_with_vllm("a0", "a1")
    consumer.live("a9")
    assert consumer.replied("a7") == ["lost", 7, "(lost)"]
    assert consumer.answered("a8", "a9") == [8, 9]


@pytest.mark.parametrize("part", ["!0", "s0"])
def test_a_snapshot_that_can_not_be_read_or_is_too_large_is_none(part):
    consumer = Consumer(max_held_octets=1)
    consumer.connected()
    consumer.head(oldest=5, next=7, too_old=True)
    consumer.head(next=7)
    consumer.replied(part, "s1", "s2")
    consumer.end()
    assert consumer.asks == ("replay", 0, "ours")


def test_what_is_lost_and_has_no_snapshot_stays_lost_and_goes_on():
    consumer = of_ours("a0")
    consumer.live("a0", "!1", "a2")
    consumer.head(next=2, too_old=True)
    assert consumer.end() == []
    assert consumer.asks == ("replay", 2, "ours")  # a2 is held: is there more?
    consumer.head(next=3)
    assert consumer.replied("a2") + consumer.end() == [2]
    consumer.live("!3")
    assert consumer.asks is None


def test_a_snapshot_that_is_refused_costs_nothing_where_nothing_is_missing():
    consumer = of_ours("a0")
    consumer.live("a0", "!1")
    consumer.head(next=2, too_old=True)
    assert consumer.end() == []
    assert (consumer.asks, consumer.order.health) == (None, Health.LOST)


def test_a_snapshot_without_an_answer_is_given_up():
    consumer = Consumer()
    consumer.connected()
    consumer.head(oldest=5, next=7, too_old=True)
    assert consumer.waits() == ["lost", "(lost)"]
    assert consumer.asks is None


def test_what_is_lost_is_made_whole_by_a_snapshot():
    consumer = of_ours("a0")
    consumer.live("a0", "!1")
    assert consumer.asks == "snapshot"
    consumer.head(next=3)
    assert consumer.end() == ["snapshot to 3", "(live)"]


def test_while_a_snapshot_is_on_its_way_nothing_is_applied():
    consumer = of_ours("a0")
    consumer.live("a0", "!1")
    assert consumer.asks == "snapshot"
    assert consumer.live("a2", "a3") == []
    consumer.head(next=3)
    assert consumer.end() == ["snapshot to 3", "(catching up)"]
    assert consumer.asks == ("replay", 3, "ours")
    consumer.head(next=4)
    assert consumer.replied("a3") + consumer.end() == [3, "(live)"]


# ---- batches that cannot be decoded ----


def test_a_batch_that_can_not_be_decoded_is_reported_and_what_is_known_is_lost():
    consumer = live_with_vllm("a0", "a1")
    assert consumer.live("!2", "a3") == ["undecodable 2", "lost", "(lost)", 3]


def test_a_clear_makes_what_is_lost_whole():
    consumer = live_with_vllm("a0", "a1")
    consumer.live("!2")
    assert consumer.live("c3") == [3, "(live)"]
