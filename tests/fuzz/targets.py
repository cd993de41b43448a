"""What is fuzzed: one target for each parser, its promise in the docstring. Here: the wire's.

A target takes octets as a stranger might send them. It returns if the promise holds, whether they
are accepted or refused, and raises anything else if not.
"""

import sys
from contextlib import suppress

from tests.fuzz import serving_targets
from zerohop.errors import ProtocolError
from zerohop.mechanisms.null import NullMechanism
from zerohop.wire.commands import (
    decode_error,
    decode_metadata,
    decode_ping,
    encode_metadata,
    split_command,
)
from zerohop.wire.connection import MAX_PONGS, Connection
from zerohop.wire.decoder import FrameDecoder
from zerohop.wire.frames import encode
from zerohop.wire.greeting import GREETING_SIZE, GreetingDecoder, encode_greeting

LIMIT = 1000  # octets in one message


def cut(data: bytes) -> list[bytes]:
    """The octets in pieces of a size that the first of them gives."""
    size = 1 + data[0] if data else 1
    return [data[start : start + size] for start in range(0, len(data), size)]


def greeting(data: bytes) -> None:
    """At most 64 octets are kept, and what follows a greeting is handed back."""
    decoder = GreetingDecoder()
    rest = b""
    with suppress(ProtocolError):
        rest = b"".join([decoder.receive_data(chunk) for chunk in cut(data)])
    assert len(decoder._buffer) <= GREETING_SIZE
    assert rest == (data[GREETING_SIZE:] if decoder.greeting else b"")


def frames(data: bytes) -> None:
    """Cuts do not matter, no message is over the limit, no more is kept than came."""
    whole, pieces = FrameDecoder(LIMIT), FrameDecoder(LIMIT)
    expected, got = [], []
    try:
        expected = whole.receive_data(data)
    except ProtocolError:
        expected = whole.completed
    try:
        for chunk in cut(data):
            got += pieces.receive_data(chunk)
    except ProtocolError:
        got += pieces.completed
    assert got == expected
    for message in got:
        assert sum(map(len, message if isinstance(message, list) else [message])) <= LIMIT
    kept = len(pieces._head) + (sys.getsizeof(pieces._body._file) if pieces._body else 0)
    assert kept <= 2 * len(data) + 200


def commands(data: bytes) -> None:
    """A command is understood or refused; what is understood is within the octets that came."""
    with suppress(ProtocolError):
        name, content = split_command(data)
        assert bytes((len(name),)) + name + content == data
        for decode in (decode_error, decode_ping):
            with suppress(ProtocolError):
                decode(content)
        with suppress(ProtocolError):
            assert decode_error(content).isprintable()


def metadata(data: bytes) -> None:
    """Properties come back as they were understood, and are not larger than what came."""
    with suppress(ProtocolError):
        properties = decode_metadata(data)
        encoded = encode_metadata(properties)
        assert decode_metadata(encoded) == properties
        assert len(encoded) <= len(data)


def connection(data: bytes) -> None:
    """From the first octet: events and messages or a ProtocolError, and a bounded answer."""
    _converse(data, b"")


def traffic(data: bytes) -> None:
    """The same behind a proper handshake, so that few octets get far."""
    _converse(data, encode_greeting("NULL") + b"\4\6\5READY")


def _converse(data: bytes, before: bytes) -> None:
    mechanism = NullMechanism({"Socket-Type": b"PUB"})
    peer = Connection(
        mechanism=mechanism,
        properties={"Socket-Type": b"PUB"},
        max_message_size=LIMIT,
        handshake_timeout=30,
        now=0,
    )
    with suppress(ProtocolError):
        peer.receive_data(before, 0)
        for now, chunk in enumerate(cut(data), start=1):
            peer.receive_data(chunk, now)
            peer.handle_deadline(now)
    deadline = peer.next_deadline()
    assert deadline is None or deadline >= 0
    if peer.phase == "traffic":
        assert encode([b"x"]) == peer.encode([b"x"])
    assert len(peer.data_to_send()) <= GREETING_SIZE + 30 + MAX_PONGS * 23
    assert not peer.has_output


TARGETS = {
    target.__name__: target
    for target in (greeting, frames, commands, metadata, connection, traffic)
} | serving_targets.TARGETS
