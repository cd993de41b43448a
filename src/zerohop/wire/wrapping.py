"""Traffic under a mechanism that is not plain: every frame travels inside one of its own (CURVE).

    message  = *frame            frame: [MORE] or last, as without the mechanism
    each frame ──encode──► frame of the mechanism ──decode──► (flags, body)

The decoder below has only found the outer frames. What is a message and what is a command, and how
large a message is, can be said when they are open.
"""

from __future__ import annotations

from zerohop.errors import ProtocolError
from zerohop.wire.decoder import MAX_FRAMES
from zerohop.wire.frames import COMMAND, MORE, Command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from zerohop.wire.frames import Buffer, Message, Part
    from zerohop.wire.mechanism import Mechanism


class Wrapping:
    """Wraps and unwraps for one connection.

    Args:
        mechanism: whose handshake is complete.
        max_message_size: as in :class:`~zerohop.wire.decoder.FrameDecoder`; held against the
            bodies within.
    """

    __slots__ = ("_limit", "_mechanism", "_parts", "_parts_size")

    def __init__(self, mechanism: Mechanism, max_message_size: int | None) -> None:
        self._mechanism = mechanism
        self._limit = max_message_size
        self._parts: list[Part] = []
        self._parts_size = 0

    def outer_limit(self) -> int | None:
        """Return what the decoder below has to allow for one outer frame."""
        return None if self._limit is None else self._limit + self._mechanism.overhead

    def encode(self, messages: Iterable[Message]) -> list[Buffer]:
        """Return the wire form of messages and commands, in order; large bodies are copied, too."""
        encode = self._mechanism.encode
        return [b"".join(buffer for message in messages for buffer in encode(message))]

    def unwrap(self, frame: Message) -> Message | None:
        """Open an outer frame; return the message it completes, or the Command it holds.

        Raises:
            ProtocolError: it is not the mechanism's, or what it completes breaks a limit.
        """
        if isinstance(frame, list):
            raise self._refuse("several frames where each should be wrapped by itself")
        flags, body = self._mechanism.decode(bytes(frame))
        if flags & COMMAND:
            return Command(body)
        parts = self._parts
        parts.append(body)
        self._parts_size += len(body)
        if self._limit is not None and self._parts_size > self._limit:
            raise self._refuse(f"a message of over max_message_size={self._limit} octets")
        if flags & MORE:
            if len(parts) == MAX_FRAMES:
                raise self._refuse(f"a message of over {MAX_FRAMES} frames")
            return None
        self._parts, self._parts_size = [], 0
        return parts if len(parts) > 1 else body

    def _refuse(self, what: str) -> ProtocolError:
        return ProtocolError(
            f"peer sent {what} ({self._mechanism.name})",
            source="RFC 37, Authentication and Confidentiality",
        )
