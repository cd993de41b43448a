"""One ZMTP connection without I/O: greeting, handshake, traffic, closed.

    greeting ──► handshake ──► traffic ──► closed
        │ not ZMTP 3  │ does not fit  │ broken frame, silence, ERROR, refuse()   ▲
        └─────────────┴───────────────┴──────────────────────────────────────────┘

Only :meth:`Connection.receive_data`, :meth:`~Connection.handle_deadline` and
:meth:`~Connection.refuse` move it, and never back. Once closed it takes nothing more from the peer;
what is still to be sent (an ERROR) can be taken once.

The handshake has its own decoder with a small limit, fed so that it never holds an octet of what
follows: a peer sends messages right behind its READY, and they belong to the traffic.

Source: RFC 37 (3.1) and RFC 23 (3.0). Both ends of a 3.0 connection behave as in 3.1 but for one
thing: subscriptions are messages there (``01 topic`` or ``00 topic``) and commands here. Messages
are not looked into, so those of a 3.0 peer come out as messages.
"""

from __future__ import annotations

from collections import deque
from functools import lru_cache
from math import inf

from zerohop.constants import Errno
from zerohop.constants import Event as MonitorEvent
from zerohop.errors import HandshakeError, ProtocolError
from zerohop.value import NOTHING
from zerohop.wire.commands import (
    decode_error,
    decode_ping,
    encode_error,
    encode_ping,
    encode_pong,
    encode_subscription,
    split_command,
)
from zerohop.wire.decoder import FrameDecoder
from zerohop.wire.events import ErrorReceived, Handshaken, SubscriptionReceived
from zerohop.wire.frames import COMMAND, Command, encode, encoded_size
from zerohop.wire.greeting import (
    GREETING_SIZE,
    GreetingDecoder,
    decode_greeting,
    encode_greeting,
)
from zerohop.wire.heartbeat import Heartbeat, HeartbeatOptions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Literal, TypeAlias

    from zerohop.wire.events import Event
    from zerohop.wire.frames import Buffer, Message
    from zerohop.wire.greeting import Greeting
    from zerohop.wire.mechanism import Mechanism
    from zerohop.wire.wrapping import Wrapping

    Phase: TypeAlias = Literal["greeting", "handshake", "traffic", "closed"]

HANDSHAKE_SIZE = 65_536
"""Octets in one handshake command: what a stranger can make us hold. libzmq's has some 50."""

MAX_PONGS = 16
"""PONGs that wait to be taken: a peer that sends PINGs and reads nothing gets the last ones."""

MAX_IDENTITY = 255
"""Octets of the Identity property (ZMQ_ROUTING_ID)."""

_NO_HEARTBEAT = HeartbeatOptions()
_SUBSCRIBE = encode_subscription(b"", subscribe=True)  # the topic follows
_CANCEL = encode_subscription(b"", subscribe=False)
_TOLD: Mapping[str, bytes] = {}


class Connection:
    """The wire side of one peer.

    Args:
        mechanism: ours, fresh; it says our ``properties`` to the peer.
        properties: our metadata, for what errors say.
        now: seconds, monotonic.
        heartbeat: ours; None sends no PING. The peer's PINGs are answered in any case.
        max_message_size: octets in one message, all frames together (ZMQ_MAXMSGSIZE), or None.
        handshake_timeout: seconds from ``now`` until the handshake must be complete
            (ZMQ_HANDSHAKE_IVL), or None.

    Attributes:
        phase: where it stands; see the module.
        peer_minor: the ZMTP 3 minor version of the peer (0 or 1), None before its greeting.
        has_events: look closely at what the last :meth:`receive_data` returned, or left in
            ``completed``: an Event is among it, or :meth:`next_deadline` has become earlier.
        completed: after :meth:`receive_data` raised: what was whole before the offence, in order.
            These messages were received and have to be handed on.
        has_output: :meth:`data_to_send` would give something now.
        encode: makes of whole messages their wire form, as :func:`zerohop.wire.frames.encode` does
            (and is, unless the mechanism wraps frames); only after :class:`Handshaken`. The buffers
            are to be written in the order of the calls.
    """

    __slots__ = (
        "_decoder", "_greeting", "_handshake_decoder", "_handshake_ends", "_heartbeat",
        "_heartbeat_options", "_last_heard", "_max_message_size", "_mechanism", "_ping_due",
        "_pongs", "_properties", "_raw", "_subscriptions", "_wrapping", "completed", "encode",
        "has_events", "has_output", "peer_minor", "phase",
    )  # fmt: skip

    _decoder: FrameDecoder  # of the traffic

    def __init__(
        self,
        mechanism: Mechanism,
        properties: Mapping[str, bytes],
        now: float,
        heartbeat: HeartbeatOptions | None = None,
        max_message_size: int | None = None,
        handshake_timeout: float | None = None,
    ) -> None:
        self.phase: Phase = "greeting"
        self.peer_minor: int | None = None
        self.has_events = False
        self.has_output = True
        self.encode: Callable[[Iterable[Message]], list[Buffer]] = encode
        self.completed: list[Message | Event] = NOTHING
        self._mechanism = mechanism
        self._properties = properties
        self._max_message_size = max_message_size
        # What most connections never need is made when it is needed: there may be thousands.
        self._greeting: GreetingDecoder | None = None
        self._handshake_decoder: FrameDecoder | None = None
        self._wrapping: Wrapping | None = None
        self._handshake_ends = inf if handshake_timeout is None else now + handshake_timeout
        self._heartbeat_options = heartbeat or _NO_HEARTBEAT
        self._heartbeat: Heartbeat | None = None
        self._last_heard = now
        self._ping_due = False
        self._pongs: deque[bytes] | None = None  # contexts
        self._subscriptions: list[tuple[bytes, bool]] = NOTHING
        self._raw = _opening(mechanism.name, mechanism.as_server, mechanism.eager)

    def start(self) -> list[Event]:
        """Return what is known before any octet: nothing. ``RawConnection`` has something here."""
        return []

    def receive_data(self, data: bytes, now: float) -> list[Message | Event]:
        """Take octets from the peer; return what they completed, in order.

        Returns:
            Messages as :class:`~zerohop.wire.decoder.FrameDecoder` gives them. If ``has_events``
            is set, there are events among them. Empty once closed.

        Raises:
            HandshakeError: the two ends do not fit: version, mechanism.
            ProtocolError: the peer broke the protocol. In both cases the connection is closed,
                ``completed`` has what came before, and :meth:`data_to_send` may hold an ERROR.
        """
        self._last_heard = now
        self.has_events = False
        try:
            if self.phase != "traffic":
                self.completed = []
                data = self._shake_hands(data, now)
                if not data:
                    items, self.completed = self.completed, NOTHING
                    return items
            decoder = self._decoder
            try:
                messages = decoder.receive_data(data)
            except ProtocolError:
                self._sort(decoder.completed)
                if self.phase == "traffic":
                    raise
            else:
                if not (decoder.saw_command or self._wrapping or self.completed):
                    return messages  # type: ignore[return-value] # a list of fewer kinds
                self._sort(messages)
        except ProtocolError:
            self._end()
            raise
        items, self.completed = self.completed, NOTHING
        return items

    def buffer(self) -> memoryview | None:
        """Return where the next octets belong, if they are those of a large frame.

        As :meth:`~zerohop.wire.decoder.FrameDecoder.buffer`: who has put octets there calls
        :meth:`filled`, then :meth:`receive_data` with what came after them, or with nothing.
        """
        return self._decoder.buffer() if self.phase == "traffic" else None

    def filled(self, count: int, now: float) -> None:
        """Say that ``count`` octets were put into :meth:`buffer`, from its beginning on.

        :meth:`receive_data` need not be called before the buffer is full.
        """
        self._last_heard = now
        self._decoder.filled(count)

    def data_to_send(self) -> bytes:
        """Take what the connection itself has to say: greeting, handshake, subscriptions, PINGs.

        It goes out before what :meth:`encode` gives after it. Take it only when all that was taken
        before is written: what waits here is bounded whatever the peer does, what was taken is not.
        """
        if not self.has_output:
            return b""
        self.has_output = False
        if self.phase == "traffic":
            commands = [self._subscription(*wanted) for wanted in self._subscriptions]
            self._subscriptions = NOTHING
            commands += [Command(encode_pong(context)) for context in self._pongs or ()]
            self._pongs = None
            if self._ping_due:
                commands.append(Command(encode_ping(self._heartbeat_options.ttl_on_the_wire)))
                self._ping_due = False
            if commands:
                self._raw = b"".join([self._raw, *self.encode(commands)])
        raw, self._raw = self._raw, b""
        return raw

    @property
    def plain(self) -> bool:
        """Whether :attr:`encode` gives the same octets as on every other such connection."""
        return self._wrapping is None

    def encoded_size(self, message: Message) -> int:
        """Return how many octets of what :meth:`encode` gives are this message's."""
        return encoded_size(message, self._mechanism.overhead)

    def send_subscription(self, topic: bytes, *, subscribe: bool) -> None:
        """Tell the peer that messages starting with ``topic`` are (or are no longer) wanted.

        Kept until the handshake is complete, if it is not: what form it takes is the peer's say.
        """
        if not self._subscriptions:
            self._subscriptions = []
        self._subscriptions.append((topic, subscribe))
        self.has_output = self.has_output or self.phase == "traffic"

    def refuse(self, reason: str) -> None:
        """Queue an ERROR command and take nothing more from the peer; the caller closes.

        Args:
            reason: for the peer's eyes; cut to 255 octets.
        """
        if self.phase == "closed":
            return
        error: list[Message] = [Command(encode_error(reason))]
        self._raw = b"".join([self._raw, *self.encode(error)])
        self._end()

    def lost(self) -> None:
        """Let go of what came in part, which may be large: the network connection is gone.

        Whoever still knows this object (a timer, for a while) holds nothing of the peer's by it.
        """
        self._raw = b""
        self._end()
        self._handshake_decoder = self._wrapping = None
        self._decoder = FrameDecoder()

    def written(self, now: float) -> None:
        """Say that the network took octets while more wait.

        While a PING waits behind a large body, the peer cannot answer it; that it takes the body
        is life enough. Once the PING is out this says nothing, and changes nothing.
        """
        if self._ping_due:
            self._last_heard = now

    def not_reading(self, now: float) -> None:
        """Say that up to ``now`` nobody has read: the silence was ours, not the peer's."""
        self._last_heard = now

    def next_deadline(self) -> float | None:
        """Return when :meth:`handle_deadline` wants to be called, or None.

        It becomes earlier only where ``has_events`` says to look, and later with every octet of the
        peer: a timer set for an old answer may stay, :meth:`handle_deadline` does not mind being
        called too early.
        """
        if self.phase == "traffic":
            if self._heartbeat is None:
                return None
            when = self._heartbeat.next_deadline(self._last_heard)
        else:
            when = inf if self.phase == "closed" else self._handshake_ends
        return None if when == inf else when

    def handle_deadline(self, now: float) -> None:
        """Queue a PING if one is due; give the peer up if it took or was silent for too long.

        Raises:
            HandshakeError: the handshake is not complete in time; errno ETIMEDOUT.
            ProtocolError: no sign of life; errno ETIMEDOUT. In both cases it is closed.
        """
        if self.phase == "traffic":
            if self._heartbeat is None:
                return
            try:
                self._heartbeat.check(self._last_heard, now)
            except ProtocolError:
                self._end()
                raise
            if self._heartbeat.is_ping_due(self._last_heard, now):
                self._ping_due = self.has_output = True
        elif self.phase != "closed" and now >= self._handshake_ends:
            phase = self.phase
            self._end()
            error = HandshakeError(
                f"peer did not complete its {phase} in time",
                source="RFC 37, Overall Behavior",
                hint="HANDSHAKE_IVL says how long it may take",
            )
            error.errno = Errno.ETIMEDOUT
            raise error

    # The handshake

    def _shake_hands(self, data: bytes, now: float) -> bytes:
        """Take octets of greeting and handshake; return what comes after them, if they are done."""
        if self.phase == "greeting":
            data = self._receive_greeting(data)
        while data and self.phase == "handshake":
            data = self._receive_command(data, now)
        return data if self.phase == "traffic" else b""

    def _receive_greeting(self, data: bytes) -> bytes:
        """Take octets of the greeting; return those that come after it."""
        if self._greeting is None:
            if len(data) >= GREETING_SIZE:
                self._greeting_received(decode_greeting(data[:GREETING_SIZE]))
                return data[GREETING_SIZE:]
            self._greeting = GreetingDecoder()
        rest = self._greeting.receive_data(data)
        if self._greeting.greeting is not None:
            self._greeting_received(self._greeting.greeting)
        return rest

    def _receive_command(self, data: bytes, now: float) -> bytes:
        """Take octets of a handshake command; return those that come after it."""
        decoder = self._handshake_decoder
        if decoder is None:
            if len(data) > 1 and data[0] == COMMAND and len(data) >= (stop := 2 + data[1]):
                self._command_of_handshake(data[2:stop], now)  # short, and whole: most are
                return data[stop:]
            decoder = self._handshake_decoder = FrameDecoder(HANDSHAKE_SIZE)
        position = 0
        while position < len(data) and self.phase == "handshake":
            # An octet of the header at a time, then just the body.
            stop = position + (decoder.wanted() or 1)
            for item in decoder.receive_data(data[position:stop]):
                if not isinstance(item, Command):
                    raise ProtocolError(
                        "peer sent a message before the handshake was complete",
                        source="RFC 37, Overall Behavior",
                        code=MonitorEvent.PROTOCOL_ERROR_ZMTP_INVALID_SEQUENCE,
                    )
                self._command_of_handshake(item, now)
            position = stop
        return data[position:]

    def _greeting_received(self, greeting: Greeting) -> None:
        self.peer_minor = greeting.minor
        mechanism = self._mechanism
        if greeting.mechanism != mechanism.name:
            ours = self._properties.get("Socket-Type", b"").decode("ascii")
            raise HandshakeError(
                f"peer offers {greeting.mechanism}, this {ours} socket has {mechanism.name}",
                source="RFC 37, Authentication and Confidentiality",
                code=MonitorEvent.PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH,
                hint="set the security options of one like those of the other",
            )
        self.phase = "handshake"
        mechanism.start()
        if mechanism.outgoing:
            self._send_mechanism_commands()

    def _command_of_handshake(self, body: bytes, now: float) -> None:
        name, content = split_command(body)
        if name == b"ERROR":
            self._error_received(content)
            return
        mechanism = self._mechanism
        try:
            mechanism.receive_command(name, content)
        finally:
            if mechanism.outgoing:
                self._send_mechanism_commands()
        if mechanism.complete:
            self._complete(now)

    def _complete(self, now: float) -> None:
        properties = dict(self._mechanism.peer_properties)
        self._mechanism.peer_properties = _TOLD  # once: of a thousand peers they would be much
        identity = properties.get("identity", b"")
        if len(identity) > MAX_IDENTITY:
            raise ProtocolError(
                f"peer's Identity has {len(identity)} octets, over {MAX_IDENTITY}",
                source="RFC 37, The Identity Property",
                code=MonitorEvent.PROTOCOL_ERROR_ZMTP_INVALID_METADATA,
            )
        assert self.peer_minor is not None
        self.phase = "traffic"
        self.has_output = self.has_output or bool(self._subscriptions)
        self._decoder = FrameDecoder(self._max_message_size)
        if not self._mechanism.plain:
            from zerohop.wire.wrapping import Wrapping  # NULL has no use for it

            self._wrapping = Wrapping(self._mechanism, self._max_message_size)
            self._decoder = FrameDecoder(self._wrapping.outer_limit())
            self.encode = self._wrapping.encode
        if self._heartbeat_options.interval:
            self._heartbeat = Heartbeat(self._heartbeat_options, now)
        self._emit(Handshaken(properties, self.peer_minor, self._mechanism.name))

    def _send_mechanism_commands(self) -> None:
        outgoing = self._mechanism.outgoing
        self._raw = b"".join([self._raw, *encode(map(Command, outgoing))])
        self.has_output = True
        outgoing.clear()

    def _end(self) -> None:
        """Take nothing more from the peer, and say nothing more to it but an ERROR."""
        self.phase = "closed"
        self.has_output = bool(self._raw)

    # Traffic

    def _sort(self, messages: list[Message]) -> None:
        """Put messages into ``completed``, and what commands mean, up to an ERROR."""
        if not self.completed:
            self.completed = []
        append = self.completed.append
        for message in messages:
            item = message if self._wrapping is None else self._wrapping.unwrap(message)
            if isinstance(item, Command):
                self._command_received(item)
                if self.phase == "closed":
                    return
            elif item is not None:
                append(item)

    def _command_received(self, body: Command) -> None:
        if not body:
            return  # libzmq ignores it, too
        if body.startswith(_SUBSCRIBE):  # of which there may be many
            self.completed.append(SubscriptionReceived(body[len(_SUBSCRIBE) :], True))
            self.has_events = True
            return
        name, content = split_command(body)
        if name == b"PING":
            ttl_ds, context = decode_ping(content)
            if ttl_ds or self._heartbeat is not None:
                self._watch_peer(ttl_ds)
            if self._pongs is None:
                self._pongs = deque(maxlen=MAX_PONGS)
            self._pongs.append(context)
            self.has_output = True
        elif name == b"CANCEL":
            self._emit(SubscriptionReceived(content, False))
        elif name == b"ERROR":
            self._error_received(content)
        # PONG is life, and that was noted with its octets. A second READY changes nothing that was
        # agreed, and what is unknown is ignored: libzmq does the same with both.

    def _watch_peer(self, ttl_ds: int) -> None:
        """A PING says after how long a silence the peer is to be given up; 0: it does not."""
        if self._heartbeat is None:
            self._heartbeat = Heartbeat(self._heartbeat_options, self._last_heard)
        self._heartbeat.ping_received(ttl_ds)
        self.has_events = self.has_events or ttl_ds > 0

    def _error_received(self, content: bytes) -> None:
        self._emit(ErrorReceived(decode_error(content)))
        self._end()

    def _emit(self, event: Event) -> None:
        self.completed.append(event)
        self.has_events = True

    def _subscription(self, topic: bytes, subscribe: bool) -> Message:
        if self.peer_minor == 0:
            return bytes((subscribe,)) + topic
        return Command((_SUBSCRIBE if subscribe else _CANCEL) + topic)


@lru_cache(maxsize=64)
def _opening(mechanism: str, as_server: bool, eager: bytes) -> bytes:
    """What is sent before anything has come: the same for all connections of a kind of socket."""
    greeting = encode_greeting(mechanism, as_server=as_server)
    return b"".join([greeting, *encode([Command(eager)])]) if eager else greeting
