"""Every exception of the package, with pyzmq's names and texts.

    ZMQBaseError (Exception)
    +- ZMQError                    carries errno and strerror; not an OSError
    |  +- Again                    a state: would block (EAGAIN)
    |  +- ContextTerminated        a state: the context is going away (ETERM)
    |  +- InterruptedSystemCall    a state, also an InterruptedError (EINTR)
    |  +- UsageError               the caller's fault: EFSM, ENOTSUP, EINVAL, ...
    |  +- EndpointError            an address is wrong, taken or not to be had; .endpoint
    |  +- ProtocolError            the peer's fault: octets that ZMTP forbids (EPROTO); .source
    |     +- HandshakeError        both speak ZMTP, but they do not fit together
    +- ZMQBindError                bind_to_random_port found no free port
    +- NotDone                     MessageTracker.wait ran out of time
    ZMQVersionError (NotImplementedError)
    DraftFDWarning (RuntimeWarning)

Whose fault it is stands in the class, what happened in ``errno``. Programs written for pyzmq read
``str(error)``, so where pyzmq raises the same thing the text is pyzmq's to the letter; *what to do
about it* is a note (:pep:`678`), which tracebacks show below the text: pass ``hint=``.
"""

from __future__ import annotations

import errno as _system
import os

from zerohop.constants import LIBZMQ_VERSION, Errno, Event

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "Again",
    "ContextTerminated",
    "DraftFDWarning",
    "EndpointError",
    "HandshakeError",
    "InterruptedSystemCall",
    "NotDone",
    "ProtocolError",
    "UsageError",
    "ZMQBaseError",
    "ZMQBindError",
    "ZMQError",
    "ZMQVersionError",
    "error_from_errno",
    "strerror",
]

# What libzmq says instead of the system: its own numbers, and one number of everybody's.
_TEXTS: dict[int, str] = {
    Errno.EFSM: "Operation cannot be accomplished in current state",
    Errno.ENOCOMPATPROTO: "The protocol is not compatible with the socket type",
    Errno.ETERM: "Context was terminated",
    Errno.EMTHREAD: "No thread available",
    Errno.EHOSTUNREACH: "Host unreachable",  # Linux says "No route to host"
}


def strerror(errno: int) -> str:
    """Return libzmq's text for an error number (``zmq_strerror``)."""
    text = _TEXTS.get(errno)
    return os.strerror(errno) if text is None else text


_WOULD_BLOCK = strerror(Errno.EAGAIN)


class ZMQBaseError(Exception):
    """Base of what a socket raises. Catch :class:`ZMQError` to have an ``errno``."""


class ZMQError(ZMQBaseError):
    """Something failed, and this is its number.

    Args:
        errno: the number, libzmq's; or a text, then there is no number.
        msg: the text, instead of :func:`strerror` of the number.
        hint: what the user can do about it, added as a note.

    Attributes:
        errno: as above; ``None`` where only a text was given.
        strerror: the text.
    """

    errno: int | None
    strerror: str

    def __init__(
        self, errno: int | str | None = None, msg: str | None = None, *, hint: str | None = None
    ) -> None:
        if isinstance(errno, str):
            self.errno, self.strerror = None, errno
        else:
            self.errno = 0 if errno is None else errno
            self.strerror = strerror(self.errno) if msg is None else msg
        if hint is not None:
            self.add_note(hint)

    def __str__(self) -> str:
        return self.strerror

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        # Exception's own way calls the class with ``args``, which lack what is keyword-only here.
        return _restore, (type(self), self.args), self.__dict__


def _restore(kind: type[ZMQError], args: tuple[Any, ...]) -> ZMQError:
    """Make an exception without its ``__init__``; the caller fills in its attributes."""
    return kind.__new__(kind, *args)


class Again(ZMQError):
    """The operation would block: nothing to receive, or no room to send (EAGAIN).

    Polling programs meet it by the million, so it costs nothing to make: number and text belong
    to the class. Positional arguments are ignored, as pyzmq ignores them.
    """

    errno: int | None = Errno.EAGAIN
    strerror: str = _WOULD_BLOCK

    def __init__(
        self, errno: object = None, msg: object = None, *, hint: str | None = None
    ) -> None:
        if hint is not None:
            self.add_note(hint)


class ContextTerminated(ZMQError):
    """The context is being terminated: close the socket (ETERM)."""

    def __init__(
        self, errno: object = None, msg: object = None, *, hint: str | None = None
    ) -> None:
        super().__init__(Errno.ETERM, hint=hint)


class InterruptedSystemCall(ZMQError, InterruptedError):  # type: ignore[misc] # strerror: never None
    """A signal interrupted a system call (EINTR). Sockets retry, so users should not meet it."""

    def __init__(
        self, errno: object = None, msg: object = None, *, hint: str | None = None
    ) -> None:
        super().__init__(_system.EINTR, hint=hint)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (), self.__dict__  # errno lives in OSError's own fields, not in __dict__


class UsageError(ZMQError):
    """The call is wrong: for this socket type, in this state, or with this value."""


class EndpointError(ZMQError):
    """An endpoint cannot be used: badly written, already taken, or not to be had on this machine.

    Args:
        errno: why: EINVAL, EPROTONOSUPPORT, ENODEV, EADDRINUSE, ...
        msg: the text, instead of :func:`strerror` of the number; the address is put behind it.
        endpoint: the address as the user wrote it.
        hint: what to write instead.

    Attributes:
        endpoint: as above.
    """

    endpoint: object  # what the user passed, which need not be a str: that is what may be wrong

    def __init__(
        self, errno: int, msg: str | None = None, *, endpoint: object, hint: str | None = None
    ) -> None:
        text = strerror(errno) if msg is None else msg
        super().__init__(errno, f"{text} (addr={endpoint!r})", hint=hint)
        self.endpoint = endpoint


class ProtocolError(ZMQError):
    """The peer sent octets that ZMTP forbids. Its connection is finished, others are not touched.

    Args:
        problem: what the peer did, with the values seen.
        source: where the rule stands, as ``"RFC 37, Framing"``.
        code: what a monitor reports with HANDSHAKE_FAILED_PROTOCOL.
        hint: what the user can do about it.

    Attributes:
        problem: as above; ``str(error)`` is the problem followed by the source.
        source: as above.
        code: as above.
    """

    problem: str
    source: str
    code: Event

    def __init__(
        self,
        problem: str,
        *,
        source: str,
        code: Event = Event.PROTOCOL_ERROR_ZMTP_UNSPECIFIED,
        hint: str | None = None,
    ) -> None:
        super().__init__(_system.EPROTO, f"{problem} ({source})", hint=hint)
        self.problem = problem
        self.source = source
        self.code = code


class HandshakeError(ProtocolError):
    """Both ends speak ZMTP but do not fit together: mechanism, socket type, version, credentials.

    Say in ``hint`` what to set, and on which side.
    """


class ZMQBindError(ZMQBaseError):
    """``bind_to_random_port`` tried as often as it may and found no free port."""


class NotDone(ZMQBaseError):
    """``MessageTracker.wait`` ran out of time before the message was done."""


class ZMQVersionError(NotImplementedError):
    """A feature asks for a newer libzmq than the one whose behaviour we have.

    Args:
        min_version: the version that has it, as ``"4.4"``.
        msg: the name of the feature.
    """

    def __init__(self, min_version: str, msg: str = "Feature") -> None:
        super().__init__(min_version, msg)
        self.msg = msg
        self.min_version = min_version
        self.version = LIBZMQ_VERSION

    def __str__(self) -> str:
        return f"{self.msg} requires libzmq >= {self.min_version}, have {self.version}"

    def __repr__(self) -> str:
        return f"ZMQVersionError({str(self)!r})"


class DraftFDWarning(RuntimeWarning):
    """pyzmq warns with it when ``FD`` of a thread-safe socket is read. Ours have a real one."""


_BY_ERRNO: dict[int, type[Again | ContextTerminated | InterruptedSystemCall]] = {
    Errno.EAGAIN: Again,
    Errno.ETERM: ContextTerminated,
    _system.EINTR: InterruptedSystemCall,
}


def error_from_errno(errno: int, msg: str | None = None, *, hint: str | None = None) -> ZMQError:
    """Make the exception that pyzmq raises for an error number.

    Args:
        errno: libzmq's number.
        msg: the text instead of libzmq's; the three states (EAGAIN, ETERM, EINTR) keep theirs.
        hint: what the user can do about it.
    """
    state = _BY_ERRNO.get(errno)
    return ZMQError(errno, msg, hint=hint) if state is None else state(hint=hint)
