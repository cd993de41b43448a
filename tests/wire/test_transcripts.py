"""What real libzmq says, recorded from a raw socket beside pyzmq 27.3 (libzmq 4.3.5)."""

from pathlib import Path

import pytest

from tests.wire.kit import octet_by_octet, octets
from zerohop.mechanisms.null import NullMechanism
from zerohop.wire.connection import Connection
from zerohop.wire.events import Handshaken, SubscriptionReceived

TRANSCRIPTS = Path(__file__).parent.parent / "data" / "transcripts"


def transcript(name: str) -> bytes:
    return octets((TRANSCRIPTS / f"{name}.hex").read_text())


def connection(socket_type: bytes) -> Connection:
    properties = {"Socket-Type": socket_type}
    return Connection(mechanism=NullMechanism(properties), properties=properties, now=0)


@pytest.mark.parametrize("cut", [lambda stream: [stream], octet_by_octet], ids=["whole", "cut"])
@pytest.mark.parametrize(
    ("name", "ours", "expected"),
    [
        pytest.param(
            "push",
            b"PULL",
            [Handshaken({"socket-type": b"PUSH"}), b"hello", [b"a", b"", b"b" * 256]],
            id="PUSH",
        ),
        pytest.param(
            "sub",
            b"PUB",
            [
                Handshaken({"socket-type": b"SUB"}),
                SubscriptionReceived(b"", subscribe=True),
                SubscriptionReceived(b"kv", subscribe=True),
                SubscriptionReceived(b"kv", subscribe=False),
            ],
            id="SUB",
        ),
        pytest.param(
            "sub_to_3_0",
            b"PUB",
            [Handshaken({"socket-type": b"SUB"}), b"\1", b"\1kv", b"\0kv"],
            id="SUB to a 3.0 peer",
        ),
        pytest.param(
            "dealer",
            b"ROUTER",
            [Handshaken({"socket-type": b"DEALER", "identity": b"me"})],
            id="DEALER with heartbeats",
        ),
    ],
)
def test_what_libzmq_says_is_understood(name, ours, expected, cut):
    peer = connection(ours)
    items = [item for chunk in cut(transcript(name)) for item in peer.receive_data(chunk, 1)]
    assert items == expected
    assert peer.phase == "traffic"


def test_a_recorded_ping_is_answered_and_its_ttl_respected():
    peer = connection(b"ROUTER")
    peer.receive_data(transcript("dealer"), 100)
    assert peer.data_to_send().endswith(octets("04 05 04 504f4e47") * 3)
    assert peer.next_deadline() == 102


PADDING = slice(1, 9)  # of no significance; libzmq has something in it, we have zeros


def without_padding(stream: bytes) -> bytes:
    return stream[: PADDING.start] + stream[PADDING.stop :]


def shaken_hands(socket_type: bytes, *, peer: str, minor: int) -> Connection:
    """A connection of ours after the greeting and READY of a recorded peer."""
    ours = connection(socket_type)
    stream = bytearray(transcript(peer))
    stream[11] = minor
    ready = 64 + 2 + stream[65]
    ours.receive_data(bytes(stream[:ready]), 1)
    return ours


def test_a_push_of_ours_says_what_libzmq_says():
    ours = shaken_hands(b"PUSH", peer="push", minor=1)
    said = ours.data_to_send() + b"".join(ours.encode([b"hello", [b"a", b"", b"b" * 256]]))
    assert without_padding(said) == without_padding(transcript("push"))


@pytest.mark.parametrize(("minor", "recorded"), [(1, "sub"), (0, "sub_to_3_0")])
def test_a_sub_of_ours_says_what_libzmq_says(minor, recorded):
    ours = shaken_hands(b"SUB", peer="push", minor=minor)
    for topic, subscribe in [(b"", True), (b"kv", True), (b"kv", False)]:
        ours.send_subscription(topic, subscribe=subscribe)
    assert without_padding(ours.data_to_send()) == without_padding(transcript(recorded))
