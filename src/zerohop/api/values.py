"""Sending and receiving values: text, JSON, pickles, and anything with a function of one's own.

Each of these is one part (or message) and a conversion, so they are the same for both kinds of
Socket: they call the three verbs that a Socket has, and return what those return, which is the
value itself from a blocking socket and an awaitable of it from an asyncio one.

``json`` and ``pickle`` are imported when they are first needed: ``import zerohop`` need not pay for
them.
"""

from __future__ import annotations

from zerohop.api.parts import check_buffer, copy_into
from zerohop.api.receive import as_frames, as_octets, as_octets_list

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Protocol, TypeVar

    _T = TypeVar("_T")
else:
    Protocol = object

__all__ = ["ValueMethods", "json_octets", "json_value"]

_SEND_ARGUMENTS = ("routing_id", "group", "timeout")  # of send(); the rest is for json.dumps


def json_octets(obj: object, **kwargs: Any) -> bytes:
    """Return a value as JSON in UTF-8; ``kwargs`` are those of ``json.dumps``."""
    import json

    return json.dumps(obj, **kwargs).encode()


def json_value(octets: bytes | str, **kwargs: Any) -> Any:
    """Return the value of JSON in UTF-8; ``kwargs`` are those of ``json.loads``."""
    import json

    return json.loads(octets if isinstance(octets, str) else octets.decode(), **kwargs)


class _Verbs(Protocol):
    """What a Socket has, for the methods below to stand on.

    Any, here and below: what comes back is a value from a blocking socket, an awaitable of it from
    an asyncio one.
    """

    def send(self, data: Any, *args: Any, **kwargs: Any) -> Any:
        """Send one part."""

    def send_multipart(
        self, msg_parts: Sequence[Any], flags: int = 0, copy: bool = True, **kwargs: Any
    ) -> Any:
        """Send a message."""

    def _receive(
        self,
        flags: int,
        timeout: float | None,
        convert: Callable[[Any], Any] | None,
        *,
        part: bool,
    ) -> Any:
        """Receive a part or a whole message; return what ``convert`` makes of it."""


class ValueMethods:
    """The ``send_*`` and ``recv_*`` of pyzmq on top of three verbs.

    Those that send raise what ``send`` raises and take its other arguments too; those that
    receive raise what ``recv`` raises. A message whose conversion fails has been received all the
    same.
    """

    __slots__ = ()

    def send_string(
        self: _Verbs,
        u: str,
        flags: int = 0,
        copy: bool = True,
        encoding: str = "utf-8",
        **kwargs: Any,
    ) -> Any:
        """Send text as one part.

        Raises:
            TypeError: ``u`` is no ``str``.
        """
        if not isinstance(u, str):
            raise TypeError("str objects only")
        return self.send(u.encode(encoding), flags=flags, copy=copy, **kwargs)

    def recv_string(
        self: _Verbs, flags: int = 0, encoding: str = "utf-8", *, timeout: float | None = None
    ) -> Any:
        """Receive one part as text.

        Raises:
            UnicodeDecodeError: it is not encoded so.
        """
        return self._receive(
            flags, timeout, lambda part: as_octets(part).decode(encoding), part=True
        )

    send_unicode = send_string
    recv_unicode = recv_string

    def send_json(self: _Verbs, obj: object, flags: int = 0, **kwargs: Any) -> Any:
        """Send a value as JSON in UTF-8, one part; further arguments are those of ``json.dumps``.

        Raises:
            TypeError: JSON cannot say it.
        """
        arguments = {name: kwargs.pop(name) for name in _SEND_ARGUMENTS if name in kwargs}
        return self.send(json_octets(obj, **kwargs), flags=flags, **arguments)

    def recv_json(
        self: _Verbs, flags: int = 0, *, timeout: float | None = None, **kwargs: Any
    ) -> Any:
        """Receive one part as JSON; further arguments are those of ``json.loads``.

        Raises:
            ValueError: it is not JSON, or not UTF-8.
        """
        return self._receive(
            flags, timeout, lambda part: json_value(as_octets(part), **kwargs), part=True
        )

    def send_pyobj(
        self: _Verbs,
        obj: object,
        flags: int = 0,
        protocol: int = 4,
        **kwargs: Any,
    ) -> Any:
        """Send a pickle, one part; ``protocol`` is pickle's, 4 being its default for long."""
        import pickle

        return self.send(pickle.dumps(obj, protocol), flags=flags, **kwargs)

    def recv_pyobj(self: _Verbs, flags: int = 0, *, timeout: float | None = None) -> Any:
        """Receive one part and unpickle it.

        Never from a peer you do not trust: a pickle can run any code.
        """
        import pickle

        return self._receive(
            flags,
            timeout,
            lambda part: pickle.loads(as_octets(part)),  # noqa: S301 - the caller is warned
            part=True,
        )

    def send_serialized(
        self: _Verbs,
        msg: _T,
        serialize: Callable[[_T], Sequence[Any]],
        flags: int = 0,
        copy: bool = True,
        **kwargs: Any,
    ) -> Any:
        """Send the parts that ``serialize(msg)`` returns as one message."""
        return self.send_multipart(serialize(msg), flags=flags, copy=copy, **kwargs)

    def recv_serialized(
        self: _Verbs,
        deserialize: Callable[[list[Any]], Any],
        flags: int = 0,
        copy: bool = True,
        *,
        timeout: float | None = None,
    ) -> Any:
        """Receive a message; return what ``deserialize`` makes of the list of its parts.

        The parts are ``bytes``, or Frames with ``copy=False``.
        """
        parts_of = as_octets_list if copy else as_frames
        return self._receive(
            flags, timeout, lambda message: deserialize(parts_of(message)), part=False
        )

    def recv_into(
        self: _Verbs,
        buffer: Any,
        /,
        *,
        nbytes: int = 0,
        flags: int = 0,
        timeout: float | None = None,
    ) -> Any:
        """Receive one part into a buffer; what does not fit is lost.

        Args:
            buffer: writable, without gaps (``bytearray``, an array).
            nbytes: octets to write at most; 0: as many as fit.
            flags: as ``recv``.
            timeout: seconds.

        Returns:
            The size of the part, which may be more than was written.

        Raises:
            BufferError: the buffer is read-only, or has gaps. Nothing was received.
            ValueError: ``nbytes`` is negative or more than it has. Nothing was received.
        """
        view = check_buffer(buffer, nbytes)
        return self._receive(flags, timeout, lambda part: copy_into(part, view, nbytes), part=True)
