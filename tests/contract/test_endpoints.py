"""bind, connect, unbind, disconnect, LAST_ENDPOINT (zmq_tcp(7), zmq_ipc(7), zmq_inproc(7))."""

import errno
import os
import socket

import pytest

from tests.kit.net import free_port


async def test_last_endpoint_is_where_the_socket_is_bound(net, zmq):
    pull, push, endpoint = net.socket(zmq.PULL), net.socket(zmq.PUSH), net.endpoint()
    assert pull.last_endpoint == b""
    pull.bind(endpoint)
    assert pull.last_endpoint == endpoint.encode()
    push.connect(endpoint)
    assert push.last_endpoint == endpoint.encode()


@pytest.mark.over("tcp", "ipc")
async def test_a_wildcard_becomes_an_address_one_can_connect_to(net, zmq):
    pull, push = net.socket(zmq.PULL), net.socket(zmq.PUSH)
    pull.bind({"tcp": "tcp://127.0.0.1:*", "ipc": "ipc://*"}[net.transport])
    assert b"*" not in pull.last_endpoint
    push.connect(pull.last_endpoint.decode())
    await push.send(b"found")
    assert await pull.recv() == b"found"


@pytest.mark.over("tcp")
@pytest.mark.parametrize(
    ("bind", "connect"),
    [
        pytest.param("*:{}", "127.0.0.1:{}", id="all interfaces"),
        pytest.param("0.0.0.0:{}", "127.0.0.1:{}", id="any address"),
        pytest.param("lo:{}", "127.0.0.1:{}", id="an interface by name"),
        pytest.param("127.0.0.1:{}", "localhost:{}", id="a host by name"),
        pytest.param("127.0.0.1:{}", "127.0.0.1:0;127.0.0.1:{}", id="from a source address"),
    ],
)
async def test_tcp_addresses_come_in_many_forms(net, zmq, bind, connect):
    pull, push, port = net.socket(zmq.PULL), net.socket(zmq.PUSH), free_port()
    pull.bind("tcp://" + bind.format(port))
    push.connect("tcp://" + connect.format(port))
    await push.send(b"found")
    assert await pull.recv() == b"found"


@pytest.mark.over("ipc")
@pytest.mark.parametrize("name", ["@zerohop-{}", "@zerohop with a space-{}"])
async def test_ipc_has_abstract_names_too(net, zmq, name):
    pull, push = net.socket(zmq.PULL), net.socket(zmq.PUSH)
    endpoint = f"ipc://{name.format(os.getpid())}"
    await net.link(pull, push, endpoint=endpoint)
    await push.send(b"found")
    assert await pull.recv() == b"found"
    assert pull.last_endpoint == endpoint.encode()


async def test_a_socket_may_be_bound_in_several_places(net, zmq):
    pull, pushes = net.socket(zmq.PULL), [net.socket(zmq.PUSH) for _ in range(3)]
    for push in pushes:
        await net.link(pull, push)
    for n, push in enumerate(pushes):
        await push.send(b"%d" % n)
    assert sorted([await pull.recv() for _ in pushes]) == [b"0", b"1", b"2"]


async def test_two_sockets_cannot_be_bound_to_one_endpoint(net, zmq):
    if net.transport == "ipc" and net.library.is_libzmq:
        endpoint = f"ipc://@taken-{os.getpid()}"  # a path would be stolen: see the next test
    else:
        endpoint = net.endpoint()
    first, second, push = net.socket(zmq.PULL), net.socket(zmq.PULL), net.socket(zmq.PUSH)
    first.bind(endpoint)
    with pytest.raises(zmq.ZMQError) as taken:
        second.bind(endpoint)
    assert taken.value.errno == zmq.EADDRINUSE
    await net.join(endpoint, first, push)
    await push.send(b"to the first")
    assert await first.recv() == b"to the first"


@pytest.mark.over("ipc")
async def test_the_file_that_a_dead_process_left_is_replaced(net, zmq):
    path = f"{net.directory}/stale"
    dead = socket.socket(socket.AF_UNIX)
    dead.bind(path)
    dead.close()
    pull, push = net.socket(zmq.PULL), net.socket(zmq.PUSH)
    await net.link(pull, push, endpoint=f"ipc://{path}")
    await push.send(b"found")
    assert await pull.recv() == b"found"


@pytest.mark.zerohop  # libzmq 4.3.5 leaves the file
@pytest.mark.over("ipc")
@pytest.mark.parametrize("how", ["unbind", "close"])
async def test_the_file_of_an_ipc_endpoint_goes_with_it(net, zmq, how):
    pull, endpoint = net.socket(zmq.PULL), net.endpoint()
    name = endpoint.rpartition("/")[2]
    pull.bind(endpoint)
    assert name in os.listdir(net.directory)
    pull.unbind(endpoint) if how == "unbind" else pull.close()
    assert name not in os.listdir(net.directory)


@pytest.mark.zerohop  # libzmq lets it be done later, by another thread: libzmq #2772
@pytest.mark.parametrize("how", ["unbind", "close"])
async def test_an_endpoint_is_free_when_unbind_or_close_returns(net, zmq, how):
    endpoint = net.endpoint()
    for _ in range(5):
        pull, push = net.socket(zmq.PULL), net.socket(zmq.PUSH)
        await net.link(pull, push, endpoint=endpoint)
        pull.unbind(endpoint) if how == "unbind" else pull.close()


async def test_after_unbind_an_endpoint_can_be_bound_by_another(net, zmq):
    first, second, push = net.socket(zmq.PULL), net.socket(zmq.PULL), net.socket(zmq.PUSH)
    endpoint = net.endpoint()
    first.bind(endpoint)
    first.unbind(endpoint)
    await net.rebind(second, endpoint)
    await net.join(endpoint, second, push)
    await push.send(b"to the second")
    assert await second.recv() == b"to the second"


@pytest.mark.over("tcp", "ipc")
async def test_unbind_ends_the_connections_made_through_it(net, zmq):
    push, pull = net.socket(zmq.PUSH), net.socket(zmq.PULL, reconnect_ivl=-1)
    endpoint = await net.link(push, pull)
    await push.send(b"before")
    assert await pull.recv() == b"before"
    push.unbind(endpoint)
    await net.eventually(lambda: not push.events & zmq.POLLOUT)


async def test_disconnect_ends_the_connection(net, zmq):
    pull, push = net.socket(zmq.PULL), net.socket(zmq.PUSH)
    endpoint = await net.link(pull, push)
    await push.send(b"before")
    assert await pull.recv() == b"before"
    push.disconnect(endpoint)
    await net.eventually(lambda: not push.events & zmq.POLLOUT)
    push.connect(endpoint)
    await push.send(b"again")
    assert await pull.recv() == b"again"


async def test_a_disconnected_endpoint_is_not_sent_to_while_others_are(net, zmq):
    push, pulls = net.socket(zmq.PUSH), [net.socket(zmq.PULL) for _ in range(2)]
    endpoints = [await net.link(pull, push) for pull in pulls]
    push.disconnect(endpoints[0])
    for n in range(4):
        await push.send(b"%d" % n)
    assert [await pulls[1].recv() for _ in range(4)] == [b"0", b"1", b"2", b"3"]


@pytest.mark.over("tcp", "ipc")
async def test_a_dealer_connects_once_to_an_endpoint_and_a_push_as_often_as_asked(net, zmq):
    for kind, peer_kind, expected in ((zmq.DEALER, zmq.DEALER, 1), (zmq.PUSH, zmq.PULL, 2)):
        connector = net.socket(kind, sndhwm=1)
        endpoint = net.endpoint()
        for _ in range(2):
            connector.connect(endpoint)
        sent = 0
        while connector.events & zmq.POLLOUT:  # each pipe takes one message
            await connector.send(b"x", zmq.DONTWAIT)
            sent += 1
        assert sent == expected
        peer = net.socket(peer_kind)
        peer.bind(endpoint)
        assert [await peer.recv() for _ in range(sent)] == [b"x"] * sent


async def test_bind_and_connect_give_back_what_a_with_statement_undoes(net, zmq):
    pull, push, endpoint = net.socket(zmq.PULL), net.socket(zmq.PUSH), net.endpoint()
    with pull.bind(endpoint), push.connect(endpoint):
        await push.send(b"inside")
        assert await pull.recv() == b"inside"
    await net.eventually(lambda: not push.events & zmq.POLLOUT)
    with pytest.raises(zmq.ZMQError) as unknown:
        pull.unbind(endpoint)
    assert unknown.value.errno == errno.ENOENT


@pytest.mark.over("tcp")
async def test_a_random_port_lies_in_the_range_asked_for(net, zmq):
    pull, push = net.socket(zmq.PULL), net.socket(zmq.PUSH)
    port = pull.bind_to_random_port("tcp://127.0.0.1", min_port=33000, max_port=33500)
    assert 33000 <= port < 33500
    push.connect(f"tcp://127.0.0.1:{port}")
    await push.send(b"found")
    assert await pull.recv() == b"found"


@pytest.mark.over("tcp")
async def test_a_range_of_ports_that_are_all_taken_is_an_error(net, zmq):
    taken, pull = net.socket(zmq.PULL), net.socket(zmq.PULL)
    port = free_port()
    taken.bind(f"tcp://127.0.0.1:{port}")
    with pytest.raises(zmq.ZMQBindError):
        pull.bind_to_random_port("tcp://127.0.0.1", min_port=port, max_port=port + 1, max_tries=3)


@pytest.mark.over("inproc")
async def test_inproc_names_belong_to_a_context(net, zmq):
    mine, other = net.socket(zmq.PULL), net.socket(zmq.PULL, context=net.new_context())
    endpoint = net.endpoint()
    mine.bind(endpoint)
    other.bind(endpoint)
    push = net.socket(zmq.PUSH)
    push.connect(endpoint)
    await push.send(b"mine")
    assert await mine.recv() == b"mine"
    with pytest.raises(zmq.Again):
        await other.recv(zmq.DONTWAIT)


@pytest.mark.over("inproc")
async def test_many_sockets_may_wait_for_an_inproc_name(net, zmq):
    pushes, endpoint = [net.socket(zmq.PUSH) for _ in range(20)], net.endpoint()
    for n, push in enumerate(pushes):
        push.connect(endpoint)
        await push.send(b"%d" % n)
    pull = net.socket(zmq.PULL)
    pull.bind(endpoint)
    assert sorted([int(await pull.recv()) for _ in pushes]) == list(range(20))


@pytest.mark.zerohop  # libzmq binds port 99999 % 65536
@pytest.mark.over("tcp")
@pytest.mark.parametrize("port", ["65536", "99999", "-1"])
@pytest.mark.parametrize("how", ["bind", "connect"])
async def test_a_port_out_of_range_is_an_error(net, zmq, port, how):
    with pytest.raises(zmq.ZMQError) as wrong:
        getattr(net.socket(zmq.PULL), how)(f"tcp://127.0.0.1:{port}")
    assert wrong.value.errno == zmq.EINVAL
