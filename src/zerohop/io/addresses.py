"""Names and interfaces to socket addresses, and back."""

from __future__ import annotations

import errno
import socket
import struct
import sys
from functools import lru_cache

from zerohop.core.endpoint import tcp_address
from zerohop.errors import EndpointError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

SocketAddress: TypeAlias = tuple[socket.AddressFamily, tuple[str, int] | tuple[str, int, int, int]]
"""A family and what ``socket.bind`` and ``socket.connect`` take for it."""

_SIOCGIFADDR = 0x8915  # Linux: the IPv4 address of an interface
_IF_INET6 = "/proc/net/if_inet6"


def local_address(host: str, port: int, *, ipv6: bool, endpoint: str) -> SocketAddress:
    """Where to listen: ``*``, a literal, an interface's name, or the name of this machine.

    Never asks a name server, which may take long (libzmq resolves no names here at all).

    Raises:
        EndpointError: ENODEV, it is none of these.
    """
    if host == "*":
        return (socket.AF_INET6, ("::", port)) if ipv6 else (socket.AF_INET, ("0.0.0.0", port))  # noqa: S104
    literal = numeric_address(host, port)
    if literal is not None and (ipv6 or literal[0] == socket.AF_INET):
        return literal
    if literal is None:
        found = interface_address(host, ipv6=ipv6)
        if found is not None:
            literal = numeric_address(found, port)
            if literal is not None:
                return literal
        if host in ("localhost", socket.gethostname()):
            try:
                return resolve(host, port, ipv6=ipv6)[0]
            except OSError:
                pass
    hint = (
        f"{host} is an IPv6 address; set the IPV6 option first"
        if literal is not None
        else f"neither this machine nor an interface of it is named {host} "
        f"(interfaces: {', '.join(name for _, name in socket.if_nameindex())})"
    )
    raise EndpointError(errno.ENODEV, endpoint=endpoint, hint=hint)


def numeric_address(host: str, port: int) -> SocketAddress | None:
    """The address that a literal spells (``127.0.0.1``, ``::1``, ``fe80::1%eth0``), else None."""
    return _scoped_address(host, port) if "%" in host else _plain_address(host, port)


@lru_cache(maxsize=16)  # a thousand sockets connect to a few addresses
def _plain_address(host: str, port: int) -> SocketAddress | None:
    return _scoped_address(host, port)


def _scoped_address(host: str, port: int) -> SocketAddress | None:
    """Of one with a zone: an interface's number may be another one the next time."""
    bare, _, zone = host.partition("%")
    if _spells(socket.AF_INET, bare):
        return None if zone else (socket.AF_INET, (bare, port))
    if not _spells(socket.AF_INET6, bare):
        return None
    scope = 0
    if zone:
        try:
            scope = int(zone) if zone.isdecimal() else socket.if_nametoindex(zone)
        except OSError:
            return None
    return socket.AF_INET6, (bare, port, 0, scope)


def _spells(family: socket.AddressFamily, text: str) -> bool:
    try:
        socket.inet_pton(family, text)
    except (OSError, ValueError):  # ValueError: no ASCII, or a NUL
        return False
    return True


def resolve(host: str, port: int, *, ipv6: bool) -> list[SocketAddress]:
    """Every TCP address of a name, in the system's order; may take long: not on the I/O path.

    Without the IPV6 option only IPv4, as libzmq.

    Raises:
        OSError: the name cannot be resolved (``socket.gaierror``).
    """
    family = socket.AF_UNSPEC if ipv6 else socket.AF_INET
    found = socket.getaddrinfo(host, port, family, socket.SOCK_STREAM)
    return [(entry[0], entry[4]) for entry in found]  # type: ignore[misc] # AF_INET or AF_INET6


def interface_address(name: str, *, ipv6: bool) -> str | None:
    """The first address of a network interface, or None where there is no such interface.

    With ``ipv6`` its IPv6 address, if it has one.
    """
    if not sys.platform.startswith("linux"):
        return None
    if ipv6 and (found := _interface_ipv6(name)) is not None:
        return found
    import fcntl  # not on Windows

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        request = struct.pack("256s", name.encode()[:15])
        try:
            reply = fcntl.ioctl(sock.fileno(), _SIOCGIFADDR, request)
        except OSError:
            return None
    return socket.inet_ntoa(reply[20:24])


def _interface_ipv6(name: str) -> str | None:
    try:
        with open(_IF_INET6) as table:
            rows = [line.split() for line in table]
    except OSError:
        return None
    for row in rows:
        if len(row) == 6 and row[5] == name:
            text = socket.inet_ntop(socket.AF_INET6, bytes.fromhex(row[0]))
            return f"{text}%{name}" if text.startswith("fe80:") else text
    return None


def printable(sock_name: object, *, scheme: str) -> str:
    """An OS socket's name as an endpoint: ``tcp://127.0.0.1:5555``, ``ipc://path``, ``ipc://@name``."""
    if scheme == "tcp" and isinstance(sock_name, tuple):
        return tcp_address(sock_name)
    if isinstance(sock_name, bytes):
        return "ipc://@" + sock_name.removeprefix(b"\0").decode("utf-8", "backslashreplace")
    return f"ipc://{sock_name}" if sock_name else ""
