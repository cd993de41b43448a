import struct
import threading
from contextlib import contextmanager

import pytest

import zerohop as zmq
import zerohop.asyncio
from zerohop import devices

MS = 5000


class Setup:
    """A context, its sockets by inproc, and whatever relays between two of them in a thread."""

    def __init__(self):
        self.context = zmq.Context()
        self.context.rcvtimeo = self.context.sndtimeo = MS
        self.context.linger = 0

    def bound(self, kind, name, **options):
        made = self.context.socket(kind)
        for option, value in options.items():
            setattr(made, option, value)
        made.bind(f"inproc://{name}")
        return made

    def connected(self, kind, name):
        made = self.context.socket(kind)
        made.connect(f"inproc://{name}")
        return made

    @contextmanager
    def running(self, relay, *args):
        """Relay in a thread; on leaving, close every socket and end the context."""
        ended = []

        def run():
            try:
                ended.append(relay(*args))
            except zmq.ContextTerminated as error:
                ended.append(error)
            finally:
                for made in args:
                    if isinstance(made, zmq.Socket):
                        made.close()

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield ended
        finally:
            for made in list(self.context._sockets):
                if made not in args:
                    made.close()
            self.context.term()
            thread.join(10)
            assert len(ended) == 1


@pytest.fixture
def setup():
    return Setup()


def test_requests_go_forth_and_replies_back(setup):
    with setup.running(zmq.proxy, setup.bound(zmq.ROUTER, "in"), setup.bound(zmq.DEALER, "out")):
        req, rep = setup.connected(zmq.REQ, "in"), setup.connected(zmq.REP, "out")
        for n in range(3):
            req.send_multipart([b"question", b"%d" % n])
            assert rep.recv_multipart() == [b"question", b"%d" % n]
            rep.send(b"answer")
            assert req.recv() == b"answer"


def test_more_than_a_burst_passes_in_order_both_ways_at_once(setup):
    front, back = setup.bound(zmq.DEALER, "in", hwm=0), setup.bound(zmq.DEALER, "out", hwm=0)
    with setup.running(zmq.proxy, front, back):
        a, b = setup.connected(zmq.DEALER, "in"), setup.connected(zmq.DEALER, "out")
        for n in range(2500):
            a.send(b"%d" % n)
            b.send(b"%d" % n)
        expected = [b"%d" % n for n in range(2500)]
        assert [b.recv() for _ in expected] == expected
        assert [a.recv() for _ in expected] == expected


def test_what_nobody_can_take_stays_where_it_is(setup):
    front = setup.bound(zmq.PULL, "in", rcvhwm=2)
    back = setup.bound(zmq.PUSH, "out", sndhwm=1)
    with setup.running(zmq.proxy, front, back):
        push = setup.connected(zmq.PUSH, "in")  # its pipe has room for 1002
        push.sndtimeo = 200
        sent = 0
        try:
            while sent < 5000:
                push.send(b"%d" % sent)
                sent += 1
        except zmq.Again:
            pass
        assert sent == 1002  # nothing is in the proxy's hands
        pull = setup.connected(zmq.PULL, "out")
        assert [pull.recv() for _ in range(sent)] == [b"%d" % n for n in range(sent)]


def test_a_busy_direction_lets_a_blocked_one_wait(setup):
    front, back = setup.bound(zmq.DEALER, "in"), setup.bound(zmq.DEALER, "out")
    with setup.running(zmq.proxy, front, back):
        a = setup.connected(zmq.DEALER, "in")
        a.send(b"for nobody yet")
        b = setup.connected(zmq.DEALER, "out")
        assert b.recv() == b"for nobody yet"
        b.send(b"back")
        assert a.recv() == b"back"


def test_the_capture_socket_gets_a_copy_of_everything(setup):
    seen = setup.bound(zmq.PULL, "seen")
    capture = setup.connected(zmq.PUSH, "seen")
    front, back = setup.bound(zmq.PULL, "in"), setup.bound(zmq.PUSH, "out")
    with setup.running(zmq.proxy, front, back, capture):
        push, pull = setup.connected(zmq.PUSH, "in"), setup.connected(zmq.PULL, "out")
        push.send_multipart([b"a", b"b"])
        assert pull.recv_multipart() == seen.recv_multipart() == [b"a", b"b"]


@pytest.mark.parametrize("kind", [zmq.REP, zmq.ROUTER])
def test_one_socket_at_both_ends_sends_everything_back(setup, kind):
    echo = setup.bound(kind, "echo")
    with setup.running(zmq.device, zmq.QUEUE, echo, echo):
        req = setup.connected(zmq.REQ, "echo")
        for n in range(3):
            req.send(b"%d" % n)
            assert req.recv() == b"%d" % n


def test_subscriptions_pass_upstream(setup):
    front, back = setup.bound(zmq.XSUB, "in"), setup.bound(zmq.XPUB, "out")
    with setup.running(zmq.proxy, front, back):
        sub, xpub = setup.connected(zmq.SUB, "out"), setup.connected(zmq.XPUB, "in")
        sub.subscribe("a")
        assert xpub.recv() == b"\x01a"
        xpub.send(b"abc")
        assert sub.recv() == b"abc"


def test_a_closed_socket_ends_the_proxy_with_an_error(setup):
    front, back = setup.bound(zmq.PULL, "in"), setup.bound(zmq.PUSH, "out")
    back.close()
    with pytest.raises(zmq.ZMQError) as raised:
        zmq.proxy(front, back)
    assert raised.value.errno == zmq.ENOTSOCK
    front.close()
    setup.context.term()


def test_only_blocking_sockets_can_be_relayed_between(setup):
    front = setup.bound(zmq.PULL, "in")
    for misuse, name in (
        (lambda: zmq.proxy(front, None), "backend"),
        (lambda: zmq.proxy(5, front), "frontend"),
        (lambda: zmq.proxy(front, front, 5), "capture"),
        (lambda: zmq.device(zmq.QUEUE, 5, front), "frontend"),
        (lambda: zmq.proxy_steerable(front, front, None, 5), "control"),
        (lambda: devices.monitored_queue(front, front, None), "mon_socket"),
    ):
        with pytest.raises(TypeError, match=f"^Argument '{name}' has incorrect type"):
            misuse()
    with pytest.raises(ValueError, match="77 is not a valid DeviceType"):
        zmq.device(77, front, front)
    front.close()
    setup.context.term()


def test_an_asyncio_socket_is_refused(setup):
    context = zerohop.asyncio.Context(setup.context)
    with context.socket(zmq.PULL) as pull, pytest.raises(TypeError, match="got Socket"):
        zmq.proxy(pull, pull)
    setup.context.term()


# Steering


def statistics(control):
    control.send(b"STATISTICS")
    return [struct.unpack("=Q", part)[0] for part in control.recv_multipart()]


@pytest.fixture
def steered(setup):
    """A streamer with a control socket, and its four ends."""
    front, back = setup.bound(zmq.PULL, "in"), setup.bound(zmq.PUSH, "out")
    control = setup.bound(zmq.REP, "control")
    with setup.running(zmq.proxy_steerable, front, back, None, control) as ended:
        yield (
            setup.connected(zmq.PUSH, "in"),
            setup.connected(zmq.PULL, "out"),
            setup.connected(zmq.REQ, "control"),
            ended,
        )


def test_a_paused_proxy_passes_nothing_until_it_resumes(steered):
    push, pull, control, _ = steered
    push.send(b"1")
    assert pull.recv() == b"1"
    for _ in range(2):  # a second PAUSE changes nothing
        control.send(b"PAUSE")
        assert control.recv() == b""
    push.send(b"2")
    assert pull.poll(50) == 0
    control.send(b"RESUME")
    assert control.recv() == b""
    assert pull.recv() == b"2"


def test_statistics_count_parts_and_octets_each_way(steered):
    push, pull, control, _ = steered
    assert statistics(control) == [0] * 8
    push.send_multipart([b"abc", b"de"])
    push.send(b"f")
    assert [pull.recv_multipart(), pull.recv_multipart()] == [[b"abc", b"de"], [b"f"]]
    assert statistics(control) == [3, 6, 0, 0, 0, 0, 3, 6]


def test_terminate_returns(steered):
    _, _, control, ended = steered
    control.send(b"TERMINATE")
    assert control.recv() == b""
    assert control.poll(0) == 0
    for _ in range(1000):
        if ended:
            break
        threading.Event().wait(0.005)
    assert ended == [None]


def test_an_unknown_command_is_answered_and_logged(steered, caplog):
    _, _, control, _ = steered
    control.send(b"JUMP")
    assert control.recv() == b""
    assert "no such command: [b'JUMP']" in caplog.text


def test_without_a_control_socket_it_is_a_proxy(setup):
    front, back = setup.bound(zmq.PULL, "in"), setup.bound(zmq.PUSH, "out")
    with setup.running(zmq.proxy_steerable, front, back):
        push, pull = setup.connected(zmq.PUSH, "in"), setup.connected(zmq.PULL, "out")
        push.send(b"x")
        assert pull.recv() == b"x"


def test_a_steered_proxy_is_captured_too(setup):
    seen = setup.bound(zmq.PULL, "seen")
    capture = setup.connected(zmq.PUSH, "seen")
    front, back = setup.bound(zmq.PULL, "in"), setup.bound(zmq.PUSH, "out")
    control = setup.bound(zmq.PAIR, "control")
    with setup.running(zmq.proxy_steerable, front, back, capture, control) as ended:
        push, pull = setup.connected(zmq.PUSH, "in"), setup.connected(zmq.PULL, "out")
        push.send(b"x")
        assert pull.recv() == seen.recv() == b"x"
        steering = setup.connected(zmq.PAIR, "control")
        steering.send(b"TERMINATE")
        for _ in range(1000):
            if ended:
                break
            threading.Event().wait(0.005)


# Monitored queues


def test_a_monitored_queue_says_which_way_a_message_goes(setup):
    seen = setup.bound(zmq.PULL, "seen")
    mon = setup.connected(zmq.PUSH, "seen")
    front, back = setup.bound(zmq.ROUTER, "in"), setup.bound(zmq.DEALER, "out")
    with setup.running(devices.monitored_queue, front, back, mon, b"IN", b"OUT"):
        req, rep = setup.connected(zmq.REQ, "in"), setup.connected(zmq.REP, "out")
        req.send(b"ask")
        assert rep.recv() == b"ask"
        rep.send(b"answer")
        assert req.recv() == b"answer"
        first, second = seen.recv_multipart(), seen.recv_multipart()
        assert (first[0], first[2:]) == (b"IN", [b"", b"ask"])
        assert (second[0], second[2:]) == (b"OUT", [b"", b"answer"])


def test_between_two_routers_the_routing_ids_change_places(setup):
    seen = setup.bound(zmq.PULL, "seen")
    mon = setup.connected(zmq.PUSH, "seen")
    front, back = setup.bound(zmq.ROUTER, "in"), setup.bound(zmq.ROUTER, "out")
    with setup.running(devices.monitored_queue, front, back, mon):
        a, b = setup.context.socket(zmq.DEALER), setup.context.socket(zmq.DEALER)
        a.identity, b.identity = b"a", b"b"
        a.connect("inproc://in")
        b.connect("inproc://out")
        a.send_multipart([b"b", b"to b"])
        assert b.recv_multipart() == [b"a", b"to b"]
        b.send_multipart([b"a", b"to a"])
        assert a.recv_multipart() == [b"b", b"to a"]
        assert seen.recv_multipart() == [b"in", b"b", b"a", b"to b"]
