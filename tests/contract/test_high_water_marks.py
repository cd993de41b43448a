"""High-water marks count whole messages, for each peer (zmq_socket(3); libzmq's test_hwm).

Over inproc there is nothing between the two queues, so the sum is exact.
"""

import pytest

from tests.kit.traffic import drain, fill, receive_numbers

UNLIMITED = 300  # none of the finite sums comes near

SUMS = [
    pytest.param(10, 5, 15, id="10+5"),
    pytest.param(1, 1, 2, id="1+1"),
    pytest.param(0, 5, UNLIMITED, id="no limit to send"),
    pytest.param(5, 0, UNLIMITED, id="no limit to receive"),
    pytest.param(0, 0, UNLIMITED, id="no limit"),
]


@pytest.mark.over("inproc")
@pytest.mark.parametrize(("sndhwm", "rcvhwm", "total"), SUMS)
async def test_two_ends_of_inproc_hold_the_sum_of_their_marks(net, zmq, sndhwm, rcvhwm, total):
    push, pull = net.socket(zmq.PUSH, sndhwm=sndhwm), net.socket(zmq.PULL, rcvhwm=rcvhwm)
    await net.link(pull, push)
    assert await fill(zmq, push, UNLIMITED) == total
    assert await receive_numbers(pull, total) == list(range(total))


@pytest.mark.over("inproc")
@pytest.mark.parametrize(("sndhwm", "rcvhwm", "total"), SUMS)
async def test_the_sum_is_the_same_where_the_sender_binds(net, zmq, sndhwm, rcvhwm, total):
    push, pull = net.socket(zmq.PUSH, sndhwm=sndhwm), net.socket(zmq.PULL, rcvhwm=rcvhwm)
    await net.link(push, pull)
    assert await fill(zmq, push, UNLIMITED) == total
    assert await receive_numbers(pull, total) == list(range(total))


@pytest.mark.over("inproc")
@pytest.mark.parametrize(("sndhwm", "rcvhwm", "total"), SUMS)
async def test_the_sum_is_the_same_where_connect_comes_first(net, zmq, sndhwm, rcvhwm, total):
    push, pull = net.socket(zmq.PUSH, sndhwm=sndhwm), net.socket(zmq.PULL, rcvhwm=rcvhwm)
    endpoint = net.endpoint()
    push.connect(endpoint)
    pull.bind(endpoint)
    assert await fill(zmq, push, UNLIMITED) == total
    assert await receive_numbers(pull, total) == list(range(total))


@pytest.mark.over("inproc")
async def test_a_message_of_many_parts_counts_once(net, zmq):
    push, pull = net.socket(zmq.PUSH, sndhwm=2), net.socket(zmq.PULL, rcvhwm=3)
    await net.link(pull, push)
    assert await fill(zmq, push, UNLIMITED, b"b", b"c", b"d", b"e", b"f", b"g") == 5
    assert await pull.recv_multipart() == [b"0", b"b", b"c", b"d", b"e", b"f", b"g"]


@pytest.mark.over("inproc")
async def test_a_full_queue_takes_again_once_half_of_it_is_read(net, zmq):
    push, pull = net.socket(zmq.PUSH, sndhwm=10), net.socket(zmq.PULL, rcvhwm=5)
    await net.link(pull, push)
    assert await fill(zmq, push, UNLIMITED) == 15
    await receive_numbers(pull, 7)
    assert not push.events & zmq.POLLOUT
    await receive_numbers(pull, 1)  # the eighth: (15 + 1) / 2 are read
    assert push.events & zmq.POLLOUT
    assert await fill(zmq, push, UNLIMITED) == 8
    assert await receive_numbers(pull, 15) == [*range(8, 15), *range(8)]


@pytest.mark.over("inproc")
async def test_each_peer_has_a_mark_of_its_own(net, zmq):
    push, pulls = net.socket(zmq.PUSH, sndhwm=2), [net.socket(zmq.PULL, rcvhwm=2) for _ in "abc"]
    for pull in pulls:
        await net.link(pull, push)
    assert await fill(zmq, push, UNLIMITED) == 12
    assert [len(await drain(zmq, pull)) for pull in pulls] == [4, 4, 4]


@pytest.mark.over("tcp", "ipc")
@pytest.mark.parametrize("socket_type", ["PUSH", "DEALER", "PAIR"])
async def test_before_its_peer_is_there_a_connection_holds_sndhwm(net, zmq, socket_type):
    sender = net.socket(getattr(zmq, socket_type), sndhwm=7)
    sender.connect(net.endpoint())
    assert await fill(zmq, sender, UNLIMITED) == 7


@pytest.mark.parametrize("socket_type", ["PUSH", "DEALER", "PAIR"])
async def test_a_mark_of_zero_is_no_limit(net, zmq, socket_type):
    sender = net.socket(getattr(zmq, socket_type), sndhwm=0)
    sender.connect(net.endpoint())
    assert await fill(zmq, sender, UNLIMITED) == UNLIMITED


@pytest.mark.over("tcp", "ipc")
async def test_a_peer_that_does_not_read_stops_its_sender_and_loses_nothing(net, zmq):
    push = net.socket(zmq.PUSH, sndhwm=10, sndbuf=65536)
    pull = net.socket(zmq.PULL, rcvhwm=10, rcvbuf=65536)
    await net.link(pull, push)
    taken = await fill(zmq, push, 500, b"x" * 100_000, settle_ms=100)
    assert 20 <= taken < 100  # two queues of ten, and what the kernel holds
    assert await receive_numbers(pull, taken) == list(range(taken))
    await push.send(b"goes on")
    assert await pull.recv() == b"goes on"


async def test_a_sender_that_waits_goes_on_when_the_peer_reads(net, zmq):
    push, pull = net.socket(zmq.PUSH, sndhwm=5), net.socket(zmq.PULL, rcvhwm=5)
    await net.link(pull, push)

    async def send_all():
        for n in range(300):
            await push.send_multipart([b"%d" % n, b"x" * 10_000])

    sending = net.start(send_all())
    assert await receive_numbers(pull, 300) == list(range(300))
    await sending


@pytest.mark.over("inproc")
async def test_the_marks_may_be_changed_on_a_live_socket(net, zmq):
    push, pull = net.socket(zmq.PUSH, sndhwm=1), net.socket(zmq.PULL, rcvhwm=1)
    await net.link(pull, push)
    push.sndhwm = 9
    assert await fill(zmq, push, UNLIMITED) == 10


@pytest.mark.over("inproc")
async def test_hwm_sets_both_marks(net, zmq):
    push = net.socket(zmq.PUSH)
    push.hwm = 3
    assert (push.sndhwm, push.rcvhwm) == (3, 3)
    push.set_hwm(4)
    assert (push.sndhwm, push.rcvhwm, push.get_hwm()) == (4, 4, 4)
