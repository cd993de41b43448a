"""Numbered streams: whatever goes wrong on the way is found."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.stream import (
    END,
    PROBE,
    START,
    Account,
    StreamError,
    make_pass,
    marker,
    receive_pass,
    receive_pass_async,
    receive_ready,
    receive_until,
    receive_until_async,
    send_for,
    send_for_async,
)

PASS = make_pass(16, messages=8)


def receive_all(wire, messages=PASS):
    """Receive a list of messages up to its end marker."""
    account, arriving = Account(messages), iter(wire)
    receive_until(lambda: next(arriving), account, END)
    return account


def test_each_message_begins_with_its_number_and_differs_from_every_other():
    made = make_pass(64, messages=100)
    assert [int.from_bytes(message[:8], "big") for message in made] == list(range(100))
    assert {len(message) for message in made} == {64}
    assert len({message[8:] for message in made}) == 100


def test_both_sides_make_the_same_pass():
    assert make_pass(1024) == make_pass(1024)


def test_a_pass_is_shorter_for_large_messages():
    assert [len(make_pass(size)) for size in (64, 16 << 10, 256 << 10, 4 << 20)] == [
        1024,
        256,
        16,
        8,
    ]


def test_a_message_of_several_frames_is_a_list_that_begins_with_its_number():
    made = make_pass(64, frames=5, messages=3)
    assert [len(frame) for frame in made[2]] == [64] * 5
    assert made[2][0][:8] == (2).to_bytes(8, "big")
    assert len({frame[8:] for message in made for frame in message}) == 15


def test_messages_may_begin_with_topics_instead():
    made = make_pass(16, heads=[b"one", b"other"])
    assert [(message[:3], len(message)) for message in made] == [(b"one", 16), (b"oth", 16)]


def test_a_loss_among_topics_is_found():
    made = make_pass(16, heads=[b"b", b"c", b"a"])
    account = receive_all([made[0], made[2], END + b"3"], made)
    assert (account.lost, account.gaps) == (1, 1)


def test_a_pass_may_be_received_in_pieces():
    account, arriving = Account(PASS), iter([*PASS, *PASS])
    for _ in range(4):
        assert receive_pass(lambda: next(arriving), account, 3) == b""
    assert account.received == 8 + 3  # three, three, two, three: a piece ends with its pass


def test_a_pass_may_be_received_in_pieces_with_awaits():
    async def scenario():
        queue, account = asyncio.Queue(), Account(PASS)
        for message in PASS:
            queue.put_nowait(message)
        assert await receive_pass_async(queue.get, account, 3) == b""
        assert account.received == 3

    asyncio.run(scenario())


class Inbox:
    """A socket that has some messages, and is then empty."""

    def __init__(self, *messages):
        self.messages = list(messages)

    def recv(self, flags):
        assert flags == 7
        if not self.messages:
            raise BlockingIOError
        return self.messages.pop(0)


def ready(inbox, account, most=100):
    return receive_ready(inbox.recv, 7, BlockingIOError, account, most)


def test_what_is_there_is_received_and_what_is_not_stays_due():
    account, inbox = Account(PASS), Inbox(*PASS[:3])
    assert ready(inbox, account) == b""
    assert account.received == 3
    inbox.messages += PASS[3:]
    assert ready(inbox, account) == b""
    assert (account.received, account.gaps) == (8, 0)


def test_an_empty_socket_changes_nothing():
    account = Account(PASS)
    assert ready(Inbox(), account) == b""
    assert (account.received, next(account.due)) == (0, PASS[0])


def test_one_socket_does_not_keep_the_others_waiting():
    account, inbox = Account(PASS), Inbox(*PASS, *PASS)
    ready(inbox, account, most=5)
    assert (account.received, len(inbox.messages)) == (5, 11)


def test_a_marker_among_what_is_there_is_named():
    account, inbox = Account(PASS), Inbox(PASS[0], END + b"1", PASS[1])
    assert ready(inbox, account) == END + b"1"
    assert (account.received, account.sent, inbox.messages) == (1, 1, [PASS[1]])


def test_a_whole_stream_is_counted_over_any_number_of_passes():
    account = receive_all([*PASS, *PASS, *PASS[:3], END + b"19"])
    assert (account.received, account.sent, account.lost, account.gaps) == (19, 19, 0, 0)
    account.must_be_whole()


def test_the_count_is_right_in_the_middle_of_a_pass():
    account, arriving = Account(PASS), iter([*PASS, *PASS[:3], START, *PASS[3:5], END + b"13"])
    receive_until(lambda: next(arriving), account, START)
    assert account.received == 11
    receive_until(lambda: next(arriving), account, END)
    assert account.received == 13


def test_probes_are_passed_over():
    assert receive_all([PROBE, PROBE, *PASS, PROBE, *PASS[:2], END + b"10"]).received == 10


def test_a_pass_ends_early_at_a_marker_and_names_it():
    account, arriving = Account(PASS), iter([*PASS[:3], START, *PASS[3:]])
    assert receive_pass(lambda: next(arriving), account) == START
    assert receive_pass(lambda: next(arriving), account) == b""
    assert account.received == 8


def test_a_lost_message_is_a_gap_and_a_loss():
    account = receive_all([*PASS[:3], *PASS[4:], END + b"8"])
    assert (account.received, account.lost, account.gaps) == (7, 1, 1)
    with pytest.raises(StreamError, match="1 messages lost, 1 out of order"):
        account.must_be_whole()


def test_the_loss_of_a_whole_pass_shows_in_the_count():
    account = receive_all([*PASS, END + b"16"])
    assert (account.lost, account.gaps) == (8, 0)
    with pytest.raises(StreamError, match="8 messages lost"):
        account.must_be_whole()


def test_two_messages_that_changed_places_are_seen():
    account = receive_all([PASS[1], PASS[0], *PASS[2:], END + b"8"])
    assert account.gaps
    with pytest.raises(StreamError, match="out of order"):
        account.must_be_whole()


def test_a_message_that_came_twice_is_refused():
    with pytest.raises(StreamError, match="9 messages came, 8 were sent"):
        receive_all([PASS[0], *PASS, END + b"8"])


@pytest.mark.parametrize(
    "wrong",
    [
        PASS[0][:-1],
        PASS[0] + b"x",
        PASS[0][:8] + bytes(8),
        (8).to_bytes(8, "big") + PASS[0][8:],
        b"",
    ],
    ids=["shortened", "lengthened", "other body", "number out of range", "empty"],
)
def test_a_message_that_was_never_sent_is_refused(wrong):
    with pytest.raises(StreamError, match="message 0 was due"):
        receive_all([wrong, END + b"1"])


def test_one_wrong_frame_among_several_is_refused():
    made = make_pass(16, frames=3, messages=4)
    wrong = [made[1][0], made[1][1], made[2][2]]
    with pytest.raises(StreamError, match="message 1 was due"):
        receive_all([made[0], wrong, marker(END + b"2", 3)], made)


@settings(deadline=None)  # a busy machine is not a bug
@given(st.lists(st.booleans(), max_size=60))
def test_what_was_dropped_is_what_is_reported_lost(kept):
    sent = [PASS[number % len(PASS)] for number in range(len(kept))]
    wire = [message for message, keep in zip(sent, kept) if keep]
    account = receive_all([*wire, END + b"%d" % len(sent)])
    assert (account.received, account.lost) == (sum(kept), len(kept) - sum(kept))


def test_the_sender_sends_whole_passes_for_its_time():
    sent = []
    assert send_for(sent.append, PASS, 0.01) == len(sent)
    assert sent[:16] == [*PASS, *PASS]
    assert len(sent) % len(PASS) == 0


def test_the_asyncio_loops_send_and_receive_the_same_stream():
    async def scenario():
        queue, account = asyncio.Queue(), Account(PASS)
        sent = await send_for_async(queue.put, PASS, 0.01)
        await queue.put(END + b"%d" % sent)
        await receive_until_async(queue.get, account, END)
        account.must_be_whole()
        assert account.received == sent > 0

    asyncio.run(scenario())
