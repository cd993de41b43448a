"""What the pulse keeps for a loop that does not listen."""

import msgspec
import pytest

import zerohop as zmq
from tests.stress.kit import until
from zerohop.serving.engine.handshake import Joined, Left, Refused, mismatch
from zerohop.serving.engine.messages import PROTOCOL, Hello, HelloAgain, Refusal
from zerohop.serving.engine.pulse import Pulse

HERE, THERE = "tcp://127.0.0.1:1", "tcp://127.0.0.1:2"
REFUSED = Refused(mismatch(Refusal("protocol version", 1, 2), engine=True))


@pytest.fixture
def pulse():
    pulse = Pulse(Hello(PROTOCOL, "e0", 7), b"p" + bytes(8) + b"e0", [HERE, THERE])
    yield pulse
    pulse.close()


def test_who_is_refused_all_the_while_is_told_so_once(pulse):
    for _ in range(1000):
        pulse._tell(HERE, [REFUSED])
        pulse._tell(THERE, [REFUSED])
    assert list(pulse.events) == [(HERE, REFUSED), (THERE, REFUSED)]


def test_and_again_once_it_has_been_heard_or_something_else_has_happened(pulse):
    pulse._tell(HERE, [REFUSED])
    assert pulse.events.popleft() == (HERE, REFUSED)
    for events in ([REFUSED], [Joined(1, None)], [Left(1, "it refused the engine"), REFUSED]):
        pulse._tell(HERE, events)
    kinds = [type(event) for _, event in pulse.events]
    assert kinds == [Refused, Joined, Left, Refused]


def test_who_is_leaving_does_not_join_anew(ipc_directory):
    endpoint = f"ipc://{ipc_directory}/requests"
    with zmq.Context() as context, context.socket(zmq.ROUTER) as router:
        router.linger = 0
        router.bind(endpoint)
        pulse = Pulse(Hello(PROTOCOL, "e0", 7), b"p" + bytes(8) + b"e0", [endpoint])
        try:
            routing_id, _ = router.recv_multipart(timeout=10)
            pulse.is_leaving = True
            for said in (HelloAgain(), Refusal("protocol version", 1, 2)):
                router.send_multipart([routing_id, msgspec.msgpack.encode(said)])
            until(lambda: pulse.events)  # both were heard
            assert not router.poll(50)
        finally:
            pulse.close()
