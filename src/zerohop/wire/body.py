"""The body of a frame that is not whole yet: its octets, each copied once at most.

They come in one of two ways, in any order: as part of a chunk (:meth:`Body.add`), or straight from
the network into the place where they belong (:meth:`Body.buffer`, :meth:`Body.filled`). In the end
the body is ``bytes``, and nothing of it is copied for that: ``io.BytesIO`` keeps its octets in a
``bytes`` object, lets its owner write into it through ``getbuffer()``, and hands over that very
object when it is asked for its value. (So does CPython's; where another Python copies, that costs
time and nothing else.)

Where much may be held at once, it is memory that nobody has written to. Zeros, and to move what has
come to a larger place again and again, were a third of what receiving 4 MiB cost.
"""

from __future__ import annotations

from functools import cache, partial
from io import BytesIO

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_FIRST = 64 * 1024  # octets: what may be held for a frame of which nothing has come
_GROWTH = 2  # and otherwise so many times what has come


class _Octets(BytesIO):
    """Is not closed when it dies: that would be an error while a view of it is lent.

    It comes to that where both die together, in a garbage collection that finalizes this one first.
    """

    __slots__ = ()

    def __del__(self) -> None:
        pass


@cache
def unwritten() -> Callable[[int], bytes]:
    """What makes so many octets, whatever they are: each is written to before anybody sees it.

    CPython makes ``bytes`` like this wherever it fills them afterwards, in ``recv`` for one, but
    has no name for it in Python. Where it cannot be had, they are zeros.
    """
    try:
        from ctypes import PYFUNCTYPE, c_char_p, c_ssize_t, py_object, pythonapi

        # A function object of ours: what others declare of pythonapi's is theirs.
        make = PYFUNCTYPE(py_object, c_char_p, c_ssize_t)(("PyBytes_FromStringAndSize", pythonapi))
    except (ImportError, AttributeError, OSError, MemoryError):
        # Another Python, or one without ctypes. Or there is no descriptor to import it with, or no
        # memory that may be executed, of which it wants a little.
        return bytes
    return partial(make, None)


class Body:
    """Gathers ``size`` octets.

    Memory grows with the octets received, never with those announced.

    Args:
        size: what the header announced.
        proven: octets that may be held before any has come, because the peer has sent as many in
            one frame before. Pages of the system's are no memory before they are written to; the
            rest is memory that this process has already.

    Attributes:
        size: as above.
        missing: octets that have not come yet. At 0: :meth:`take`.
    """

    __slots__ = ("_file", "_held", "_view", "missing", "size")

    def __init__(self, size: int, proven: int = 0) -> None:
        self.size = size
        self.missing = size
        self._held = min(size, proven)  # octets that the file holds, come or not
        held = self._held
        # It stands where the octets end that have come.
        self._file = _Octets(unwritten()(held) if held >= _FIRST else bytes(held))
        self._view: memoryview | None = None  # what was lent

    def add(self, octets: bytes | memoryview) -> None:
        """Append what has come, which is no more than is missing."""
        if self._view is not None:
            self._view.release()
            self._view = None
        self._file.write(octets)
        self.missing -= len(octets)

    def buffer(self) -> memoryview:
        """Return where the next octets belong; not all that are missing, if those are many.

        The view is of use until anything else is done with this body.
        """
        if self._view is None:
            file, come = self._file, self.size - self.missing
            room = max(self._held, min(self.size, max(_GROWTH * come, _FIRST)))
            if room > self._held:
                file.seek(room - 1)
                file.write(b"\0")  # and zeros before it; they cost less than a copy
                file.seek(come)
                self._held = room
            whole = file.getbuffer()
            self._view = whole[come:]
            whole.release()
        return self._view

    def filled(self, count: int) -> None:
        """Say that so many octets were put into :meth:`buffer`, from its beginning on."""
        view = self._view
        assert view is not None
        self._view = view[count:] if count < len(view) else None
        view.release()
        self.missing -= count
        self._file.seek(count, 1)

    def take(self) -> bytes:
        """Return the whole body. Nothing may be done with this object afterwards."""
        return self._file.getvalue()
