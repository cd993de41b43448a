"""The publisher against readers written by hand: vLLM's forms, slow readers, old questions."""

import os
import threading
import time

import numpy as np
import pytest
import zmq as libzmq

import zerohop as zmq
from tests.serving.kv.places import END, SECONDS, Places, Reader, receive_answer, removed, stored
from zerohop.serving import KvEventPublisher
from zerohop.serving.kv.blocks import PresentBlocks
from zerohop.serving.kv.decode import BatchDecoder
from zerohop.serving.kv.events import AllBlocksCleared, BlockRemoved, BlockStored
from zerohop.serving.kv.publisher import binds, endpoint_of_rank
from zerohop.serving.kv.replies import (
    parse_reply,
    replay_request,
    seq_octets,
    snapshot_request,
)

pytestmark = pytest.mark.timeout(20)
decode = BatchDecoder().decode


@pytest.fixture(params=["ipc", "tcp"])
def places(request, ipc_directory):
    return Places(request.param, ipc_directory)


@pytest.fixture
def publisher(places):
    with KvEventPublisher(places.free(), replay=places.free(), topic="kv") as made:
        yield made


def until_joined(publisher, sub):
    """Publish until the subscription is there; return the number of the first that came."""
    sub.rcvtimeo = 20
    for _ in range(500):
        publisher.publish([])
        try:
            first = sub.recv_multipart()
        except zmq.Again:
            continue
        sub.rcvtimeo = 10_000
        return int.from_bytes(first[1], "big")
    raise AssertionError("nothing came")


def numbers(messages):
    return [int.from_bytes(frames[-2], "big") for frames in messages]


def test_live_batches_have_topic_number_and_three_elements(publisher):
    with Reader(zmq.SUB, publisher.endpoint) as sub:
        first = until_joined(publisher, sub)
        seq = publisher.publish([stored(1), removed(1)], ts=1.5)
        assert seq == publisher.next_seq - 1
        messages = [sub.recv_multipart() for _ in range(seq - first)]
    topic, number, payload = messages[-1]
    assert (topic, number) == (b"kv", seq_octets(seq))
    batch = decode(payload)
    assert (batch.ts, batch.events, batch.dp_rank) == (1.5, [stored(1), removed(1)], 0)


def test_a_clear_comes_at_once(publisher):
    with Reader(zmq.SUB, publisher.endpoint) as sub:
        until_joined(publisher, sub)
        seq = publisher.clear()
        while (message := sub.recv_multipart())[1] != seq_octets(seq):
            pass
    assert decode(message[2]).events == [AllBlocksCleared()]


def test_a_dealer_gets_all_from_a_number_on_and_vllms_end(publisher):
    for _ in range(5):
        publisher.publish([])
    publisher.flush()
    with Reader(zmq.DEALER, publisher.replay_endpoint) as dealer:
        dealer.send_multipart(replay_request(2, None))
        messages, end = receive_answer(dealer)
        assert numbers(messages) == [2, 3, 4]
        assert {tuple(frames[:2]) for frames in messages} == {(b"", b"kv")}
        assert end == [b"", b"", END, b""]
        dealer.send_multipart(replay_request(9, None))
        assert receive_answer(dealer)[0] == []


def ask_batch_by_batch(req):
    found = []
    while True:
        req.send(seq_octets(len(found)))
        *_, number, _ = req.recv_multipart()
        if number == END:
            return found
        found.append(int.from_bytes(number, "big"))


@pytest.mark.parametrize("options", [{}, {"req_correlate": 1, "req_relaxed": 1}])
def test_a_req_asks_batch_by_batch(publisher, options):
    for _ in range(3):
        publisher.publish([])
    publisher.flush()
    with Reader(zmq.REQ, publisher.replay_endpoint, **options) as req:
        assert ask_batch_by_batch(req) == [0, 1, 2]


def test_libzmqs_req_asks_batch_by_batch(publisher):
    for _ in range(3):
        publisher.publish([])
    publisher.flush()
    context = libzmq.Context()
    try:
        req = context.socket(libzmq.REQ)
        req.linger, req.rcvtimeo = 0, SECONDS
        req.connect(publisher.replay_endpoint)
        assert ask_batch_by_batch(req) == [0, 1, 2]
    finally:
        context.destroy(linger=0)


def test_a_req_is_sent_one_reply_to_a_request(publisher):
    """It would take a second one for the reply to its next request."""
    for _ in range(500):
        publisher.publish([])
    publisher.flush()
    with Reader(zmq.REQ, publisher.replay_endpoint) as req:
        for asked in range(4):
            req.send(seq_octets(asked))
            assert req.recv_multipart()[-2] == seq_octets(asked)
        assert [peer.messages_received for peer in req.peers()] == [4]


def test_a_slow_reader_gets_all_batches_and_the_end(publisher):
    """ROUTER drops what has no room unless told otherwise: the stock publisher loses the rest."""
    for _ in range(3000):
        publisher.publish([stored(1, 8)])
    publisher.flush()
    options = {"rcvhwm": 10, "rcvbuf": 4096}
    with (
        Reader(zmq.DEALER, publisher.replay_endpoint, **options) as slow,
        Reader(zmq.DEALER, publisher.replay_endpoint) as quick,
    ):
        slow.send_multipart(replay_request(0, None))
        first = slow.recv_multipart()
        time.sleep(0.1)  # by now there is no room left for it
        began = time.monotonic()
        quick.send_multipart(replay_request(2990, None))
        assert numbers(receive_answer(quick)[0]) == list(range(2990, 3000))
        assert time.monotonic() - began < 2
        got = [first]
        while got[-1][-2] != END:
            got.append(slow.recv_multipart())
            if len(got) % 100 == 0:
                time.sleep(0.005)
    assert numbers(got[:-1]) == list(range(3000))


def test_a_reader_that_takes_nothing_is_given_up(places):
    with KvEventPublisher(places.free(), replay=places.free(), patience=0.2) as publisher:
        publish_much(publisher)
        options = {"rcvhwm": 1, "rcvbuf": 4096}
        with Reader(zmq.DEALER, publisher.replay_endpoint, **options) as stuck:
            stuck.send_multipart(replay_request(0, None))
            wait_for(lambda: publisher.answers.given_up == 1)


def test_a_reader_that_goes_away_is_given_up(publisher):
    publish_much(publisher)
    options = {"rcvhwm": 1, "rcvbuf": 4096}
    with Reader(zmq.DEALER, publisher.replay_endpoint, **options) as gone:
        gone.send_multipart(replay_request(0, None))
        gone.recv_multipart()
    wait_for(lambda: publisher.answers.given_up == 1)


def publish_much(publisher):
    """More than there is room for on the way: a kernel takes some megabytes."""
    event = stored(1, 200)
    for _ in range(2000):
        publisher.publish([event])
    assert publisher.flush(10)


def wait_for(condition):
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_head_says_who_it_is_and_that_it_is_too_old(places):
    with KvEventPublisher(places.free(), replay=places.free(), buffer=3) as publisher:
        for _ in range(5):
            publisher.publish([])
        publisher.flush()
        with Reader(zmq.DEALER, publisher.replay_endpoint) as dealer:
            dealer.send_multipart(replay_request(0, 7))
            (head, *batches), end = receive_answer(dealer)
    said = parse_reply(head).head
    assert (said.incarnation, said.id) == (publisher.incarnation, 7)
    assert (said.oldest, said.next, said.too_old) == (2, 5, True)
    assert numbers(batches) == [2, 3, 4]
    assert parse_reply(end).head.id == 7


def test_a_snapshot_is_the_present_blocks(publisher):
    publisher.publish([stored(1, 4)])
    publisher.publish([stored(9, 2, parent=4), removed(2)])
    publisher.flush()
    with Reader(zmq.DEALER, publisher.replay_endpoint) as dealer:
        dealer.send_multipart(snapshot_request(3))
        (head, *batches), _ = receive_answer(dealer)
    assert parse_reply(head).head.next == 2
    truth, view = PresentBlocks(), PresentBlocks()
    truth.apply([stored(1, 4), stored(9, 2, parent=4), removed(2)], 0)
    for frames in batches:
        view.apply(decode(frames[-1]).events, 0)
    assert view.copies() == truth.copies()


def test_where_nothing_is_sent_any_more_the_blocks_are_brought_up_to_date_unasked(publisher):
    for at in range(20):
        publisher.publish([stored(at, 1)])
    wait_for(lambda: len(publisher._table._blocks) == 20)
    assert not publisher._table.pending


def test_where_sending_never_ceases_no_more_is_put_off_than_may_wait_to_be_sent(
    places, monkeypatch
):
    monkeypatch.setattr(
        "zerohop.serving.kv.publisher._QUIET", SECONDS
    )  # so that it never comes to that
    with KvEventPublisher(places.free(), replay=places.free(), max_queue=10) as made:
        for at in range(100):
            made.publish([stored(at, 1)])
            assert made.flush(SECONDS)
        wait_for(lambda: len(made._table.pending) <= 10)
        assert len(made._table._blocks) >= 90


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # Python 3.12
def test_in_a_child_of_fork_it_is_closed(publisher):
    child = os.fork()
    if child == 0:
        try:
            publisher.publish([])
        except zmq.ZMQError as error:
            os._exit(error.errno == zmq.ENOTSOCK)
        finally:
            os._exit(2)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 1


def test_what_cannot_be_encoded_has_a_number_and_spoils_snapshots_until_a_clear(publisher):
    publisher.publish([stored(2**70)])
    wait_for(lambda: publisher.unencodable == 1)
    assert publisher.next_seq == 1
    with Reader(zmq.DEALER, publisher.replay_endpoint) as dealer:
        dealer.send_multipart(snapshot_request(1))
        assert parse_reply(receive_answer(dealer)[0][0]).head.too_old
        publisher.clear()
        assert publisher.flush()
        dealer.send_multipart(snapshot_request(2))
        [head], _ = receive_answer(dealer)
        assert not parse_reply(head).head.too_old
        assert parse_reply(head).head.next == 2


@pytest.mark.parametrize(
    ("events", "ts"),
    [
        (None, None),
        (stored(1), None),  # an event, where a list of them is expected
        ([BlockStored(["a", b"b"], None, [1], 1)], None),
        ([BlockStored([None, b"b"], None, [1], 1)], None),
        ([BlockStored([np.uint64(1), b"b"], None, [1], 1)], None),
        ([BlockStored(7, None, [1], 1)], None),
        ([BlockRemoved(iter([1]))], None),
        (["BlockStored"], None),
        ([stored(1)], "now"),
    ],
)
def test_a_mistake_of_the_engine_is_counted_and_ends_neither_thread(publisher, events, ts):
    publisher.publish(events, ts)
    wait_for(lambda: publisher.unencodable == 1)
    with Reader(zmq.DEALER, publisher.replay_endpoint) as dealer:
        dealer.send_multipart(snapshot_request(1))
        receive_answer(dealer)
        publisher.clear()
        assert publisher.flush(SECONDS)
        dealer.send_multipart(snapshot_request(2))
        [head], _ = receive_answer(dealer)
        assert parse_reply(head).head.next == 2


def test_mistakes_without_end_are_told_to_the_log_ever_more_seldom(publisher, caplog):
    for _ in range(100):
        publisher.publish(None)
    assert publisher.flush(SECONDS)
    assert publisher.unencodable == 100
    assert len(caplog.records) == 7  # the first, the second, the fourth ... the 64th


def test_what_has_no_room_is_dropped_with_its_number_and_there_is_no_snapshot(places):
    with KvEventPublisher(places.free(), replay=places.free(), max_queue=0) as publisher:
        assert [publisher.publish([stored(1)]) for _ in range(3)] == [0, 1, 2]
        assert publisher.dropped == 3
        with Reader(zmq.DEALER, publisher.replay_endpoint) as dealer:
            dealer.send_multipart(snapshot_request(1))
            assert parse_reply(receive_answer(dealer)[0][0]).head.too_old


def test_what_is_no_request_is_counted_and_ends_nothing(publisher):
    with Reader(zmq.DEALER, publisher.replay_endpoint) as dealer:
        dealer.send_multipart([b"", b"a", b"b"])
        dealer.send_multipart(replay_request(0, None))
        assert receive_answer(dealer)[0] == []
    assert publisher.answers.refused == 1


def test_many_readers_at_a_time_are_answered_in_turn(places):
    with KvEventPublisher(places.free(), replay=places.free(), max_replays=2) as publisher:
        for _ in range(50):
            publisher.publish([])
        publisher.flush()
        found = []

        def read():
            with Reader(zmq.DEALER, publisher.replay_endpoint) as dealer:
                for _ in range(2):
                    dealer.send_multipart(replay_request(0, None))
                found.extend(numbers(receive_answer(dealer)[0]) for _ in range(2))

        threads = [threading.Thread(target=read) for _ in range(5)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    assert found == [list(range(50))] * 10


def test_after_the_end_nothing_is_published(places):
    publisher = KvEventPublisher(places.free(), replay=places.free())
    began = time.monotonic()
    publisher.close()
    publisher.close()
    assert time.monotonic() - began < 3
    with pytest.raises(zmq.ZMQError):
        publisher.publish([])


def test_an_endpoint_that_is_taken_leaves_nothing_behind(places):
    with KvEventPublisher(places.free()) as publisher:
        with pytest.raises(zmq.ZMQError):
            KvEventPublisher(publisher.endpoint, bind=True)
        with pytest.raises(zmq.ZMQError):
            KvEventPublisher(places.free(), replay=publisher.endpoint)


@pytest.mark.parametrize(
    ("endpoint", "bound"),
    [
        ("tcp://*:5557", True),
        ("tcp://0.0.0.0:5557", True),
        ("tcp://[::]:5557", True),
        ("tcp://127.0.0.1:0", True),
        ("ipc:///run/kv", True),
        ("inproc://kv", True),
        ("tcp://router:5557", False),
        ("tcp://127.0.0.1:5557", False),
    ],
)
def test_what_is_bound_and_what_is_connected(endpoint, bound):
    assert binds(endpoint) is bound


def test_the_endpoint_of_a_rank():
    ranks = [endpoint_of_rank(e, 2) for e in ("tcp://*:5557", "tcp://*:0", "ipc:///run/kv")]
    assert ranks == ["tcp://*:5559", "tcp://*:0", "ipc:///run/kv_dp2"]
    assert endpoint_of_rank("tcp://*:5557", 0) == "tcp://*:5557"
