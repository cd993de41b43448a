"""Batches of KV events in a file, with the times at which they came: to keep, and to play again.

    file = header, record, record, ...            msgpack values, one after the other
    header = {"zerohop": "kv recording", "version": 1, "began": seconds since 1970, ...}
    record = [at, topic, seq, payload]            at: seconds since the recording began

The payloads are the octets that a publisher sent, whatever their form. A file whose end is cut off
(a full disk, a killed recorder) has all records before the cut.
"""

from __future__ import annotations

import errno
import struct
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Annotated, Any

import msgspec

from zerohop.serving.arguments import number, octets, whole
from zerohop.serving.closing import Closing
from zerohop.serving.codec import MAX_OCTETS, decode_with, pack
from zerohop.serving.errors import Malformed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["BatchRecorder", "BatchRecording", "Recorded", "play_batches"]

_MAGIC, _VERSION = "kv recording", 1
_LENGTH = struct.Struct(">I")  # before each value: msgspec decodes whole values alone


@dataclass(frozen=True, slots=True)
class Recorded:
    """One message.

    Attributes:
        at: seconds since the recording began.
        topic: its first frame.
        seq: its number.
        payload: the batch.
    """

    at: float
    topic: bytes
    seq: int
    payload: bytes


class BatchRecorder(Closing):
    """Writes a file of batches.

    Args:
        path: the file; one that is there is replaced.
        about: what else is to be known of it: endpoints, models. Values that msgpack has.

    Attributes:
        count: how many were recorded.

    Raises:
        OSError: the file can't be written.
    """

    def __init__(self, path: str | Path, about: dict[str, Any] | None = None) -> None:
        self.count = 0
        header = {**(about or {}), "zerohop": _MAGIC, "version": _VERSION, "began": time.time()}
        octets = pack(header)
        self._file = Path(path).open("wb")  # noqa: SIM115 - closed by close()
        self._began = time.monotonic()
        self._write(octets)

    def record(self, seq: int, payload: bytes, topic: bytes = b"", at: float | None = None) -> None:
        """Write one batch.

        Args:
            seq: its number.
            payload: its octets.
            topic: what was before it.
            at: seconds since the recording began; ``None``: now.

        Raises:
            TypeError, ValueError: one of them is of another kind. The file stays readable.
        """
        if at is None:
            at = time.monotonic() - self._began
        if number("at", at) > _LATEST:
            raise ValueError(f"at={at:g}: it is counted from when the recording began")
        self._write(
            pack([at, octets("topic", topic), whole("seq", seq), octets("payload", payload)])
        )
        self.count += 1

    def flush(self) -> None:
        """See to it that what was recorded is in the file."""
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._is_closed = True
        self._file.close()

    def _write(self, octets: bytes) -> None:
        self._file.write(_LENGTH.pack(len(octets)) + octets)


class BatchRecording:
    """Reads a file of batches; iterate over it, once or again.

    Args:
        path: the file.

    Attributes:
        about: what its header has.
        is_cut_off: whether its end was found to be missing; known after an iteration.

    Raises:
        OSError: the file can't be read, or only once, as a pipe.
        Malformed: it is no recording, or one of a version that is not known here.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self.is_cut_off = False
        with self._path.open("rb") as file:
            if not file.seekable():
                reason = "it is read more than once; write it into a file"
                raise OSError(errno.ESPIPE, reason, self._path)
            self.about = self._header(file)

    def __iter__(self) -> Iterator[Recorded]:
        """Yield what was recorded, in order.

        Raises:
            Malformed: a record is none. What was before it has been yielded.
        """
        self.is_cut_off = False
        with self._path.open("rb") as file:
            self._header(file)
            while (record := self._read(file)) is not None:
                try:
                    recorded = decode_with(_decode_record, record)
                except Malformed as error:
                    reason = f"{self._path} is damaged: {error.reason}"
                    raise Malformed(record, reason, error.offset) from None
                yield Recorded(*recorded)

    def _header(self, file: IO[bytes]) -> dict[str, Any]:
        try:
            octets = self._read(file) or b""
            about = decode_with(_decode_header, octets)
        except Malformed as error:
            about, octets = {}, error.data
        if about.get("zerohop") != _MAGIC:
            raise Malformed(octets, f"{self._path} is no recording of KV events")
        if about.get("version") != _VERSION:
            raise Malformed(
                octets,
                f"{self._path} is of version {about.get('version')}, which is not known here",
                hint="read it with the version of zerohop that wrote it",
            )
        return about

    def _read(self, file: IO[bytes]) -> bytes | None:
        """The next value; ``None`` at the end, or where the end is missing."""
        length = file.read(_LENGTH.size)
        if len(length) < _LENGTH.size:
            self.is_cut_off = bool(length)
            return None
        (size,) = _LENGTH.unpack(length)
        if size > MAX_OCTETS + 1024:
            raise Malformed(length, f"{self._path} is damaged: a record of {size} octets")
        octets = file.read(size)
        if len(octets) < size:
            self.is_cut_off = True
            return None
        return octets


_decode_header = msgspec.msgpack.Decoder(dict[str, Any]).decode
_LATEST = 1e9  # seconds: what can be waited for
_At = Annotated[float, msgspec.Meta(ge=0, le=_LATEST)]
_Seq = Annotated[int, msgspec.Meta(ge=0)]
_decode_record = msgspec.msgpack.Decoder(tuple[_At, bytes, _Seq, bytes]).decode


def play_batches(
    recording: BatchRecording,
    send: Callable[[Recorded], object],
    speed: float | None = 1.0,
    *,
    sleep: Callable[[float], object] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> int:
    """Hand over each batch when its time has come, and return how many there were.

    Args:
        recording: what to play.
        send: gets each of them.
        speed: 1 as it was, 10 ten times as fast; ``None``: one after the other, without waiting.
        sleep: waits for some seconds.
        clock: seconds, monotonic.

    Raises:
        TypeError: the speed is no number.
        ValueError: it is not above 0, or ``nan``.
    """
    if speed is not None:
        speed = number("speed", speed, above_zero=True)
    began, count = clock(), 0
    for recorded in recording:
        if speed is not None:
            early = began + recorded.at / speed - clock()
            if early > 0:
                sleep(early)
        send(recorded)
        count += 1
    return count
