"""What is set on the system's sockets, and asked of who connects to them: of TCP, and of ipc.

Made of a socket's options when it first binds or connects (``EndpointOptions.tcp``, ``.ipc``), and
carried out by ``io.sockets``.
"""

from __future__ import annotations

from functools import cached_property

from zerohop.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from zerohop.core.option_shapes import Network
    from zerohop.core.options import EndpointOptions

# Where BACKLOG is not set. libzmq listens with its default, 100: of a thousand clients that come at
# once the kernel turns most away then, and they try again a second later, and three.
_BACKLOG = 4096
# Octets that a Unix-domain socket holds until they are read, where SNDBUF is not set; the system
# may grant less. It does not let them grow with the need, as for TCP, and lets the writer go on
# only when three quarters are read: with its 208 KiB both ends wait for each other at each message
# of 256 KiB. With 512 KiB it takes two thirds to three quarters of the time (bench: pushpull-256k),
# and with this half of the waits that are left, and an eighth of the processor time, are gone.
_IPC_SNDBUF = 1024 * 1024


class TcpOptions(Value):
    """What is set on a TCP socket of the system. -1: leave it as the system has it.

    Attributes:
        backlog: connections that the system keeps until they are accepted.
        sndbuf, rcvbuf: octets.
        keepalive, keepalive_idle, keepalive_intvl, keepalive_cnt: as the options; seconds.
        maxrt: seconds, None: leave it.
        connect_timeout: seconds, None: as long as the system takes.
        bindtodevice: name of a device, or ``""``.
        use_fd: a listening descriptor to adopt, or None.
        accept_filters: networks whose peers are accepted; empty: everybody.
        socks_proxy: ``host:port``, or ``""``; with its name and password.
    """

    ipv6: bool
    backlog: int
    sndbuf: int
    rcvbuf: int
    tos: int
    keepalive: int
    keepalive_idle: int
    keepalive_intvl: int
    keepalive_cnt: int
    maxrt: float | None
    connect_timeout: float | None
    bindtodevice: str
    use_fd: int | None
    accept_filters: frozenset[Network]
    socks_proxy: str
    socks_username: bytes
    socks_password: bytes

    not_shown = frozenset({"socks_password"})

    @cached_property
    def plain(self) -> bool:
        """Whether connected sockets are as the system makes them, but for Nagle's algorithm."""
        return (
            max(self.sndbuf, self.rcvbuf, self.tos) <= 0
            and self.keepalive == -1
            and not (self.maxrt or self.bindtodevice)
        )

    def admits(self, host: str) -> bool:
        """Whether a peer at this numeric address may connect (TCP_ACCEPT_FILTER)."""
        if not self.accept_filters:
            return True
        import ipaddress  # 1 ms, for a rare option

        address = ipaddress.ip_address(host.partition("%")[0])
        mapped = getattr(address, "ipv4_mapped", None)  # an IPv4 peer of an IPv6 listener
        return any((mapped or address) in network for network in self.accept_filters)


class IpcOptions(Value):
    """What is set on, and asked of, a Unix-domain socket; -1: leave it as the system has it."""

    backlog: int
    sndbuf: int
    rcvbuf: int
    use_fd: int | None
    pids: frozenset[int]
    uids: frozenset[int]
    gids: frozenset[int]

    @property
    def filtered(self) -> bool:
        """Whether the peer's credentials matter at all."""
        return bool(self.pids or self.uids or self.gids)

    def admits(self, pid: int, uid: int, gid: int) -> bool:
        """Whether a peer process may connect: one match is enough (IPC_FILTER_PID, _UID, _GID)."""
        return not self.filtered or pid in self.pids or uid in self.uids or gid in self.gids


def tcp_options(options: EndpointOptions) -> TcpOptions:
    """Return those of a TCP endpoint."""
    return TcpOptions(
        ipv6=options.ipv6,
        backlog=options.values.get("backlog", _BACKLOG),
        sndbuf=options.sndbuf,
        rcvbuf=options.rcvbuf,
        tos=options.tos,
        keepalive=options.tcp_keepalive,
        keepalive_idle=options.tcp_keepalive_idle,
        keepalive_intvl=options.tcp_keepalive_intvl,
        keepalive_cnt=options.tcp_keepalive_cnt,
        maxrt=options.tcp_maxrt,
        connect_timeout=options.connect_timeout,
        bindtodevice=options.bindtodevice.decode("utf-8", "surrogateescape"),
        use_fd=options.use_fd,
        accept_filters=options.tcp_accept_filters,
        socks_proxy=options.socks_proxy.decode("utf-8", "surrogateescape"),
        socks_username=options.socks_username,
        socks_password=options.socks_password,
    )


def ipc_options(options: EndpointOptions) -> IpcOptions:
    """Return those of an ipc endpoint."""
    return IpcOptions(
        backlog=options.values.get("backlog", _BACKLOG),
        sndbuf=options.values.get("sndbuf", _IPC_SNDBUF),
        rcvbuf=options.rcvbuf,
        use_fd=options.use_fd,
        pids=options.ipc_filter_pids,
        uids=options.ipc_filter_uids,
        gids=options.ipc_filter_gids,
    )
