"""Traffic under a mechanism that wraps frames: what is a message is decided within."""

import pytest

from tests.wire.toy import ToyMechanism
from zerohop.errors import ProtocolError
from zerohop.wire import wrapping as wrapping_module
from zerohop.wire.decoder import FrameDecoder
from zerohop.wire.frames import Command, encode
from zerohop.wire.wrapping import Wrapping


def wrapping(limit: int | None = None) -> Wrapping:
    return Wrapping(ToyMechanism({}, as_server=False), limit)


def wrapped(*batches) -> bytes:
    """The wire form of batches, one after another, by one sender."""
    sender = wrapping()
    return b"".join(buffer for batch in batches for buffer in sender.encode(batch))


def unwrap_all(wire: bytes, limit: int | None = None) -> list:
    receiver = wrapping(limit)
    frames = FrameDecoder(receiver.outer_limit()).receive_data(wire)
    items = [receiver.unwrap(frame) for frame in frames]
    return [item for item in items if item is not None]


def test_messages_and_commands_come_back_as_they_were():
    batch = [b"hello", [b"a", b"", b"c" * 300], Command(b"\4PING\0\0"), b""]
    wire = wrapped(batch)
    assert b"hello" not in wire
    items = unwrap_all(wire)
    assert items == batch
    assert [type(item) for item in items] == [bytes, list, Command, bytes]


def test_a_command_may_stand_between_the_frames_of_a_message():
    sender = wrapping()
    mechanism = sender._mechanism
    wire = b"".join(
        [*mechanism._wrap(1, b"a"), *mechanism._wrap(2, b"\4PING\0\0"), *mechanism._wrap(0, b"b")]
    )
    assert unwrap_all(wire) == [b"\4PING\0\0", [b"a", b"b"]]


def test_the_flag_of_the_outer_frame_does_not_matter():
    """RFC 26 has commands there, libzmq sends messages."""
    [command] = FrameDecoder().receive_data(wrapped([b"hello"]))
    assert wrapping().unwrap(bytes(command)) == b"hello"


def test_frames_outside_the_mechanism_are_refused():
    with pytest.raises(ProtocolError, match="not a frame of mine"):
        unwrap_all(b"".join(encode([b"in the clear"])))
    with pytest.raises(ProtocolError, match="each should be wrapped by itself .TOY."):
        unwrap_all(b"".join(encode([[b"a", b"b"]])))


def test_a_frame_that_came_before_is_refused():
    wire = wrapped([b"x"])
    with pytest.raises(ProtocolError, match="an old one"):
        unwrap_all(wire + wire)


def test_the_limit_is_for_the_bodies_within():
    assert unwrap_all(wrapped([[b"x" * 600, b"y" * 400]]), limit=1000)
    assert unwrap_all(wrapped([b"x" * 1000] * 3), limit=1000) == [b"x" * 1000] * 3
    with pytest.raises(ProtocolError, match="over max_message_size=1000 octets"):
        unwrap_all(wrapped([[b"x" * 600, b"y" * 401]]), limit=1000)
    with pytest.raises(ProtocolError, match="over the limit of 1013"):
        unwrap_all(wrapped([b"x" * 1001]), limit=1000)


def test_endless_frames_of_one_message_come_to_an_end(monkeypatch):
    monkeypatch.setattr(wrapping_module, "MAX_FRAMES", 5)
    assert unwrap_all(wrapped([[b""] * 5])) == [[b""] * 5]
    with pytest.raises(ProtocolError, match="over 5 frames"):
        unwrap_all(wrapped([[b""] * 6]))
