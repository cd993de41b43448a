import struct

import pytest

import zerohop as zmq
from zerohop import devices

MS = 8000


@pytest.fixture
def context():
    made = zmq.Context()
    made.linger = 0
    made.rcvtimeo = made.sndtimeo = MS
    made._kept = []  # its sockets, until it is destroyed
    yield made
    made.destroy(linger=0)


def new(context, kind):
    made = context.socket(kind)
    context._kept.append(made)
    return made


def connected(context, kind, port):
    made = new(context, kind)
    made.connect(f"tcp://127.0.0.1:{port}")
    return made


def threaded(device):
    """Let the device use a context of its own, which ends it."""
    own = zmq.Context()
    own.linger = 0
    device.context_factory = lambda: own
    return own


def end(own, device):
    own.term()
    device.join(10)
    assert device.done
    assert not device.launcher.is_alive()


def test_a_queue_runs_in_a_thread(context):
    device = devices.ThreadDevice(zmq.QUEUE, zmq.ROUTER, zmq.DEALER)
    own = threaded(device)
    clients, workers = (
        device.bind_in_to_random_port("tcp://127.0.0.1"),
        device.bind_out_to_random_port("tcp://127.0.0.1"),
    )
    device.setsockopt_in(zmq.IDENTITY, b"front")
    device.setsockopt_out(zmq.IDENTITY, b"back")
    device.start()
    req, rep = connected(context, zmq.REQ, clients), connected(context, zmq.REP, workers)
    req.send(b"question")
    assert rep.recv() == b"question"
    rep.send(b"answer")
    assert req.recv() == b"answer"
    assert [peer.routing_id for peer in req.peers()] == [b"front"]
    assert not device.done
    end(own, device)


def test_a_device_of_one_socket_echoes(context):
    device = devices.ThreadDevice(zmq.QUEUE, zmq.REP, -1)
    own = threaded(device)
    port = device.bind_in_to_random_port("tcp://127.0.0.1")
    device.start()
    req = connected(context, zmq.REQ, port)
    req.send(b"hello")
    assert req.recv() == b"hello"
    end(own, device)


def test_a_device_can_connect(context):
    pull_from, push_to = new(context, zmq.PUSH), new(context, zmq.PULL)
    device = devices.ThreadDevice(zmq.STREAMER, zmq.PULL, zmq.PUSH)
    own = threaded(device)
    device.connect_in(f"tcp://127.0.0.1:{pull_from.bind_to_random_port('tcp://127.0.0.1')}")
    device.connect_out(f"tcp://127.0.0.1:{push_to.bind_to_random_port('tcp://127.0.0.1')}")
    device.start()
    pull_from.send(b"through")
    assert push_to.recv() == b"through"
    end(own, device)


def test_start_runs_a_plain_device_here():
    device = devices.Device(zmq.QUEUE, zmq.PULL, zmq.PUSH)
    context = zmq.Context()
    device.context_factory = lambda: context
    device.bind_in("inproc://in")
    device.bind_out("inproc://out")
    device.connect_in("inproc://elsewhere")
    ended = devices.ThreadDevice._launch_class(target=device.start)
    ended.start()
    context.term(timeout=10)
    ended.join(10)
    assert device.done


def test_a_proxy_copies_to_its_third_socket(context):
    device = devices.ThreadProxy(zmq.PULL, zmq.PUSH, zmq.PUSH)
    own = threaded(device)
    source = device.bind_in_to_random_port("tcp://127.0.0.1")
    sink = device.bind_out_to_random_port("tcp://127.0.0.1")
    copies = device.bind_mon_to_random_port("tcp://127.0.0.1")
    device.setsockopt_mon(zmq.SNDHWM, 5)
    device.start()
    push, pull, seen = (
        connected(context, zmq.PUSH, source),
        connected(context, zmq.PULL, sink),
        connected(context, zmq.PULL, copies),
    )
    push.send(b"x")
    assert pull.recv() == seen.recv() == b"x"
    end(own, device)


def test_a_steerable_proxy_terminates_when_told(context):
    device = devices.ThreadProxySteerable(zmq.PULL, zmq.PUSH, zmq.PUB, zmq.REP)
    own = threaded(device)
    device.bind_in("inproc://in")
    device.bind_out("inproc://out")
    device.bind_mon("inproc://mon")
    device.setsockopt_ctrl(zmq.SNDHWM, 5)
    port = device.bind_ctrl_to_random_port("tcp://127.0.0.1")
    device.bind_ctrl("inproc://ctrl")
    device.start()
    control = connected(context, zmq.REQ, port)
    control.send(b"STATISTICS")
    assert [struct.unpack("=Q", part)[0] for part in control.recv_multipart()] == [0] * 8
    control.send(b"TERMINATE")
    assert control.recv() == b""
    device.join(10)
    assert device.done
    own.term()


def test_a_steerable_proxy_is_steered_by_a_pair_unless_told_otherwise():
    device = devices.ProxySteerable(zmq.PULL, zmq.PUSH)
    device.connect_ctrl("inproc://commands")
    device.connect_mon("inproc://copies")
    assert (device.ctrl_type, device.mon_type) == (zmq.PAIR, zmq.PUB)


def test_a_monitored_queue_has_prefixes(context):
    device = devices.ThreadMonitoredQueue(zmq.PULL, zmq.PUSH, zmq.PUSH, "forth", b"back")
    own = threaded(device)
    source = device.bind_in_to_random_port("tcp://127.0.0.1")
    sink = device.bind_out_to_random_port("tcp://127.0.0.1")
    copies = device.bind_mon_to_random_port("tcp://127.0.0.1")
    device.start()
    push, pull, seen = (
        connected(context, zmq.PUSH, source),
        connected(context, zmq.PULL, sink),
        connected(context, zmq.PULL, copies),
    )
    push.send(b"x")
    assert pull.recv() == b"x"
    assert seen.recv_multipart() == [b"forth", b"x"]
    end(own, device)


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # Python 3.12, fork
def test_a_device_runs_in_a_process(context):
    device = devices.ProcessDevice(zmq.QUEUE, zmq.REP, -1)
    port = device.bind_in_to_random_port("tcp://127.0.0.1")
    device.start()
    req = connected(context, zmq.REQ, port)
    req.send(b"hello")
    assert req.recv() == b"hello"
    device.launcher.terminate()
    device.join(10)
    device.launcher.close()


def test_a_socket_that_cannot_be_made_is_an_error_and_leaves_nothing():
    device = devices.Device(zmq.QUEUE, zmq.PULL, zmq.PUSH)
    context = zmq.Context()
    device.context_factory = lambda: context
    device.bind_in("inproc://in")
    device.bind_out("tcp://nosuchif:5555")
    with pytest.raises(zmq.ZMQError) as raised:
        device.run()
    assert raised.value.errno == 19  # ENODEV
    assert device.done
    context.term(timeout=0)


@pytest.mark.parametrize(
    "args, text",
    [
        ((), "in_type must be specified"),
        ((zmq.QUEUE, zmq.REP), "out_type must be specified"),
    ],
)
def test_both_types_must_be_given(args, text):
    with pytest.raises(TypeError, match=text):
        devices.Device(*args)


def test_ports_that_a_device_has_reserved_differ():
    device = devices.Device(zmq.QUEUE, zmq.PULL, zmq.PUSH)
    ports = {device.bind_in_to_random_port("tcp://127.0.0.1") for _ in range(5)}
    assert len(ports) == 5
