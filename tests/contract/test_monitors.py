"""Monitors: what happens to a socket's connections, as messages (zmq_socket_monitor(3))."""

import pytest

pytestmark = pytest.mark.over("tcp", "ipc")


async def test_both_ends_see_a_connection_come_and_go(net, zmq):
    pull, push, endpoint = net.socket(zmq.PULL), net.socket(zmq.PUSH), net.endpoint()
    handshake = zmq.EVENT_HANDSHAKE_SUCCEEDED
    bound = zmq.EVENT_LISTENING | zmq.EVENT_ACCEPTED | handshake | zmq.EVENT_DISCONNECTED
    connected = zmq.EVENT_CONNECTED | handshake | zmq.EVENT_DISCONNECTED
    with net.watch(pull, bound) as at_pull, net.watch(push, connected) as at_push:
        pull.bind(endpoint)
        assert await at_pull.next() == zmq.EVENT_LISTENING
        push.connect(endpoint)
        assert [await at_pull.next(), await at_pull.next()] == [zmq.EVENT_ACCEPTED, handshake]
        assert [await at_push.next(), await at_push.next()] == [zmq.EVENT_CONNECTED, handshake]
        push.close()
        assert await at_pull.next() == zmq.EVENT_DISCONNECTED


async def test_a_peer_that_is_not_there_is_tried_again_and_again(net, zmq):
    push = net.socket(zmq.PUSH, reconnect_ivl=5)
    with net.watch(push, zmq.EVENT_CONNECT_RETRIED) as events:
        push.connect(net.endpoint())
        assert {await events.next() for _ in range(5)} == {zmq.EVENT_CONNECT_RETRIED}


async def test_a_monitor_message_has_event_value_and_endpoint(net, zmq):
    pull, endpoint = net.socket(zmq.PULL), net.endpoint()
    monitor = net.adopt(pull.get_monitor_socket(zmq.EVENT_LISTENING))
    pull.bind(endpoint)
    head, address = await monitor.recv_multipart()
    assert (len(head), int.from_bytes(head[:2], "little")) == (6, zmq.EVENT_LISTENING)
    assert address == endpoint.encode()
    pull.disable_monitor()
    monitor.close()


async def test_only_the_events_that_were_asked_for_are_reported(net, zmq):
    pull, push = net.socket(zmq.PULL), net.socket(zmq.PUSH)
    with net.watch(pull, zmq.EVENT_HANDSHAKE_SUCCEEDED) as events:
        endpoint = net.endpoint()
        pull.bind(endpoint)
        push.connect(endpoint)
        assert await events.next() == zmq.EVENT_HANDSHAKE_SUCCEEDED


async def test_a_monitor_that_ends_says_so(net, zmq):
    pull = net.socket(zmq.PULL)
    monitor = net.adopt(pull.get_monitor_socket())
    pull.disable_monitor()
    head, _ = await monitor.recv_multipart()
    assert int.from_bytes(head[:2], "little") == zmq.EVENT_MONITOR_STOPPED
    monitor.close()


@pytest.mark.zerohop  # in libzmq this stops the I/O of the whole context: issue 3575
async def test_a_monitor_that_nobody_reads_holds_nothing_up(net, zmq):
    pull, push = net.socket(zmq.PULL), net.socket(zmq.PUSH)
    unread = net.adopt(pull.get_monitor_socket())
    gone = net.adopt(push.get_monitor_socket())
    gone.close()
    endpoint = await bound_with_traffic(net, zmq, pull, push)
    for _ in range(20):
        other = net.socket(zmq.PUSH)
        other.connect(endpoint)
        await other.send(b"x")
        assert await pull.recv() == b"x"
        other.close()
    unread.close()


async def bound_with_traffic(net, zmq, pull, push):
    endpoint = net.endpoint()
    pull.bind(endpoint)
    push.connect(endpoint)
    await push.send(b"first")
    assert await pull.recv() == b"first"
    return endpoint
