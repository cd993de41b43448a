"""What is fuzzed of serving: one target for each parser, as in :mod:`tests.fuzz.targets`.

A message of several frames is written as octets with the length of each frame before it, and an
octet ``ff`` between two messages.
"""

import json
import math
import tempfile
from contextlib import suppress
from itertools import count, repeat
from pathlib import Path

import msgspec

from zerohop.cli.shown import batch_as_json, batch_as_line, notice
from zerohop.serving import BatchRecording, PresentBlocks, play_batches
from zerohop.serving.codec import decode_with
from zerohop.serving.control.lmcache.frames import classify_ping_reply
from zerohop.serving.control.lmcache.messages import decode_message, encode_message, request_of
from zerohop.serving.control.messages import Registration
from zerohop.serving.control.protocol import PING, Call, Handlers, Operation, Protocol, Refusal
from zerohop.serving.control.session import WorkerSession
from zerohop.serving.engine.buffers import PayloadDecoder, PayloadEncoder
from zerohop.serving.engine.messages import (
    Abort,
    FromEngine,
    FromEngineOutputs,
    FromServer,
    Request,
    Start,
    UtilityCall,
    first_numbers,
)
from zerohop.serving.errors import Malformed
from zerohop.serving.kv.decode import BatchDecoder
from zerohop.serving.kv.encode import BatchEncoder
from zerohop.serving.kv.follower import KvFollower
from zerohop.serving.kv.replies import parse_request, seq_octets

LONGEST = 1e9  # seconds that anybody may be made to wait

_to_api_server = PayloadDecoder(FromEngineOutputs)
_to_engine = PayloadDecoder(Request | Start | Abort | UtilityCall)
_pulses = [msgspec.msgpack.Decoder(kind).decode for kind in (FromEngine, FromServer)]
_handlers = Handlers(
    Protocol("fuzzed", (Operation("put", (str, list[int]), optional=1, number=3), PING)),
    {"put": lambda *_: None, "ping": lambda *_: None},
)


def messages(data: bytes) -> list[list[bytes]]:
    """The octets as messages of frames."""
    found: list[list[bytes]] = [[]]
    at = 0
    while at < len(data):
        size, at = data[at], at + 1
        if size == 0xFF:
            found.append([])
        else:
            found[-1].append(data[at : at + size])
            at += size
    return found


def engine_outputs(data: bytes) -> None:
    """What an engine sends is understood or Malformed; what is understood can be said again."""
    _said_again(_to_api_server, data)


def engine_requests(data: bytes) -> None:
    """So is what an API server sends."""
    _said_again(_to_engine, data)


def _said_again(decoder: PayloadDecoder, data: bytes) -> None:
    for frames in messages(data):
        if not frames:
            continue
        assert len(first_numbers(frames[0], 3)) <= 3
        with suppress(Malformed):
            message = decoder.message(frames)
            decoder.message(PayloadEncoder(threshold=16).frames(message))


def engine_pulse(data: bytes) -> None:
    """Hellos, beats and their replies are understood or Malformed."""
    for decode in _pulses:
        with suppress(Malformed):
            decode_with(decode, data)


def kv_batch(data: bytes) -> None:
    """A batch or Malformed; any view takes a batch, and it can be shown and told to others."""
    with suppress(Malformed):
        batch = BatchDecoder().decode(data)
        json.loads(batch_as_json(1, batch, batch.dp_rank))
        assert batch_as_line(1, batch, batch.dp_rank).isprintable()
        view, told = PresentBlocks(), PresentBlocks()
        view.apply(batch.events, 0)
        encoder = BatchEncoder(hashes="as_is")
        for part in view.snapshot(1.0):
            told.apply(BatchDecoder().decode(encoder.encode(part)).events, 0)
        assert told.copies() == view.copies()


def kv_follower(data: bytes) -> None:
    """Live messages and replies, in turn: a view stays sound, and nothing raises."""
    follower, view = KvFollower("worker"), PresentBlocks()
    deliveries = follower.start(0.0)
    for now, frames in enumerate(messages(data), start=1):
        if frames[:1] == [b""]:
            for ask in follower.asks:
                deliveries += follower.receive_reply(ask.id, frames, now)
        else:
            deliveries += follower.receive_live(frames, now)
        deliveries += follower.handle_deadline(now)
    for delivery in deliveries:
        view.deliver(delivery)
        line = notice(delivery)
        assert line is None or line.isprintable()
    deadline = follower.next_deadline()
    assert deadline is None or math.isfinite(deadline)
    for ask in follower.asks:
        parse_request(ask.frames)


def kv_recording(data: bytes) -> None:
    """A file is played, up to where it is damaged, and nobody waits for ever."""

    def sleep(seconds):
        assert 0 < seconds < LONGEST

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "recording"
        path.write_bytes(data)
        with suppress(Malformed):
            play_batches(
                BatchRecording(path),
                lambda recorded: seq_octets(recorded.seq),
                sleep=sleep,
                clock=lambda: 0.0,
            )


def control_request(data: bytes) -> None:
    """A request has a call or a refusal in words, whatever it is."""
    for frames in messages(data):
        match _handlers.find(frames):
            case Call() as call:
                assert len(call.arguments) <= len(frames)
                assert not isinstance(_handlers.answer(call, None), Refusal)
            case Refusal(frames=reply, reason=reason):
                assert reason
                assert sum(map(len, reply)) < 10_000


def control_reply(data: bytes) -> None:
    """A worker goes on, whatever its server says, and never waits for ever."""
    session = WorkerSession(Registration("worker", b"boot"), repeat(0.5))
    session.put("key", 1)
    for now, frames in zip(count(), messages(data)):
        session.handle_deadline(now)
        assert len(session.data_to_send()) <= 3
        session.receive(frames, now)
        session.commands()
    deadline = session.next_deadline()
    assert deadline is None or deadline < LONGEST


def lmcache_frames(data: bytes) -> None:
    """Whatever a server says answers a PING in some way; what is no message is Malformed."""
    for frames in messages(data):
        assert classify_ping_reply(frames, 1)
        with suppress(Malformed):
            message = decode_message(request_of(frames))
            assert decode_message(encode_message(message)) == message


TARGETS = {
    target.__name__: target
    for target in (
        engine_outputs,
        engine_requests,
        engine_pulse,
        kv_batch,
        kv_follower,
        kv_recording,
        control_request,
        control_reply,
        lmcache_frames,
    )
}
