"""Options of the system's sockets (``setsockopt(2)``), from those of ours."""

from __future__ import annotations

import socket

from zerohop.constants import Errno
from zerohop.errors import EndpointError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from zerohop.core.system_options import IpcOptions, TcpOptions


# Numbers: of an enum's member the system's call would ask for its number.
_TCP, _NODELAY = int(socket.IPPROTO_TCP), int(socket.TCP_NODELAY)


def check_ipc(endpoint: str) -> None:
    """Say so at once where there are no Unix-domain sockets.

    Raises:
        EndpointError: EPROTONOSUPPORT.
    """
    if not hasattr(socket, "AF_UNIX"):
        raise EndpointError(
            Errno.EPROTONOSUPPORT,
            endpoint=endpoint,
            hint="this Python has no Unix-domain sockets; use tcp://127.0.0.1:port",
        )


def set_listener_options(sock: socket.socket, options: TcpOptions) -> None:
    """Before ``bind``: the address may be used again at once after a restart."""
    # On Windows SO_REUSEADDR would let another program take the port away.
    name = "SO_EXCLUSIVEADDRUSE" if hasattr(socket, "SO_EXCLUSIVEADDRUSE") else "SO_REUSEADDR"
    sock.setsockopt(socket.SOL_SOCKET, getattr(socket, name), 1)
    _set_buffers(sock, options.sndbuf, options.rcvbuf)
    _set_tcp_common(sock, options)


def set_tcp_options(sock: socket.socket, options: TcpOptions) -> None:
    """On a connected socket, or before it connects."""
    # Messages are batched before they are written; Nagle would only add its delay.
    sock.setsockopt(_TCP, _NODELAY, 1)
    if options.plain:
        return
    _set_buffers(sock, options.sndbuf, options.rcvbuf)
    _set_tcp_common(sock, options)
    if options.keepalive != -1:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, options.keepalive)
    if options.keepalive == 1:
        for name, value in (
            ("TCP_KEEPCNT", options.keepalive_cnt),
            ("TCP_KEEPIDLE", options.keepalive_idle),
            ("TCP_KEEPINTVL", options.keepalive_intvl),
        ):
            if value > 0 and hasattr(socket, name):
                sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    if options.maxrt and hasattr(socket, "TCP_USER_TIMEOUT"):
        timeout_ms = int(options.maxrt * 1000)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, timeout_ms)


def _set_tcp_common(sock: socket.socket, options: TcpOptions) -> None:
    if options.tos:
        try:  # noqa: SIM105 - nothing else on the way of an import needs contextlib
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, options.tos)
        except OSError:  # an IPv6 socket refuses the IPv4 option
            pass
        if sock.family == socket.AF_INET6 and hasattr(socket, "IPV6_TCLASS"):
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, options.tos)
    if options.bindtodevice and hasattr(socket, "SO_BINDTODEVICE"):
        device = options.bindtodevice.encode()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device)


def set_ipc_options(sock: socket.socket, options: IpcOptions) -> None:
    """On a Unix-domain socket."""
    _set_buffers(sock, options.sndbuf, options.rcvbuf)


def _set_buffers(sock: socket.socket, sndbuf: int, rcvbuf: int) -> None:
    if sndbuf > 0:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, sndbuf)
    if rcvbuf > 0:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
