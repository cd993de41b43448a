"""Messages of several parts on the lanes of a blocking socket, and past them."""

import pytest

import zerohop as zmq
from tests.kit.net import free_port
from tests.sync.test_socket import Holding, in_thread, pair_of, until

SOON = 8.0


@pytest.fixture(params=["tcp", "inproc"])
def ends(request, context):
    return pair_of(context, zmq.PUSH, zmq.PULL, request.param)


def test_several_parts_need_no_lock_either(context):
    push = context.socket(zmq.PUSH)
    push.connect(f"tcp://127.0.0.1:{free_port()}")  # nobody there: messages queue
    push.send(b"first")
    with Holding(context):
        for _ in range(100):
            push.send_multipart([b"a", b"b"])
    assert push.stats().outgoing.messages == 101


def test_what_is_there_is_received_without_the_lock(context):
    push, pull = pair_of(context, zmq.PUSH, zmq.PULL)
    for n in range(50):
        push.send_multipart([b"%d" % n, b"x"])
    assert pull.recv_multipart() == [b"0", b"x"]
    until(lambda: pull.stats().incoming.messages == 49)
    with Holding(context):
        assert [pull.recv_multipart() for _ in range(49)] == [
            [b"%d" % n, b"x"] for n in range(1, 50)
        ]


def test_the_list_stays_the_callers(ends):
    """He may change it at once, though the message is still to be sent."""
    push, pull = ends
    parts = [b"a", b"b"]
    for n in range(100):
        parts[1] = b"%d" % n
        push.send_multipart(parts)
    parts.clear()
    assert [pull.recv_multipart()[1] for _ in range(100)] == [b"%d" % n for n in range(100)]


def test_what_is_received_is_the_receivers(ends):
    push, pull = ends
    parts = [b"a", b"b"]
    push.send_multipart(parts)
    push.send_multipart(parts)
    pull.recv_multipart().append(b"c")
    assert pull.recv_multipart() == [b"a", b"b"]
    assert parts == [b"a", b"b"]


def test_one_part_is_a_message_like_any_other(ends):
    push, pull = ends
    push.send_multipart([b"alone"])
    push.send_multipart([b"alone"])
    assert pull.recv() == b"alone"
    assert pull.recv_multipart() == [b"alone"]


@pytest.mark.parametrize(
    "parts",
    [
        (b"a", b"b"),
        [b"a", bytearray(b"b")],
        [memoryview(b"a"), b"b"],
        [zmq.Frame(b"a"), b"b"],
    ],
    ids=["tuple", "bytearray", "memoryview", "Frame"],
)
def test_parts_of_any_kind_arrive_as_octets(ends, parts):
    push, pull = ends
    push.send_multipart(parts)
    received = pull.recv_multipart()
    assert received == [b"a", b"b"]
    assert set(map(type, received)) == {bytes}


def test_parts_may_come_from_an_iterator(ends):
    push, pull = ends
    push.send_multipart(iter([b"a", b"b"]))
    assert pull.recv_multipart() == [b"a", b"b"]


def test_a_lent_part_arrives_as_octets(ends):
    push, pull = ends
    tracker = push.send_multipart([b"a", bytearray(b"b" * 70_000)], copy=False, track=True)
    push.send_multipart([b"a", b"b"], copy=False)
    received = pull.recv_multipart()
    assert received == [b"a", b"b" * 70_000]
    assert set(map(type, received)) == {bytes}
    tracker.wait(SOON)
    assert pull.recv_multipart() == [b"a", b"b"]


@pytest.mark.parametrize("parts", [["text", b"b"], [b"a", None], [b"a", 1]])
def test_what_cannot_be_sent_is_refused_and_nothing_was(ends, parts):
    push, pull = ends
    with pytest.raises(TypeError, match="does not support the buffer interface"):
        push.send_multipart(parts)
    with pytest.raises(IndexError):
        push.send_multipart([])
    push.send_multipart([b"next", b"one"])
    assert pull.recv_multipart() == [b"next", b"one"]


def test_frames_know_which_is_the_last(ends):
    push, pull = ends
    push.send_multipart([b"a", b"b"])
    push.send_multipart([b"a", b"b"])
    for _ in range(2):
        frames = pull.recv_multipart(copy=False)
        assert [(frame.bytes, frame.more) for frame in frames] == [(b"a", True), (b"b", False)]


def test_the_high_water_mark_is_exact_for_several_parts(context):
    push, pull = context.socket(zmq.PUSH), context.socket(zmq.PULL)
    push.sndhwm, pull.rcvhwm = 10, 5
    pull.bind("inproc://exact")
    push.connect("inproc://exact")
    for n in range(15):
        push.send_multipart([b"%d" % n, b""], timeout=0)
    with pytest.raises(zmq.Again):
        push.send_multipart([b"16", b""], timeout=0)
    with pytest.raises(zmq.Again):
        push.send_multipart([b"16", b""], zmq.DONTWAIT)
    assert [pull.recv_multipart()[0] for _ in range(15)] == [b"%d" % n for n in range(15)]
    push.send_multipart([b"room", b"again"], timeout=0)


def test_a_receive_that_drains_a_full_pipe_lets_the_sender_go_on(context):
    push, pull = pair_of(context, zmq.PUSH, zmq.PULL)
    join = in_thread(lambda: [push.send_multipart([b"%d" % n, b"x" * 300]) for n in range(5000)])
    assert [int(pull.recv_multipart()[0]) for _ in range(5000)] == list(range(5000))
    join()


@pytest.mark.parametrize("size", [0, 100, 50_000])
def test_order_and_content_survive_with_parts_of_any_size_and_messages_of_one(context, size):
    push, pull = pair_of(context, zmq.PUSH, zmq.PULL)
    count = 3000 if size < 1000 else 60
    messages = [[b"%d" % n, bytes(size)] if n % 3 else [b"%d" % n] for n in range(count)]
    join = in_thread(lambda: [push.send_multipart(message) for message in messages])
    assert [pull.recv_multipart() for _ in messages] == messages
    join()


def test_parts_begun_one_by_one_come_before_those_of_the_rest(context):
    push, pull = pair_of(context, zmq.PUSH, zmq.PULL)
    push.send(b"a", zmq.SNDMORE)
    push.send_multipart([b"b", b"c"])
    assert pull.recv_multipart() == [b"a", b"b", b"c"]


def test_a_router_answers_with_the_parts_it_got(context):
    router, dealer = context.socket(zmq.ROUTER), context.socket(zmq.DEALER)
    dealer.connect(f"tcp://127.0.0.1:{router.bind_to_random_port('tcp://127.0.0.1')}")
    for n in range(200):
        dealer.send_multipart([b"%d" % n, b"x"])
        router.send_multipart(router.recv_multipart())
        assert dealer.recv_multipart() == [b"%d" % n, b"x"]
