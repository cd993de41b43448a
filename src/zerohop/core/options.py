"""Options of a socket and of a context: typed values inside, libzmq's numbers outside.

:class:`SocketOptions` holds every value as an attribute; ``get`` and ``set`` go by the table
(:mod:`zerohop.core.option_table`). Durations are **seconds** here, and ``None`` is "no limit" or
"off"; milliseconds exist only in what ``get`` returns and ``set`` takes.

A bind() or connect() goes by the options as they are then (libzmq: all but the live ones), that is
by :class:`EndpointOptions`, of which a layer gets the few that are its business, as a value made
once (``tcp``, ``heartbeat``, ...). Patterns obey theirs live, therefore ``SocketOptions`` *is* a
``PatternOptions``.
"""

from __future__ import annotations

from functools import cached_property
from types import MappingProxyType
from weakref import ref

from zerohop.constants import (
    ContextOption,
    Errno,
    OptionKind,
    SecurityMechanism,
    SocketOption,
    SocketType,
)
from zerohop.core.reconnect import ReconnectOptions
from zerohop.errors import UsageError
from zerohop.patterns.pattern import PatternOptions
from zerohop.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from zerohop.core.option_shapes import Network
    from zerohop.core.option_table import Option
    from zerohop.core.system_options import IpcOptions, TcpOptions
    from zerohop.wire.heartbeat import HeartbeatOptions

__all__ = [
    "ContextOptions",
    "EndpointOptions",
    "SocketOptions",
    "Subscription",
]

_INT_MIN, _INT_MAX = -(2**31), 2**31 - 1
_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1
_LEAVE_AT_ONCE = frozenset({SocketType.SUB, SocketType.XSUB})
_SECRET = frozenset({"socks_password", "plain_password", "curve_secretkey"})


class Subscription(Value):
    """``set`` of SUBSCRIBE or UNSUBSCRIBE, checked; the socket tells its pattern."""

    topic: bytes
    subscribe: bool


class SocketOptions(PatternOptions):
    """Every option of one socket that is not a state of the socket itself.

    What the attributes mean stands beside the option of the same name in
    ``docs/reference/options.md``; the defaults are libzmq's. The order is the table's.

    Attributes:
        conflate: the last message only; stays False for types that do not conflate, although
            ``get`` returns what was asked for (``conflate_asked``).
        heartbeat_ttl_ds: in tenths of a second, as on the wire.
        heartbeat_timeout: None: as ``heartbeat_ivl``; 0.0: off.
        as_server: whether this end is the server of ``mechanism``.
        metadata: properties for READY, by name, names as they were given.
    """

    # A default belongs to the class: an instance keeps what was changed, which is little for each
    # of many connections, and quick to copy.
    sndhwm: int = 1000
    rcvhwm: int = 1000
    linger: float | None = None
    rcvtimeo: float | None = None
    sndtimeo: float | None = None
    immediate: bool = False
    conflate: bool = False
    conflate_asked: bool = False
    maxmsgsize: int | None = None
    connect_routing_id: bytes = b""

    reconnect_ivl: float | None = 0.1
    reconnect_ivl_max: float | None = None
    reconnect_stop: int = 0
    connect_timeout: float | None = None
    handshake_ivl: float | None = 30.0
    heartbeat_ivl: float | None = None
    heartbeat_timeout: float | None = None
    heartbeat_ttl_ds: int = 0

    ipv6: bool = False
    backlog: int = 100
    sndbuf: int = -1
    rcvbuf: int = -1
    tcp_keepalive: int = -1
    tcp_keepalive_idle: int = -1
    tcp_keepalive_intvl: int = -1
    tcp_keepalive_cnt: int = -1
    tcp_maxrt: float | None = None
    tos: int = 0
    bindtodevice: bytes = b""
    use_fd: int | None = None
    tcp_accept_filters: frozenset[Network] = frozenset()
    ipc_filter_pids: frozenset[int] = frozenset()
    ipc_filter_uids: frozenset[int] = frozenset()
    ipc_filter_gids: frozenset[int] = frozenset()
    socks_proxy: bytes = b""
    socks_username: bytes = b""
    socks_password: bytes = b""
    metadata: Mapping[str, bytes] = MappingProxyType({})

    mechanism: SecurityMechanism = SecurityMechanism.NULL
    as_server: bool = False
    zap_domain: bytes = b""
    zap_enforce_domain: bool = False
    plain_username: bytes = b""
    plain_password: bytes = b""
    curve_publickey: bytes = b""
    curve_secretkey: bytes = b""
    curve_serverkey: bytes = b""

    affinity: int = 0
    router_raw: bool = False
    loopback_fastpath: bool = False
    rate: int = 100
    recovery_ivl: int = 10000
    multicast_hops: int = 1
    multicast_maxtpdu: int = 1500
    multicast_loop: bool = True

    def __repr__(self) -> str:
        changed = [
            f"{name}={value!r}"
            for name, value in vars(self).items()
            if value != getattr(SocketOptions, name, value) and name not in _SECRET
        ]
        return f"SocketOptions({', '.join(changed)})"

    @classmethod
    def of(cls, socket_type: SocketType, context: ContextOptions | None = None) -> SocketOptions:
        """The options with which a new socket begins.

        SUB and XSUB do not linger; nobody does in a context that is not BLOCKY.
        """
        options = cls()
        if socket_type in _LEAVE_AT_ONCE:
            options.linger = 0.0
        if context is not None:
            if context.ipv6:
                options.ipv6 = True
            if not context.blocky:
                options.linger = 0.0
        return options

    @property
    def plain_server(self) -> bool:
        """PLAIN_SERVER as ``get`` returns it."""
        return self.as_server and self.mechanism == SecurityMechanism.PLAIN

    @property
    def curve_server(self) -> bool:
        """CURVE_SERVER as ``get`` returns it."""
        return self.as_server and self.mechanism == SecurityMechanism.CURVE

    @property
    def thread_safe(self) -> bool:
        """THREAD_SAFE as ``get`` returns it."""
        return False

    def get(self, option: int, socket_type: SocketType) -> int | bytes:
        """Return an option's value in libzmq's units.

        A state of the socket (``TABLE[option].dynamic``: EVENTS, FD, ...) is the socket's to
        answer; here it is empty or 0, once it is clear that the type has it.

        Raises:
            UsageError: EINVAL: no such option, not one of this type, or it can only be set.
            TypeError: ``option`` is not a number.
        """
        row = _row(option)
        if row is None or socket_type not in row.readers:
            from zerohop.core.option_table import why_not_get

            raise UsageError(Errno.EINVAL, hint=why_not_get(option, row))
        if row.attribute is None:
            return b"" if row.number.kind is OptionKind.BYTES else 0
        return row.shape.show(getattr(self, row.attribute))

    def set(self, option: int, value: int | bytes, socket_type: SocketType) -> Subscription | None:
        """Set an option, the value in libzmq's units.

        Returns:
            What the socket must carry out itself, or None when the value is set.

        Raises:
            TypeError: ``value`` is not what the option takes, with pyzmq's text.
            OverflowError: a number of more than 32 bits (64 for MAXMSGSIZE and AFFINITY).
            UsageError: EINVAL: no such option, not one of this type, not a value it takes.
                Nothing has changed.
        """
        row = _row(option)
        _check_kind(value, _kind(option))
        if row is None or socket_type not in row.writers or not row.shape.accepts(value):
            from zerohop.core.option_table import why_not_set

            raise UsageError(Errno.EINVAL, hint=why_not_set(option, row, value, socket_type))
        if row.number in (SocketOption.SUBSCRIBE, SocketOption.UNSUBSCRIBE):
            if socket_type != SocketType.SUB and not self.xpub_manual:
                raise UsageError(
                    Errno.EINVAL, hint="a publisher subscribes its peers only with XPUB_MANUAL set"
                )
            assert isinstance(value, bytes)  # its kind was checked above
            return Subscription(value, row.number == SocketOption.SUBSCRIBE)
        stored = row.shape.store(value)
        if row.write is not None:
            row.write(self, stored, socket_type)
        else:
            assert row.attribute is not None  # test_option_table.py: a row can be carried out
            setattr(self, row.attribute, stored)
        return None

    def frozen(self) -> EndpointOptions:
        """Return the options as they are now, for a bind() or connect().

        The same object as last time if nothing is different: a thousand connections, of one socket
        or of many, have one copy.
        """
        global _latest
        values = vars(self)
        latest = _latest()
        if latest is None or latest.values != values:
            latest = EndpointOptions(values)
            _latest = ref(latest)
        return latest


class EndpointOptions(SocketOptions):
    """Options as they were at a bind() or connect(). Nobody changes them any more.

    So what follows from them is found once, when it is first asked for.

    Args:
        values: of the socket's options.

    Attributes:
        values: as given, copied.
        told: what is told to peers, by the type of the socket; ``core.link`` keeps it here.
    """

    __slots__ = ("told", "values")

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values = dict(values)
        self.told: dict[SocketType, Any] = {}
        vars(self).update(values)

    @cached_property
    def heartbeat(self) -> HeartbeatOptions:
        """What a new connection needs to watch its peer."""
        from zerohop.wire.heartbeat import HeartbeatOptions  # a program over inproc has none

        timeout = self.heartbeat_ivl if self.heartbeat_timeout is None else self.heartbeat_timeout
        return HeartbeatOptions(self.heartbeat_ivl or 0.0, self.heartbeat_ttl_ds, timeout or 0.0)

    @cached_property
    def reconnect(self) -> ReconnectOptions:
        """What a dialled endpoint needs."""
        return ReconnectOptions(self.reconnect_ivl, self.reconnect_ivl_max, self.reconnect_stop)

    @cached_property
    def tcp(self) -> TcpOptions:
        """What the TCP sockets of an endpoint need."""
        from zerohop.core.system_options import tcp_options  # a program over inproc has none

        return tcp_options(self)

    @cached_property
    def ipc(self) -> IpcOptions:
        """What the Unix-domain sockets of an endpoint need."""
        from zerohop.core.system_options import ipc_options  # likewise

        return ipc_options(self)


def _nobodys() -> EndpointOptions | None:
    """Where nobody has options yet, or nobody any more."""
    return None


_latest: Callable[[], EndpointOptions | None] = _nobodys
"""What :meth:`SocketOptions.frozen` returned last, as long as an endpoint has it."""


class ContextOptions:
    """Every option of a context (``zmq_ctx_set``).

    Args:
        changed: attributes that differ from their defaults.

    Attributes:
        io_threads: kept for programs that ask; our sockets need none.
        max_sockets: open sockets at most; one more is EMFILE.
        max_msgsz: largest message that may be sent, in octets.
        ipv6: IPV6 of new sockets.
        blocky: False: new sockets have LINGER 0.
        thread_priority, thread_sched_policy, thread_name_prefix, thread_cpus, zero_copy_recv: of
            libzmq's threads and memory; kept for programs that set them.
    """

    io_threads: int = 1
    max_sockets: int = 1023
    max_msgsz: int = _INT_MAX
    ipv6: bool = False
    blocky: bool = True
    thread_priority: int = -1
    thread_sched_policy: int = -1
    thread_name_prefix: int = 0
    thread_cpus: frozenset[int] = frozenset()
    zero_copy_recv: bool = True

    def __init__(self, **changed: int) -> None:
        for name, value in changed.items():
            setattr(self, name, value)

    def get(self, option: int) -> int:
        """Return a context option's value.

        Raises:
            UsageError: EINVAL: no such option, or it can only be set.
            TypeError: ``option`` is not a number.
        """
        _check_number(option)
        if option in _CONTEXT_CONSTANTS:
            return _CONTEXT_CONSTANTS[option]
        if option not in _CONTEXT_TABLE or option in _CPU_OPTIONS:
            raise UsageError(Errno.EINVAL, hint=f"no context option {_name(option)} to read")
        return int(getattr(self, _CONTEXT_TABLE[option][0]))

    def set(self, option: int, value: int) -> None:
        """Set a context option.

        Raises:
            TypeError: ``value`` or ``option`` is not a number, with pyzmq's text.
            OverflowError: the value has more than 32 bits.
            UsageError: EINVAL: no such option, or not a value it takes. Nothing has changed.
        """
        _check_number(option)
        _check_kind(value, OptionKind.INT)
        if option not in _CONTEXT_TABLE:
            raise UsageError(Errno.EINVAL, hint=f"no context option {_name(option)} to set")
        attribute, low, kind = _CONTEXT_TABLE[option]
        if value < low:
            raise UsageError(Errno.EINVAL, hint=f"{_name(option)} is {low} or more, got {value}")
        if option == ContextOption.THREAD_AFFINITY_CPU_ADD:
            self.thread_cpus |= {value}
        elif option == ContextOption.THREAD_AFFINITY_CPU_REMOVE:
            if value not in self.thread_cpus:
                raise UsageError(Errno.EINVAL, hint=f"processor {value} was not added")
            self.thread_cpus -= {value}
        else:
            setattr(self, attribute, kind(value))


_ZERO_COPY_RECV = 10  # pyzmq has no name for it
_CONTEXT_CONSTANTS: dict[int, int] = {
    ContextOption.SOCKET_LIMIT: 65535,  # what libzmq says where select() does not limit it
    ContextOption.MSG_T_SIZE: 64,  # octets of a zmq_msg_t, which we do not have
}
_CPU_OPTIONS = {ContextOption.THREAD_AFFINITY_CPU_ADD, ContextOption.THREAD_AFFINITY_CPU_REMOVE}
_CONTEXT_TABLE: dict[int, tuple[str, int, type[int]]] = {  # number: attribute, lowest value, type
    ContextOption.IO_THREADS: ("io_threads", 0, int),
    ContextOption.MAX_SOCKETS: ("max_sockets", 1, int),
    ContextOption.THREAD_PRIORITY: ("thread_priority", 0, int),
    ContextOption.THREAD_SCHED_POLICY: ("thread_sched_policy", 0, int),
    ContextOption.MAX_MSGSZ: ("max_msgsz", 0, int),
    ContextOption.THREAD_AFFINITY_CPU_ADD: ("thread_cpus", 0, int),
    ContextOption.THREAD_AFFINITY_CPU_REMOVE: ("thread_cpus", 0, int),
    ContextOption.THREAD_NAME_PREFIX: ("thread_name_prefix", _INT_MIN, int),
    _ZERO_COPY_RECV: ("zero_copy_recv", 0, bool),
    SocketOption.IPV6: ("ipv6", 0, bool),
    SocketOption.BLOCKY: ("blocky", 0, bool),
}


def _check_number(option: object) -> None:
    if not isinstance(option, int):
        raise TypeError("an integer is required")


def _row(option: int) -> Option | None:
    from zerohop.core.option_table import TABLE  # many programs set no option

    _check_number(option)
    return TABLE.get(option)


def _kind(option: int) -> OptionKind:
    try:
        return SocketOption(option).kind
    except ValueError:
        return OptionKind.INT  # pyzmq takes an unknown option for one


def _check_kind(value: object, kind: OptionKind) -> None:
    """Raise what pyzmq raises for a value of the wrong type."""
    if isinstance(value, str):
        raise TypeError("unicode not allowed, use setsockopt_string")
    if kind is OptionKind.BYTES:
        if not isinstance(value, bytes):
            raise TypeError(f"expected bytes, got: {value!r}")
    elif not isinstance(value, int):
        raise TypeError(f"expected int, got: {value!r}")
    elif not _INT64_MIN <= value <= _INT64_MAX:
        raise OverflowError("Python int too large to convert to C long")
    elif kind is not OptionKind.INT64 and not _INT_MIN <= value <= _INT_MAX:
        raise OverflowError("value too large to convert to int")


def _name(option: int) -> str:
    from zerohop.core.option_table import name_of  # for an error

    return name_of(option)
