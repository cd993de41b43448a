"""From a pipe to octets, and back when the connection breaks."""

import gc
import weakref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.kit import calls_during
from zerohop.core.link import Link, Listener
from zerohop.core.options import SocketOptions
from zerohop.core.output import (
    FLUSH_SIZE,
    BatchEncoder,
    fill,
    fill_alone,
    take_back,
    written,
    written_alone,
)
from zerohop.core.peers import put_back
from zerohop.patterns.pattern import Peer
from zerohop.patterns.pipe import Pipe
from zerohop.patterns.routing import fan_out, fan_out_all
from zerohop.wire.frames import encode, encoded_size


class Wire:
    """A connection in traffic, as far as output cares; counts what it encodes."""

    def __init__(self):
        self.control = b""
        self.batches = 0

    @property
    def has_output(self):
        return bool(self.control)

    def data_to_send(self):
        said, self.control = self.control, b""
        return said

    def encode(self, messages):
        self.batches += 1
        return encode(messages)

    encoded_size = staticmethod(encoded_size)


class Quiet:
    """A connection that says nothing itself; as cheap as a real one."""

    has_output = False
    encode = staticmethod(encode)


def make_link(*, shares=False, batch=128):
    source = Listener("tcp://*:5555", SocketOptions().frozen())
    link = Link(source, Wire(), source.endpoint, "")
    link.shares, link.batch = shares, batch
    return link


def make_pipe(*messages, hwm=0):
    pipe = Pipe(hwm)
    pipe.extend(list(messages))
    return pipe


def wire_of(*messages):
    return b"".join(encode(list(messages)))


def filled(link, pipe, encoder=None):
    return b"".join(fill(link, pipe, encoder or BatchEncoder()))


# -- filling


def test_what_the_connection_says_goes_before_messages():
    link, pipe = make_link(), make_pipe(b"1", [b"2", b"3"])
    link.connection.control = b"<READY>"
    assert filled(link, pipe) == b"<READY>" + wire_of(b"1", [b"2", b"3"])
    assert len(pipe) == 0


def test_an_answer_is_filled_and_taken_in_ten_calls():
    """One message, sent for itself: what REQ, REP and every program that waits pay each time."""
    link, pipe, encoder = make_link(), make_pipe(b"x" * 64), BatchEncoder()
    link.connection = Quiet()
    assert calls_during(fill, link, pipe, encoder) <= 6
    assert calls_during(written, link, 66) <= 4
    assert not link.buffers


def test_before_the_handshake_only_the_connection_speaks():
    link = make_link()
    link.connection.control = b"<greeting>"
    assert filled(link, None) == b"<greeting>"


def test_nothing_to_say_is_nothing_to_write():
    assert filled(make_link(), None) == b""
    assert filled(make_link(), Pipe(0)) == b""


def test_the_rest_of_a_batch_goes_before_the_next_one():
    link, pipe = make_link(), make_pipe(b"first")
    fill(link, pipe, BatchEncoder())
    written(link, 3)
    pipe.push(b"second")
    link.connection.control = b"<PONG>"
    assert filled(link, pipe) == wire_of(b"first")[3:]
    assert list(pipe.messages) == [b"second"]


def test_a_full_pipe_that_was_emptied_has_room_again():
    pipe = make_pipe(b"1", b"2", hwm=2)
    pipe.writer = "the peer"
    fill(make_link(), pipe, BatchEncoder())
    assert not pipe.full
    assert pipe.writer_signals == ["the peer"]


def test_a_batch_of_small_messages_grows_until_it_is_worth_a_write():
    link, pipe = make_link(), make_pipe(*[b"x"] * 10_000)
    batches = []
    while pipe.messages:
        fill(link, pipe, BatchEncoder())
        batches.append(len(link.sending))
        written(link, sum(map(len, link.buffers)))
    assert batches[:5] == [128, 256, 512, 1024, 1024]


def test_a_batch_that_was_not_full_does_not_grow():
    link = make_link()
    for _ in range(10):
        fill(link, make_pipe(b"x"), BatchEncoder())
        written(link, sum(map(len, link.buffers)))
    assert link.batch == 128


def test_a_batch_of_large_messages_shrinks_to_one():
    link, pipe = make_link(), make_pipe(*[bytes(FLUSH_SIZE * 3)] * 500)
    while pipe.messages:
        fill(link, pipe, BatchEncoder())
        written(link, sum(map(len, link.buffers)))
    assert link.batch == 1


def test_of_large_messages_no_more_are_taken_than_are_written_at_once():
    """What is taken is beyond the high-water mark: with large messages it would be much memory."""
    link = make_link()
    large = [bytes([n]) * (FLUSH_SIZE * 3) for n in range(100)]
    pipe = make_pipe(*large, hwm=100)
    pipe.writer = "the peer"
    assert filled(link, pipe) == wire_of(large[0])
    assert link.sending == large[:1]
    assert list(pipe.messages) == large[1:]
    assert pipe.full
    assert pipe.writer_signals == []
    written(link, sum(map(len, link.buffers)))
    assert filled(link, pipe) == wire_of(large[1])


def test_what_goes_back_to_a_pipe_that_was_filled_meanwhile_makes_it_full():
    """Another thread has sent by its lane, in the middle of it."""
    large = [bytes(FLUSH_SIZE * 65), bytes(FLUSH_SIZE)]
    link, pipe = make_link(), make_pipe(*large, hwm=3)
    pipe.writer = "the peer"

    class Meanwhile(Wire):
        def encode(self, messages):
            if len(messages) == 2:
                pipe.messages.extend([b"by", b"lane"])
            return super().encode(messages)

    link.connection = Meanwhile()
    filled(link, pipe)
    assert list(pipe.messages) == [large[1], b"by", b"lane"]
    assert pipe.full


@pytest.mark.parametrize("shares", [False, True])
def test_a_large_message_among_small_ones_ends_a_batch(shares):
    small, large = [b"%d" % n for n in range(50)], [bytes(FLUSH_SIZE * 65), b"envelope"]
    link, pipe, encoder = make_link(shares=shares), make_pipe(*small, large, *small), BatchEncoder()
    assert filled(link, pipe, encoder) == wire_of(*small, large)
    assert list(pipe.messages) == small
    written(link, sum(map(len, link.buffers)))
    assert filled(link, pipe, encoder) == wire_of(*small)
    assert link.messages_out == 51


def test_a_batch_of_the_right_size_stays():
    link = make_link(batch=10)
    fill(link, make_pipe(*[bytes(FLUSH_SIZE // 10)] * 20), BatchEncoder())
    assert link.batch == 10


# -- writing


def test_what_the_kernel_took_is_gone():
    link = make_link()
    fill(link, make_pipe(b"hello"), BatchEncoder())
    written(link, len(wire_of(b"hello")))
    assert link.buffers == []
    assert not link.sending
    assert (link.messages_out, link.octets_out) == (1, len(wire_of(b"hello")))


def test_messages_are_the_links_until_the_last_octet_is_out():
    link = make_link()
    fill(link, make_pipe(b"1", b"2"), BatchEncoder())
    written(link, len(wire_of(b"1", b"2")) - 1)
    assert link.sending == [b"1", b"2"]
    assert link.messages_out == 0
    written(link, 1)
    assert not link.sending
    assert link.messages_out == 2


def test_the_rest_of_a_large_body_is_not_copied():
    body = bytes(100_000)
    link = make_link()
    fill(link, make_pipe(body), BatchEncoder())
    header = len(link.buffers[0])
    written(link, header + 1000)
    (rest,) = link.buffers
    assert isinstance(rest, memoryview)
    assert rest.obj is body
    assert len(rest) == 99_000


@pytest.mark.parametrize("size", [0, 1, 5, 40_000, 100_000])
def test_any_number_of_octets_may_be_taken(size):
    link = make_link()
    messages = [b"a", bytes(40_000), [b"b", bytes(50_000)], b"c"]
    whole = wire_of(*messages)
    fill(link, make_pipe(*messages), BatchEncoder())
    taken = 0
    while link.buffers and taken + size <= len(whole) and size:
        written(link, size)
        taken += size
    assert b"".join(link.buffers) == whole[taken:]


# -- taking back


@given(
    messages=st.lists(
        st.one_of(st.binary(max_size=9), st.lists(st.binary(max_size=9), min_size=2, max_size=3)),
        max_size=6,
    ),
    control=st.binary(max_size=9),
    cut=st.integers(0, 200),
)
def test_what_was_not_wholly_written_comes_back_in_order(messages, control, cut):
    link, pipe = make_link(), make_pipe(*messages)
    link.connection.control = control
    fill(link, pipe, BatchEncoder())
    octets = control + wire_of(*messages)
    cut = min(cut, len(octets))
    written(link, cut)
    arrived = 0  # whole messages before the cut
    while arrived < len(messages) and len(control + wire_of(*messages[: arrived + 1])) <= cut:
        arrived += 1
    assert take_back(link) == messages[arrived:]
    assert link.messages_out == arrived
    assert link.buffers == []
    assert take_back(link) == []


def test_after_a_second_batch_only_that_one_comes_back():
    link, pipe, encoder = make_link(batch=2), make_pipe(b"1", b"2", b"3", b"4"), BatchEncoder()
    fill(link, pipe, encoder)
    written(link, len(wire_of(b"1", b"2")))
    fill(link, pipe, encoder)
    written(link, len(wire_of(b"3")))
    assert take_back(link) == [b"4"]
    assert link.messages_out == 3


def test_nothing_in_flight_is_nothing_to_take_back():
    assert take_back(make_link()) == []


# -- the same batch for many


def test_a_batch_that_goes_to_several_links_is_encoded_once():
    messages = [b"%d" % n for n in range(5)]
    links, encoder = [make_link(shares=True) for _ in range(3)], BatchEncoder()
    octets = [filled(link, make_pipe(*messages), encoder) for link in links]
    assert octets == [wire_of(*messages)] * 3
    assert [link.connection.batches for link in links] == [1, 0, 0]


def test_a_list_that_was_queued_whole_is_taken_as_it_is_and_not_compared():
    messages = [b"%d" % n for n in range(100)]
    links, encoder = [make_link(shares=True) for _ in range(3)], BatchEncoder()
    peers = [Peer(Pipe(0), Pipe(0)) for _ in links]
    fan_out_all(messages, peers)
    for link, peer in zip(links, peers, strict=True):
        link.connection = Quiet()
        calls = calls_during(fill, link, peer.outbound, encoder)
        assert link.sending is messages
        assert not peer.outbound.messages
    assert calls <= 12  # however many messages
    assert b"".join(links[2].buffers) == wire_of(*messages)


def test_a_list_too_long_for_a_write_is_not():
    messages = [b"%d" % n for n in range(100)]
    link, peer = make_link(shares=True, batch=49), Peer(Pipe(0), Pipe(0))
    fan_out_all(messages, [peer])
    fill(link, peer.outbound, BatchEncoder())
    assert link.sending == messages[:49]
    assert list(peer.outbound.messages) == messages[49:]


@pytest.mark.parametrize(
    "change",
    [
        lambda peer, more: fan_out(b"more", [peer]),
        lambda peer, more: put_back(peer.outbound, [b"back"]),
    ],
    ids=["sent", "put back"],
)
def test_a_queue_is_not_whole_any_more_when_something_was_added(change):
    peer = Peer(Pipe(0), Pipe(0))
    fan_out_all([b"1", b"2"], [peer])
    change(peer, b"more")
    expected = list(peer.outbound.messages)
    assert len(expected) == 3
    link = make_link(shares=True)
    fill(link, peer.outbound, BatchEncoder())
    assert link.sending == expected


def test_what_is_left_of_a_list_is_not_taken_for_the_list():
    link, peer = make_link(shares=True, batch=1), Peer(Pipe(0), Pipe(0))
    fan_out_all([b"1", b"2", b"3"], [peer])
    for expected in ([b"1"], [b"2", b"3"]):
        fill(link, peer.outbound, BatchEncoder())
        assert link.sending == expected
        written(link, len(wire_of(*expected)))


def test_messages_queued_whole_for_a_pipe_that_keeps_one_are_that_one():
    link, peer = make_link(shares=True), Peer(Pipe(0, conflate=True), Pipe(0))
    fan_out_all([b"1", b"2"], [peer])
    fill(link, peer.outbound, BatchEncoder())
    assert link.sending == [b"2"]


def test_each_link_has_its_own_list_of_what_is_left():
    encoder, links = BatchEncoder(), [make_link(shares=True) for _ in range(2)]
    message = b"message"
    for link in links:
        fill(link, make_pipe(message), encoder)
    written(links[0], 3)
    assert b"".join(links[1].buffers) == wire_of(message)
    assert b"".join(links[0].buffers) == wire_of(message)[3:]


@pytest.mark.parametrize("second", [[b"a", b"c"], [b"a"], [b"a", b"b", b"b"]])
def test_another_batch_is_encoded_anew(second):
    encoder, links = BatchEncoder(), [make_link(shares=True) for _ in range(2)]
    filled(links[0], make_pipe(b"a", b"b"), encoder)
    assert filled(links[1], make_pipe(*second), encoder) == wire_of(*second)
    assert links[1].connection.batches == 1


def test_equal_messages_that_are_not_the_same_are_not_taken_for_them():
    encoder, links = BatchEncoder(), [make_link(shares=True) for _ in range(2)]
    one, other = bytearray(b"x" * 9), bytearray(b"x" * 9)
    filled(links[0], make_pipe(memoryview(one)), encoder)
    assert filled(links[1], make_pipe(memoryview(other)), encoder) == wire_of(b"x" * 9)
    assert links[1].connection.batches == 1


def test_links_that_share_nothing_leave_nothing_behind():
    encoder = BatchEncoder()
    fill(make_link(), make_pipe(b"x"), encoder)
    assert encoder.messages == []


def test_of_a_forgotten_batch_nothing_is_held():
    """A MessageTracker sees that a lent buffer is free when what stands for it is gone."""
    encoder, link = BatchEncoder(), make_link(shares=True)
    lent = memoryview(bytearray(100_000))
    watched = weakref.ref(lent)
    fill(link, make_pipe(lent), encoder)
    del lent
    written(link, sum(map(len, link.buffers)))
    assert watched() is not None
    encoder.forget()
    gc.collect()
    assert watched() is None


def test_a_forgotten_batch_is_nobodys_any_more():
    encoder, message = BatchEncoder(), b"message"
    fill(make_link(shares=True), make_pipe(message), encoder)
    assert encoder.messages == [message]
    encoder.forget()
    assert encoder.messages == []
    link = make_link(shares=True)
    assert filled(link, make_pipe(message), encoder) == wire_of(message)
    assert link.connection.batches == 1


# -- a lone message


def link_to(pipe, **options):
    """A link that is in traffic with a peer, to whom the pipe leads."""
    link = make_link(**options)
    link.peer = Peer(pipe, Pipe(0))
    link.handshaken = True
    return link


@pytest.mark.parametrize("message", [b"x" * 64, [b"", b"x"], [b"a", b"b" * 300, b"c"]])
def test_a_lone_message_is_written_as_any_other(message):
    link, general = link_to(make_pipe(message)), make_link()
    assert fill_alone(link) == fill(general, make_pipe(message), BatchEncoder())
    assert link.sending == [message]
    size = len(wire_of(message))
    assert written_alone(link, size)
    written(general, size)
    for each in (link, general):
        assert (each.octets_out, each.messages_out) == (size, 1)
        assert not each.sending
        assert not each.buffers
    assert link.peer.outbound.asleep


def test_a_lone_message_of_which_not_all_is_taken_goes_on_as_any_other():
    link = link_to(make_pipe(b"x" * 100))
    fill_alone(link)
    written(link, 40)
    assert filled(link, link.peer.outbound) == wire_of(b"x" * 100)[40:]
    assert take_back(link) == [b"x" * 100]


def test_a_link_that_breaks_gives_a_lone_message_back():
    link = link_to(make_pipe(b"x"))
    fill_alone(link)
    assert take_back(link) == [b"x"]


def test_what_came_while_a_lone_message_was_written_keeps_the_pipe_awake():
    pipe = make_pipe(b"x")
    link = link_to(pipe)
    fill_alone(link)
    pipe.messages.append(b"y")
    assert not written_alone(link, 3)
    assert not pipe.asleep


def test_a_connection_that_has_something_to_say_keeps_the_pipe_awake():
    link = link_to(make_pipe(b"x"))
    fill_alone(link)
    link.connection.control = b"pong"
    assert not written_alone(link, 3)
    assert not link.peer.outbound.asleep


def test_the_list_in_which_a_lone_message_was_queued_is_let_go():
    peer = Peer(Pipe(0), Pipe(0))
    fan_out_all([b"x"], [peer])
    assert fill_alone(link_to(peer.outbound)) == [wire_of(b"x")]
    assert peer.outbound.whole is None


def test_a_greeting_is_written_before_there_are_messages():
    link = link_to(make_pipe(b"x"))
    link.handshaken = False
    link.connection.control = b"greeting"
    assert fill_alone(link) == [b"greeting"]
    assert written_alone(link, 8)
    assert (link.octets_out, link.messages_out, link.buffers) == (8, 0, [])
    assert list(link.peer.outbound.messages) == [b"x"]


def test_what_is_left_of_a_greeting_goes_on_as_anything_else():
    link = link_to(make_pipe(b"x"))
    link.handshaken = False
    link.connection.control = b"greeting"
    fill_alone(link)
    written(link, 5)
    assert fill(link, None, BatchEncoder()) == [b"ing"]
    written(link, 3)
    assert not link.buffers
    assert take_back(link) == []


def test_what_is_to_be_said_after_a_greeting_keeps_the_link_at_it():
    link = link_to(make_pipe())
    link.handshaken = False
    link.connection.control = b"greeting"
    fill_alone(link)
    link.connection.control = b"error"
    assert not written_alone(link, 8)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda link: link.peer.outbound.push(b"y"),
        lambda link: link.peer.outbound.messages.clear(),
        lambda link: setattr(link.peer.outbound, "full", True),
        lambda link: setattr(link.connection, "control", b"ping"),
        lambda link: setattr(link, "handshaken", False),
        lambda link: setattr(link, "failure", ValueError()),
        lambda link: setattr(link, "ending", True),
        lambda link: setattr(link, "shares", True),
        lambda link: link.buffers.append(b"rest"),
        lambda link: setattr(link, "peer", None),
    ],
    ids=["two", "none", "full", "control", "handshake", "failed", "ends", "shares", "rest", "peer"],
)
def test_what_is_no_lone_message_is_left_to_the_general_way(spoil):
    link = link_to(make_pipe(b"x"))
    spoil(link)
    before = (link.peer is not None and list(link.peer.outbound.messages), list(link.buffers))
    assert fill_alone(link) == []
    assert before == (
        link.peer is not None and list(link.peer.outbound.messages),
        list(link.buffers),
    )
    assert not link.sending
