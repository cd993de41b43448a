"""The table of socket options: one row an option, what it is, who has it, what it takes.

:mod:`zerohop.core.options` reads and writes a socket's options by this table, and the reference
page is made from it (:mod:`zerohop.core.option_reference`). What is accepted, refused and read back
is what libzmq 4.3.5 does as pyzmq 27.3 shows it, also where its manual says otherwise:
``tests/core/test_options.py`` holds every row against that.
"""

from __future__ import annotations

from zerohop.constants import SecurityMechanism, SocketType
from zerohop.constants import SocketOption as Number
from zerohop.core import option_shapes as shape
from zerohop.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from zerohop.core.options import SocketOptions

__all__ = ["ALL_TYPES", "REFUSED", "TABLE", "Option", "name_of", "why_not_get", "why_not_set"]


class Option(Value):
    """One row.

    Attributes:
        number: the option.
        attribute: of ``SocketOptions``, where the value is kept; None: nowhere, because the socket
            itself knows the value (``dynamic``) or carries the option out.
        shape: what may be set, and what it is inside.
        about: one line for the reference page.
        readers, writers: the socket types that have it for ``get`` and for ``set``.
        write: puts the stored value into the options, where that is more than one attribute.
        dynamic: the value is a state of the socket, which answers ``get``.
        live: setting it acts on connections and endpoints that exist already; others act on what
            is bound or connected from then on.
        idle: accepted and read back as libzmq does, and nothing follows from it.
        secret: never shown in an error.
    """

    number: Number
    attribute: str | None
    shape: shape.Shape
    about: str
    readers: frozenset[SocketType]
    writers: frozenset[SocketType]
    write: Callable[[SocketOptions, Any, SocketType], None] | None = None
    dynamic: bool = False
    live: bool = False
    idle: bool = False
    secret: bool = False


ALL_TYPES = frozenset(t for t in SocketType if t <= SocketType.STREAM)  # what is not draft
_NONE: frozenset[SocketType] = frozenset()
_ROUTER = frozenset({SocketType.ROUTER, SocketType.REP})  # a REP is a ROUTER inside: libzmq's too
_PUBLISHER = frozenset({SocketType.PUB, SocketType.XPUB})
_SUB = frozenset({SocketType.SUB})
_REQ = frozenset({SocketType.REQ})
_STREAM = frozenset({SocketType.STREAM})
_PROBING = _ROUTER | _REQ | {SocketType.DEALER}
_CONFLATING = _SUB | {SocketType.PUB, SocketType.DEALER, SocketType.PULL, SocketType.PUSH}

TABLE: dict[int, Option] = {}
"""Every option that some socket type has, by number."""


def _row(
    number: Number,
    attribute: str | None,
    values: shape.Shape,
    about: str,
    *,
    readers: frozenset[SocketType] = ALL_TYPES,
    writers: frozenset[SocketType] = ALL_TYPES,
    **marks: Any,
) -> None:
    TABLE[number] = Option(number, attribute, values, about, readers, writers, **marks)


def _state(number: Number, about: str, readers: frozenset[SocketType] = ALL_TYPES) -> None:
    """It can only be read, and the socket knows the value."""
    _row(number, None, shape.ANY, about, readers=readers, writers=_NONE, dynamic=True)


def _setting(
    writers: frozenset[SocketType],
    number: Number,
    attribute: str | None,
    values: shape.Shape,
    about: str,
    **marks: Any,
) -> None:
    """It can only be written, by some types."""
    _row(number, attribute, values, about, readers=_NONE, writers=writers, **marks)


def _write_conflate(options: SocketOptions, value: bool, socket_type: SocketType) -> None:
    options.conflate_asked = value
    options.conflate = value and socket_type in _CONFLATING


def _write_xpub_verbose(options: SocketOptions, value: bool, _: SocketType) -> None:
    options.xpub_verbose = value
    options.xpub_verboser = False


def _write_xpub_verboser(options: SocketOptions, value: bool, _: SocketType) -> None:
    options.xpub_verbose = options.xpub_verboser = value


def _write_xpub_manual_last_value(options: SocketOptions, value: bool, _: SocketType) -> None:
    options.xpub_manual = options.xpub_manual_last_value = value


def _serve(mechanism: SecurityMechanism) -> Callable[[SocketOptions, bool, SocketType], None]:
    """Be the server of a mechanism; 0 turns security off, whichever it was (libzmq)."""

    def write(options: SocketOptions, value: bool, _: SocketType) -> None:
        options.as_server = value
        options.mechanism = mechanism if value else SecurityMechanism.NULL

    return write


def _credential(
    attribute: str, mechanism: SecurityMechanism, *, client: bool = True
) -> Callable[[SocketOptions, bytes, SocketType], None]:
    """A credential chooses its mechanism: the last one that is set decides (libzmq).

    One that only a client has (``client``) also ends being a server.
    """

    def write(options: SocketOptions, value: bytes, _: SocketType) -> None:
        setattr(options, attribute, value)
        options.mechanism = mechanism
        if client:
            options.as_server = False

    return write


def _collect(attribute: str) -> Callable[[SocketOptions, Any, SocketType], None]:
    """Each setting adds one more."""

    def write(options: SocketOptions, value: Any, _: SocketType) -> None:
        setattr(options, attribute, getattr(options, attribute) | {value})

    return write


def _write_metadata(options: SocketOptions, value: bytes, socket_type: SocketType) -> None:
    name, _, text = value.partition(b":")
    options.metadata = {**options.metadata, name.decode("latin-1"): text}


_PLAIN, _CURVE = SecurityMechanism.PLAIN, SecurityMechanism.CURVE

# The order is that of the reference page: what most programs set comes first.
# fmt: off
_row(Number.SNDHWM, "sndhwm", shape.LIMIT, live=True,
     about="Messages queued to each peer; when they are as many, the peer is full.")
_row(Number.RCVHWM, "rcvhwm", shape.LIMIT, live=True,
     about="Messages queued from each peer; when they are as many, reading from it pauses.")
_row(Number.LINGER, "linger", shape.FOREVER, live=True,
     about="How long `close`, `disconnect` and `term` go on sending what is queued, and wait for "
     "what the system has taken to arrive (tcp, where an answer would take it back).")
_row(Number.RCVTIMEO, "rcvtimeo", shape.FOREVER, live=True,
     about="How long `recv` waits before it raises `Again`.")
_row(Number.SNDTIMEO, "sndtimeo", shape.FOREVER, live=True,
     about="How long `send` waits before it raises `Again`.")
_setting(_SUB | _PUBLISHER, Number.SUBSCRIBE, None, shape.WHOLE, live=True,
         about="Receive messages that begin with it. A PUB or XPUB: XPUB_MANUAL only.")
_setting(_SUB | _PUBLISHER, Number.UNSUBSCRIBE, None, shape.WHOLE, live=True,
         about="Take back one subscription. A PUB or XPUB: XPUB_MANUAL only.")
_row(Number.ROUTING_ID, "routing_id", shape.TEXT,
     about="Identity told to peers, by which a ROUTER addresses this socket.")
_row(Number.IMMEDIATE, "immediate", shape.FLAG,
     about="1: queue to a peer only while it is connected. 0: from `connect` on.")
_row(Number.CONFLATE, "conflate_asked", shape.FLAG, write=_write_conflate,
     about="1: keep the newest message only. Acts on DEALER, PULL, PUSH, PUB and SUB.")
_row(Number.MAXMSGSIZE, "maxmsgsize", shape.MESSAGE_SIZE,
     about="Largest message taken from a peer; one that sends more is disconnected.")

_setting(_ROUTER, Number.ROUTER_MANDATORY, "router_mandatory", shape.SWITCH, live=True,
         about="1: sending to an unknown peer raises EHOSTUNREACH, to a full one waits.")
_setting(_ROUTER, Number.ROUTER_HANDOVER, "router_handover", shape.SWITCH, live=True,
         about="1: a peer with the identity of another takes its place. 0: it is refused.")
_setting(_PROBING, Number.PROBE_ROUTER, "probe_router", shape.SWITCH, live=True,
         about="1: greet each new peer with an empty message, so that a ROUTER knows us.")
_setting(_ROUTER | _STREAM, Number.CONNECT_ROUTING_ID, "connect_routing_id", shape.NAME,
         about="Identity by which the peer of the next `connect`, and no other, is addressed.")
_setting(_REQ, Number.REQ_RELAXED, "req_relaxed", shape.SWITCH, live=True,
         about="1: a new request may be sent before the reply. Set REQ_CORRELATE as well.")
_setting(_REQ, Number.REQ_CORRELATE, "req_correlate", shape.SWITCH, live=True,
         about="1: number the requests, and drop replies to older ones.")
_setting(_PUBLISHER, Number.XPUB_VERBOSE, "xpub_verbose", shape.SWITCH, live=True,
         write=_write_xpub_verbose, about="1: receive repeated subscriptions too.")
_setting(_PUBLISHER, Number.XPUB_VERBOSER, "xpub_verboser", shape.SWITCH, live=True,
         write=_write_xpub_verboser,
         about="1: receive repeated subscriptions and cancellations too.")
_setting(_PUBLISHER, Number.XPUB_NODROP, "xpub_nodrop", shape.SWITCH, live=True,
         about="1: when a subscriber is full, `send` waits. 0: its copy is dropped.")
_setting(_PUBLISHER, Number.XPUB_MANUAL, "xpub_manual", shape.SWITCH, live=True,
         about="1: subscriptions are received, and take effect when SUBSCRIBE is set.")
_setting(_PUBLISHER, Number.XPUB_MANUAL_LAST_VALUE, "xpub_manual_last_value", shape.SWITCH,
         live=True, write=_write_xpub_manual_last_value,
         about="As XPUB_MANUAL; a message goes only to the peer that subscribed last.")
_setting(_PUBLISHER, Number.XPUB_WELCOME_MSG, "xpub_welcome_msg", shape.WHOLE, live=True,
         about="Sent to each new subscriber; empty: none.")
_setting(_PUBLISHER | {SocketType.XSUB}, Number.ONLY_FIRST_SUBSCRIBE, "only_first_subscribe",
         shape.SWITCH, about="1: only the first frame of a message may be a subscription.")
_row(Number.INVERT_MATCHING, "invert_matching", shape.TRUTH,
     about="1: send what does *not* match. Set it at both ends.")
_setting(_STREAM, Number.STREAM_NOTIFY, "stream_notify", shape.FLAG,
         about="1: an empty message tells of each connect and disconnect.")

_row(Number.RECONNECT_IVL, "reconnect_ivl", shape.NEVER,
     about="Pause before connecting again; chance adds up to as much again.")
_row(Number.RECONNECT_IVL_MAX, "reconnect_ivl_max", shape.OFF,
     about="The pause doubles with each attempt up to this; chance takes away up to half.")
_row(Number.RECONNECT_STOP, "reconnect_stop", shape.ANY,
     about="Bits of `ReconnectStop`: failures after which not to connect again.")
_row(Number.CONNECT_TIMEOUT, "connect_timeout", shape.OFF,
     about="Give up a TCP connect after this and try again. 0: when the system does.")
_row(Number.HANDSHAKE_IVL, "handshake_ivl", shape.OFF,
     about="A peer that has not finished its handshake by then is disconnected.")
_row(Number.HEARTBEAT_IVL, "heartbeat_ivl", shape.OFF,
     about="Pause between the PINGs that are sent to each peer.")
_row(Number.HEARTBEAT_TIMEOUT, "heartbeat_timeout", shape.OWN,
     about="A peer from which nothing comes for so long after a PING is disconnected.")
_row(Number.HEARTBEAT_TTL, "heartbeat_ttl_ds", shape.TENTHS,
     about="Asks the peer to disconnect us when it hears nothing for so long. 0: does not ask.")

_row(Number.IPV6, "ipv6", shape.FLAG,
     about="1: IPv6 and IPv4. 0: IPv4 only.")
_row(Number.IPV4ONLY, "ipv6", shape.INVERSE,
     about="The reverse of IPV6; deprecated.")
_row(Number.BACKLOG, "backlog", shape.COUNT,
     about="Connections that the system keeps waiting to be accepted. Until it is set: 4096.")
_row(Number.SNDBUF, "sndbuf", shape.SIZE,
     about="Octets of the system's send buffer. Until it is set: over ipc 1 MiB.")
_row(Number.RCVBUF, "rcvbuf", shape.SIZE,
     about="Octets of the system's receive buffer.")
_row(Number.TCP_KEEPALIVE, "tcp_keepalive", shape.TERNARY,
     about="Whether the system probes silent connections (SO_KEEPALIVE).")
_row(Number.TCP_KEEPALIVE_IDLE, "tcp_keepalive_idle", shape.SIZE,
     about="Seconds of silence before the first probe (TCP_KEEPIDLE).")
_row(Number.TCP_KEEPALIVE_INTVL, "tcp_keepalive_intvl", shape.SIZE,
     about="Seconds between probes (TCP_KEEPINTVL).")
_row(Number.TCP_KEEPALIVE_CNT, "tcp_keepalive_cnt", shape.SIZE,
     about="Probes without an answer that end the connection (TCP_KEEPCNT).")
_row(Number.TCP_MAXRT, "tcp_maxrt", shape.OFF,
     about="How long sent data may stay unacknowledged (TCP_USER_TIMEOUT).")
_row(Number.TOS, "tos", shape.COUNT,
     about="Type of service of outgoing packets (IP_TOS, IPV6_TCLASS).")
_row(Number.BINDTODEVICE, "bindtodevice", shape.DEVICE,
     about="Network device to use (SO_BINDTODEVICE; asks for a privilege).")
_row(Number.USE_FD, "use_fd", shape.DESCRIPTOR,
     about="A listening descriptor for the next `bind` to use instead of opening one.")
_setting(ALL_TYPES, Number.TCP_ACCEPT_FILTER, None, shape.NETWORK,
         write=_collect("tcp_accept_filters"),
         about="Accept TCP peers of this network; each setting adds one. Deprecated.")
_setting(ALL_TYPES, Number.IPC_FILTER_PID, None, shape.ANY, write=_collect("ipc_filter_pids"),
         about="Accept ipc peers with this process id; each setting adds one. Deprecated.")
_setting(ALL_TYPES, Number.IPC_FILTER_UID, None, shape.ANY, write=_collect("ipc_filter_uids"),
         about="Accept ipc peers of this user id; each setting adds one. Deprecated.")
_setting(ALL_TYPES, Number.IPC_FILTER_GID, None, shape.ANY, write=_collect("ipc_filter_gids"),
         about="Accept ipc peers of this group id; each setting adds one. Deprecated.")
_row(Number.SOCKS_PROXY, "socks_proxy", shape.NAME,
     about="`host:port` of a SOCKS5 proxy for `connect`.")
_row(Number.SOCKS_USERNAME, "socks_username", shape.SHORT,
     about="Name for the proxy; empty: none is sent.")
_row(Number.SOCKS_PASSWORD, "socks_password", shape.SHORT, secret=True,
     about="Password for the proxy.")
_setting(ALL_TYPES, Number.METADATA, None, shape.PROPERTY, write=_write_metadata,
         about="A property told to peers in the handshake; each setting adds one.")

_row(Number.MECHANISM, "mechanism", shape.ENUM, writers=_NONE,
     about="`SecurityMechanism` in force: that of the security option which was set last.")
_row(Number.ZAP_DOMAIN, "zap_domain", shape.TEXT,
     about="Domain in which peers are authenticated; empty: NULL peers are not.")
_row(Number.ZAP_ENFORCE_DOMAIN, "zap_enforce_domain", shape.TRUTH,
     about="1: without an authenticator for the domain nobody is let in.")
_row(Number.PLAIN_SERVER, "plain_server", shape.FLAG, write=_serve(_PLAIN),
     about="1: ask peers for name and password.")
_row(Number.PLAIN_USERNAME, "plain_username", shape.TEXT,
     write=_credential("plain_username", _PLAIN), about="Name to give to a PLAIN server.")
_row(Number.PLAIN_PASSWORD, "plain_password", shape.TEXT, secret=True,
     write=_credential("plain_password", _PLAIN), about="Password to give to a PLAIN server.")
_row(Number.CURVE_SERVER, "curve_server", shape.FLAG, write=_serve(_CURVE),
     about="1: peers must know our public key. Set CURVE_SECRETKEY as well.")
_setting(ALL_TYPES, Number.CURVE_PUBLICKEY, None, shape.KEY,
         write=_credential("curve_publickey", _CURVE, client=False), about="Our public key.")
_setting(ALL_TYPES, Number.CURVE_SECRETKEY, None, shape.KEY, secret=True,
         write=_credential("curve_secretkey", _CURVE, client=False), about="Our secret key.")
_setting(ALL_TYPES, Number.CURVE_SERVERKEY, None, shape.KEY,
         write=_credential("curve_serverkey", _CURVE),
         about="The server's public key. Makes this socket a CURVE client.")

_state(Number.TYPE, "The socket's type.")
_state(Number.RCVMORE, "1: the part received last has another behind it.")
_state(Number.EVENTS, "`PollEvent` bits: what would not wait now.")
_state(Number.FD, "A descriptor that is readable when EVENTS may have changed.")
_state(Number.LAST_ENDPOINT, "Where `bind` or `connect` went last, with the real port.")
_state(Number.TOPICS_COUNT, "Topics that are subscribed to here.",
       readers=_PUBLISHER | _SUB | {SocketType.XSUB})
_row(Number.THREAD_SAFE, "thread_safe", shape.FLAG, writers=_NONE,
     about="Always 0, what libzmq says of these types; our sockets are safe all the same.")

_row(Number.AFFINITY, "affinity", shape.ANY, idle=True,
     about="Which of libzmq's I/O threads serve the socket.")
_setting(_ROUTER, Number.ROUTER_RAW, "router_raw", shape.SWITCH, idle=True,
         about="Raw TCP through a ROUTER: use a STREAM socket.")
_row(Number.LOOPBACK_FASTPATH, "loopback_fastpath", shape.TRUTH, idle=True,
     about="A setting of old versions of Windows.")
_row(Number.RATE, "rate", shape.POSITIVE, idle=True,
     about="Multicast: kilobits a second.")
_row(Number.RECOVERY_IVL, "recovery_ivl", shape.COUNT, idle=True,
     about="Multicast: for how many ms lost data can be had again.")
_row(Number.MULTICAST_HOPS, "multicast_hops", shape.POSITIVE, idle=True,
     about="Multicast: hops that a packet may take.")
_row(Number.MULTICAST_MAXTPDU, "multicast_maxtpdu", shape.POSITIVE, idle=True,
     about="Multicast: octets in a packet.")
_row(Number.MULTICAST_LOOP, "multicast_loop", shape.TRUTH, idle=True,
     about="Multicast: whether this machine hears its own packets.")
# fmt: on

REFUSED: dict[str, tuple[Number, ...]] = {
    "Set SNDHWM and RCVHWM, or the attribute `hwm`, which is both.": (Number.HWM,),
    "An option of the context.": (Number.BLOCKY,),
    "No GSSAPI.": (
        Number.GSSAPI_SERVER,
        Number.GSSAPI_PRINCIPAL,
        Number.GSSAPI_SERVICE_PRINCIPAL,
        Number.GSSAPI_PLAINTEXT,
        Number.GSSAPI_PRINCIPAL_NAMETYPE,
        Number.GSSAPI_SERVICE_PRINCIPAL_NAMETYPE,
    ),
    "No VMCI transport.": (
        Number.VMCI_BUFFER_SIZE,
        Number.VMCI_BUFFER_MIN_SIZE,
        Number.VMCI_BUFFER_MAX_SIZE,
        Number.VMCI_CONNECT_TIMEOUT,
    ),
    "No WebSocket transport.": (
        Number.WSS_KEY_PEM,
        Number.WSS_CERT_PEM,
        Number.WSS_TRUST_PEM,
        Number.WSS_HOSTNAME,
        Number.WSS_TRUST_SYSTEM,
    ),
    "No NORM transport.": (
        Number.NORM_MODE,
        Number.NORM_UNICAST_NACK,
        Number.NORM_BUFFER_SIZE,
        Number.NORM_SEGMENT_SIZE,
        Number.NORM_BLOCK_SIZE,
        Number.NORM_NUM_PARITY,
        Number.NORM_NUM_AUTOPARITY,
        Number.NORM_PUSH,
    ),
    "Draft: a release build of libzmq refuses it too.": (
        Number.ROUTER_NOTIFY,
        Number.IN_BATCH_SIZE,
        Number.OUT_BATCH_SIZE,
        Number.HELLO_MSG,
        Number.DISCONNECT_MSG,
        Number.HICCUP_MSG,
        Number.PRIORITY,
        Number.BUSY_POLL,
        Number.XSUB_VERBOSE_UNSUBSCRIBE,
    ),
}
"""Options that no type has: ``get`` and ``set`` answer EINVAL. By the reason for it."""


def name_of(option: int) -> str:
    """The option's name, or its number where it has none."""
    try:
        return Number(option).name
    except ValueError:
        return str(option)


def why_not_get(option: int, row: Option | None) -> str:
    """Say why an option cannot be read; ``row`` is what the table has of it."""
    if row is None:
        return _why_unknown(option)
    if not row.readers:
        return f"{row.number.name} can be set but not read"
    return f"{row.number.name} can be read from {_types(row.readers)}"


def why_not_set(option: int, row: Option | None, value: Any, socket_type: SocketType) -> str:
    """Say why an option cannot be set to a value; ``row`` is what the table has of it."""
    if row is None:
        return _why_unknown(option)
    if not row.writers:
        return f"{row.number.name} can only be read"
    if socket_type not in row.writers:
        return f"{row.number.name} is for {_types(row.writers)}, not for {socket_type.name}"
    got = "" if row.secret else f", not {_shorten(value)}"
    return f"{row.number.name} takes: {row.shape.words}{got}"


def _why_unknown(option: int) -> str:
    for reason, numbers in REFUSED.items():
        if option in numbers:
            return f"no type has {name_of(option)}: {reason}"
    return f"there is no option {name_of(option)}; SocketOption lists them"


def _types(types: frozenset[SocketType]) -> str:
    return ", ".join(t.name for t in sorted(types))


def _shorten(value: int | bytes) -> str:
    if isinstance(value, bytes) and len(value) > 64:
        return f"{value[:64]!r}... ({len(value)} octets)"
    return repr(value)
