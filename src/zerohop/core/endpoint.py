"""Addresses as users write them, and what they mean.

    tcp://host:port               bind: an interface, an address, a name of this machine, or *
                                  for all; port * or 0: any that is free
                                  connect: an address or a name; port as digits
    tcp://source;host:port        connect from source, which is host:port, or host alone
    ipc://path                    at most 107 octets; bind: * for a new path
    ipc://@name                   abstract, no file (Linux)
    inproc://name                 any text

An IPv6 address may stand in brackets, and may have a zone (``[fe80::1%eth0]``). Names of hosts and
of interfaces stay names here: looking them up is I/O. The rules are libzmq's, with its numbers for
what is wrong, except that what it takes for something else (port 99999 for 34463, ``5555x`` for
5555) is refused.
"""

from __future__ import annotations

import errno
import os
import sys
from functools import lru_cache

from zerohop.constants import Errno
from zerohop.errors import EndpointError
from zerohop.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn, TypeAlias

__all__ = [
    "IPC_PATH_MAX_LEN",
    "Endpoint",
    "InprocEndpoint",
    "IpcEndpoint",
    "SocketName",
    "TcpEndpoint",
    "parse",
    "tcp_address",
]

IPC_PATH_MAX_LEN = 103 if sys.platform == "darwin" else 107  # sizeof(sun_path) less its NUL


class TcpEndpoint(Value):
    """A place to listen at or to connect to.

    Attributes:
        host: ``*``, a name, or an address without brackets, with its zone if it has one.
        port: 0: any that is free.
        source_host, source_port: where to connect from; None: wherever the system likes.
        text: as the user wrote it; ``str()`` returns it, so that LAST_ENDPOINT after a ``connect``
            and errors say the same as libzmq's. Two endpoints are equal without regard to it.
    """

    host: str
    port: int
    source_host: str | None = None
    source_port: int | None = None
    text: str = ""

    not_compared = not_shown = frozenset({"text"})

    @property
    def wildcard(self) -> bool:
        """Whether it means every interface."""
        return self.host == "*"

    def __str__(self) -> str:
        if self.text:
            return self.text
        source = ""
        if self.source_host is not None:
            port = "" if self.source_port is None else f":{self.source_port}"
            source = f"{_bracketed(self.source_host)}{port};"
        return f"tcp://{source}{_bracketed(self.host)}:{self.port}"


class IpcEndpoint(Value):
    """A path, or a name in Linux's abstract space.

    Attributes:
        path: of the socket file; of an abstract one the name, without ``@``; empty for a wildcard.
        abstract: there is no file.
        wildcard: ``bind`` chooses a path.
        text: see :class:`TcpEndpoint`.
    """

    path: str
    abstract: bool = False
    wildcard: bool = False
    text: str = ""

    not_compared = not_shown = frozenset({"text"})

    def __str__(self) -> str:
        if self.text:
            return self.text
        return f"ipc://{'*' if self.wildcard else '@' * self.abstract + self.path}"


class InprocEndpoint(Value):
    """A name among the sockets of one Context."""

    name: str

    def __str__(self) -> str:
        return f"inproc://{self.name}"


Endpoint: TypeAlias = TcpEndpoint | IpcEndpoint | InprocEndpoint

SocketName: TypeAlias = str | tuple[str, int] | tuple[str, int, int, int]
"""Who is at one end of a connection: in words, or as TCP sockets of the system name it."""

_ELSEWHERE = {  # schemes that libzmq knows: its number for these socket types, and why not here
    "udp": (Errno.ENOCOMPATPROTO, "udp carries only the draft types RADIO, DISH and DGRAM"),
    "ws": (Errno.EPROTONOSUPPORT, "WebSocket is not supported; use tcp"),
    "wss": (Errno.EPROTONOSUPPORT, "WebSocket is not supported; use tcp"),
    "tipc": (Errno.EPROTONOSUPPORT, "TIPC is not supported; use tcp"),
    "vsock": (Errno.EPROTONOSUPPORT, "VSOCK is not supported; use tcp"),
    "vmci": (Errno.EPROTONOSUPPORT, "VMCI is not supported; use tcp"),
    "pgm": (Errno.EPROTONOSUPPORT, "multicast is not supported; PUB and SUB work over tcp"),
    "epgm": (Errno.EPROTONOSUPPORT, "multicast is not supported; PUB and SUB work over tcp"),
    "norm": (Errno.EPROTONOSUPPORT, "multicast is not supported; PUB and SUB work over tcp"),
}
_LETTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")
_LONGEST_LABEL = 63  # a longer one is in no DNS name
_IPV6_LETTERS = frozenset("0123456789ABCDEFabcdef:.")


class _Fault(Exception):
    """Why an address is refused, on its way to :func:`parse`."""

    def __init__(self, number: int, hint: str, text: str | None = None) -> None:
        super().__init__(number, hint)
        self.number, self.hint, self.text = number, hint, text


def parse(address: str | bytes, *, for_bind: bool) -> Endpoint:
    """Return what an address means to ``bind`` or to ``connect``.

    Args:
        address: as the user wrote it; octets are taken for UTF-8.
        for_bind: for ``bind`` and ``unbind``; else for ``connect`` and ``disconnect``.

    Raises:
        EndpointError: EINVAL: it is no address, or not one of this use. EPROTONOSUPPORT: a scheme
            that is not ours. ENOCOMPATPROTO: ``udp``. ENODEV: a host that no interface can have.
            ENAMETOOLONG: an ``ipc`` path over 107 octets. Its notes say what to write instead.
        TypeError: it is no text, with pyzmq's words.
    """
    try:
        return _parse(address if type(address) is str else _text(address), for_bind)
    except UnicodeError:
        raise EndpointError(
            Errno.EINVAL, endpoint=address, hint="an address is text that UTF-8 can encode"
        ) from None
    except _Fault as fault:
        raise EndpointError(fault.number, fault.text, endpoint=address, hint=fault.hint) from None


def _text(address: object) -> str:
    if isinstance(address, bytes):
        return address.decode()
    if not isinstance(address, str):
        raise TypeError(f"Expected addr to be str, got addr={address!r}")
    return address


@lru_cache(maxsize=16)  # a thousand sockets connect to a few addresses
def _parse(text: str, for_bind: bool) -> Endpoint:
    text.encode()
    scheme, separator, rest = text.partition("://")
    if not separator or not scheme or not rest:
        _refuse("write transport://address, such as tcp://127.0.0.1:5555, ipc:///tmp/x, inproc://x")
    if "\0" in rest:
        _refuse("an address cannot contain a NUL character")
    if scheme == "tcp":
        return _parse_tcp(text, rest, for_bind=for_bind)
    if scheme == "ipc":
        return _parse_ipc(text, rest, for_bind=for_bind)
    if scheme == "inproc":
        return InprocEndpoint(rest)
    number, hint = _ELSEWHERE.get(
        scheme, (Errno.EPROTONOSUPPORT, "the transports are tcp, ipc and inproc, in lower case")
    )
    return _refuse(hint, number)


def _parse_tcp(text: str, rest: str, *, for_bind: bool) -> TcpEndpoint:
    if for_bind:
        host, port = _split_port(rest)
        if ";" in rest:
            _refuse("a source address (before ;) is for connect alone")
        number = 0 if port == "*" else _port(port)
        host = _unbracketed(host)
        if host != "*" and not _is_host(host):
            _refuse("bind to *, an address, or the name of an interface", errno.ENODEV)
        return TcpEndpoint(host, number, text=text)
    source, separator, target = rest.rpartition(";")
    host, port = _split_port(target)
    if host == "*" or port == "*":
        _refuse("* is for bind; connect to a host and a port")
    source_host: str | None = None
    source_port: int | None = None
    if separator:
        source_host, source_port = _parse_source(source)
    return TcpEndpoint(_connectable(host), _port(port), source_host, source_port, text=text)


def _parse_source(source: str) -> tuple[str, int | None]:
    """``host:port``, ``host:*`` or ``host``; an IPv6 address without a port needs its brackets."""
    host, colon, port = source.rpartition(":")
    if not colon or source.endswith("]"):
        return _connectable(source), None
    return _connectable(host), 0 if port == "*" else _port(port)


def _split_port(text: str) -> tuple[str, str]:
    host, colon, port = text.rpartition(":")
    if not colon:
        _refuse("the port is missing: write host:port")
    return host, port


def _port(text: str) -> int:
    if not (text.isascii() and text.isdecimal()) or len(text) > 9 or int(text) > 65535:
        _refuse(f"a port is a number from 0 to 65535, not {text[:64]!r}")
    return int(text)


def _connectable(host: str) -> str:
    bare = _unbracketed(host)
    if not _is_host(bare):
        _refuse(
            f"{host[:64]!r} is no name and no address of a host; of a name with other letters "
            "than ASCII's write the ASCII form (xn--...)"
        )
    return bare


def _is_host(text: str) -> bool:
    """Whether it looks like a name, an IPv4 address, or an IPv6 address and perhaps its zone.

    Not by a regular expression: for these, most programs would import ``re``.
    """
    address, percent, zone = text.partition("%")
    if ":" in address and _IPV6_LETTERS.issuperset(address):
        return not percent or (zone != "" and _LETTERS.issuperset(zone.replace(".", "")))
    labels = text.removesuffix(".").split(".")
    return all(0 < len(label) <= _LONGEST_LABEL and _LETTERS.issuperset(label) for label in labels)


def _unbracketed(host: str) -> str:
    return host[1:-1] if host.startswith("[") and host.endswith("]") else host


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _parse_ipc(text: str, rest: str, *, for_bind: bool) -> IpcEndpoint:
    if rest == "*":
        if not for_bind:
            _refuse("* is for bind; connect to the path that LAST_ENDPOINT says there")
        return IpcEndpoint("", wildcard=True, text=text)
    if rest == "@":
        _refuse("an abstract name is empty: write ipc://@name")
    if len(os.fsencode(rest)) > IPC_PATH_MAX_LEN:
        _refuse(
            "IPC_PATH_MAX_LEN has the limit, in octets; choose a shorter directory",
            errno.ENAMETOOLONG,
            # pyzmq words it so for bind, and leaves it at the number's own text for connect.
            f'ipc path "{rest}" is longer than {IPC_PATH_MAX_LEN} characters '
            "(sizeof(sockaddr_un.sun_path))."
            if for_bind
            else None,
        )
    abstract = rest.startswith("@")
    return IpcEndpoint(rest[abstract:], abstract=abstract, text=text)


def _refuse(hint: str, number: int = Errno.EINVAL, text: str | None = None) -> NoReturn:
    raise _Fault(number, hint, text)


def tcp_address(name: tuple[str, int] | tuple[str, int, int, int]) -> str:
    """The name of a TCP socket of the system as an endpoint: ``tcp://[::1]:5555``."""
    return f"tcp://{_bracketed(name[0])}:{name[1]}"
