"""Frame: one part of a message as an object, with its MORE flag, tracker and metadata."""

from __future__ import annotations

from zerohop.api.tracker import DONE, MessageTracker
from zerohop.constants import Errno, MessageOption
from zerohop.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from zerohop.patterns.pipe import Part

__all__ = ["COPY_THRESHOLD", "Frame", "Message", "contiguous"]

COPY_THRESHOLD = 65536  # pyzmq's: below it a copy costs less than keeping the caller's buffer

_DRAFT_ATTRIBUTES = {"routing_id": "CLIENT-SERVER", "group": "RADIO-DISH"}
_WHOLE, _HEAD = 16, 12  # octets: shown whole up to here, beyond only the first few
_UNITS = ((10**9, "GB"), (10**6, "MB"), (10**3, "kB"))


class Frame:
    """One part of a message.

    Args:
        data: what is in it, as the buffer protocol gives it; None: nothing.
        track: make a :attr:`tracker`, done when ``data`` may be changed again.
        copy: True: copy ``data``; False: refer to it; None: copy if it is small.
        copy_threshold: what "small" is, in octets; 0: nothing is.
        more: whether its message has more parts.
        properties: texts for :meth:`get`, by their names; received Frames have none yet.

    Attributes:
        more: as above.
        tracker: a MessageTracker, or None.
        part: ``bytes``, or a ``memoryview`` of the caller's buffer.

    ``bytes(frame)`` and ``len(frame)`` work everywhere, ``memoryview(frame)`` from Python 3.12 on
    (before, no class written in Python can have a buffer): use ``frame.buffer``.

    Raises:
        TypeError: ``data`` is a ``str``, or no buffer.
        BufferError: it has gaps.
    """

    __slots__ = ("__weakref__", "_properties", "more", "part", "tracker")

    part: Part
    tracker: MessageTracker | None
    more: bool

    def __init__(
        self,
        data: Any = None,
        track: bool = False,
        copy: bool | None = None,
        copy_threshold: int | None = None,
        *,
        more: bool = False,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        self.more = more
        self.tracker = None
        self._properties = properties
        if data is None:
            data = b""
        if type(data) is bytes and not track:
            self.part = data
            return
        if isinstance(data, str):
            raise TypeError("Str objects not allowed. Only: bytes, buffer interfaces.")
        if isinstance(data, Frame):
            data = data.part
        if copy is None:
            threshold = COPY_THRESHOLD if copy_threshold is None else copy_threshold
            self.part = contiguous(data, copy=False, copy_threshold=threshold)
        else:
            self.part = contiguous(data, copy=copy)
        if track:
            lent = isinstance(self.part, memoryview)
            self.tracker = MessageTracker(self.part) if lent else DONE  # type: ignore[arg-type] # lent

    @property
    def bytes(self) -> bytes:
        """The octets; a copy where the frame refers to the caller's buffer."""
        return self.part if type(self.part) is bytes else bytes(self.part)

    @property
    def buffer(self) -> memoryview:
        """A view of the octets."""
        return memoryview(self.part)

    def __bytes__(self) -> builtin_bytes:
        return self.bytes

    def __buffer__(self, flags: int) -> memoryview:
        return memoryview(self.part)

    def __len__(self) -> int:
        return len(self.part)

    def __copy__(self) -> Frame:
        """Return a frame of the same part: nothing is copied, and it is tracked as this one."""
        copied = type(self)(more=self.more, properties=self._properties)
        copied.part, copied.tracker = self.part, self.tracker
        return copied

    def __repr__(self) -> str:
        size = len(self.part)
        if size <= _WHOLE:
            return f"<zerohop.Frame({self.bytes!r})>"
        count, unit = next(((size // n, unit) for n, unit in _UNITS if size >= n), (size, "B"))
        return f"<zerohop.Frame({bytes(self.part[:_HEAD])!r}...{count}{unit})>"

    def get(self, option: int | str | builtin_bytes) -> int | str:
        """Return a property: MORE or SHARED, a number; texts only where the Frame was given them.

        What is received has no texts yet (pyzmq's "Peer-Address", "Socket-Type", "User-Id").

        Raises:
            UsageError: EINVAL: it has no such property.
            TypeError: neither a number nor a name.
            RuntimeError: ``routing_id`` and ``group`` exist only in libzmq's draft API.
        """
        if isinstance(option, int):
            if option == MessageOption.MORE:
                return int(self.more)
            if option == MessageOption.SHARED:
                return 0
            raise UsageError(Errno.EINVAL, hint=f"a message has no property number {option}")
        name = option.decode() if isinstance(option, bytes) else option
        if not isinstance(name, str):
            raise TypeError(f"expected str, got: {option!r}")
        _refuse_draft(name)
        if self._properties is None or name not in self._properties:
            known = ", ".join(self._properties or ()) or "none"
            raise UsageError(Errno.EINVAL, hint=f"no property {name!r}; this message has: {known}")
        return self._properties[name]

    __getitem__ = get

    def set(self, option: int | str, value: object) -> None:
        """Refuse: libzmq has no property of a message that can be set.

        Raises:
            UsageError: EINVAL.
            TypeError: ``option`` is no number.
            RuntimeError: ``routing_id`` and ``group`` exist only in libzmq's draft API.
        """
        if isinstance(option, str):
            _refuse_draft(option)
        if not isinstance(option, int):
            raise TypeError("an integer is required")
        raise UsageError(Errno.EINVAL, hint="what is known of a message can only be read")

    def __getattr__(self, name: str) -> int | str:
        """Properties by number are attributes too, in any case: ``frame.MORE``.

        Raises:
            AttributeError: no such property.
        """
        _refuse_draft(name)
        option = MessageOption.__members__.get(name.upper())
        if option is None:
            raise AttributeError(f"{type(self).__name__} has no such option: {name.upper()}")
        return self.get(option)


Message = Frame
"""pyzmq's older name."""

builtin_bytes = bytes


def _refuse_draft(name: str) -> None:
    if name in _DRAFT_ATTRIBUTES:
        raise RuntimeError(
            f"libzmq and pyzmq must be built with draft support for {_DRAFT_ATTRIBUTES[name]}"
        )


def contiguous(data: Any, *, copy: bool, copy_threshold: int = 0) -> Part:
    """Return the octets of a buffer in the order they have in memory.

    Args:
        data: any object with the buffer protocol, of any item type and number of dimensions.
        copy: whether to copy.
        copy_threshold: copy what is smaller, too.

    Returns:
        ``bytes``, or a view of single octets. Where Python cannot make such a view (Fortran order)
        it is a copy after all.

    Raises:
        TypeError: no buffer.
        BufferError: it has gaps.
    """
    try:
        view = memoryview(data)
    except TypeError:
        raise TypeError(f"a bytes-like object is required, not {type(data).__name__!r}") from None
    if not view.contiguous:
        raise BufferError("memoryview: underlying buffer is not contiguous")
    if copy or view.nbytes < copy_threshold or not view.nbytes or not view.c_contiguous:
        return view.tobytes("A")
    return view.cast("B")
