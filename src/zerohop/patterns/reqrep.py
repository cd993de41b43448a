"""REQ and REP: a question, its answer, and the envelope that brings it home (RFC 28).

    REQ sends          [request id]  b""  body ...      request id: REQ_CORRELATE only, 4 octets
    ROUTERs add        id  id  ...  in front, one for each hop
    REP keeps          all up to and including the first empty frame, and sends it before the reply

Both alternate: a REQ that has sent must receive before it sends again (unless REQ_RELAXED), a REP
that has received must send. Whatever comes out of turn is discarded and counted.
"""

# ruff: noqa: D102 - what each method promises stands in Pattern

from __future__ import annotations

from struct import Struct

from zerohop.constants import Errno
from zerohop.errors import UsageError
from zerohop.patterns.pattern import HWM_REACHED, Pattern, PatternOptions, Peer, probe
from zerohop.patterns.routing import FairQueue, LoadBalancer, would_block

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, ClassVar

    from zerohop.patterns.pipe import Message, Part

_PLAIN: list[Part] = [b""]  # the envelope of a REQ that no ROUTER has passed on; nobody changes it
_REQUEST_ID = Struct("=I")  # in native order, as libzmq: nobody but we reads it


class Req(Pattern):
    """Sends a request to the next peer and takes the reply of that peer; of any, if it has left.

    A peer that dies with the request never answers, and libzmq's REQ waits for ever: a notice says
    so, the rest is the application's choice (REQ_RELAXED with REQ_CORRELATE).
    """

    accepts: ClassVar[frozenset[str]] = frozenset({"REP", "ROUTER"})
    takes_turns: ClassVar[bool] = True

    def __init__(self, options: PatternOptions, seed: int = 0) -> None:
        super().__init__(options, seed)
        self._outgoing = LoadBalancer()
        self._incoming = FairQueue()
        self._last_id = seed & 0xFFFFFFFF
        self._expects_reply = False
        self._asked: Peer | None = None
        self._envelope = _PLAIN  # what the reply must begin with

    def attach(self, peer: Peer) -> None:
        self._outgoing.add(peer)
        self._incoming.add(peer)

    def connected(self, peer: Peer) -> None:
        if self.options.probe_router:
            probe(peer)

    def disconnected(self, peer: Peer) -> None:
        # Still queued: the request goes out on the next connection.
        if peer is self._asked and not peer.outbound.messages:
            self._say_lost(peer)

    def detach(self, peer: Peer) -> None:
        self._outgoing.remove(peer)
        self._incoming.remove(peer)
        if peer is self._asked and peer not in self._incoming:
            self._say_lost(peer)

    def deliver(self, peer: Peer, messages: list[Message]) -> None:
        for message in messages:
            if type(message) is not list or message[0] != b"":
                messages = self._replies(peer, messages)
                break
        self._incoming.put(peer, messages)

    def _replies(self, peer: Peer, messages: list[Message]) -> list[Message]:
        """Those of the messages that are replies, up to one that cannot come from a REP."""
        replies: list[Message] = []
        for message in messages:
            if _is_reply(message):
                replies.append(message)
            elif message == b"":
                peer.dropped["probe"] += 1  # a ROUTER with PROBE_ROUTER; libzmq hangs up on it
            else:
                # Nothing sensible can follow. libzmq closes too, but never dials again.
                peer.dropped["malformed reply"] += 1
                self.refuse(
                    peer,
                    "sent something that is no reply: an empty frame must precede the body "
                    "(RFC 28); if the other end is a ROUTER it must send the whole envelope back",
                )
                break
        return replies

    def mend(self, peers: Iterable[Peer]) -> None:
        self._outgoing.mend(peers)
        self._incoming.mend(peers)

    def readable(self, peer: Peer) -> None:
        self._incoming.wake(peer)

    def writable(self, peer: Peer) -> None:
        self._outgoing.resume(peer)

    def send(self, message: Message) -> None:
        if self._expects_reply:
            self._check_turn()
        envelope, request_id = _PLAIN, self._last_id
        if self.options.req_correlate:
            request_id = (request_id + 1) & 0xFFFFFFFF
            envelope = [_REQUEST_ID.pack(request_id), b""]
        request = envelope + message if type(message) is list else [*envelope, message]
        peer = self._incoming.sole
        if peer is not None and (pipe := peer.outbound).asleep and not pipe.full:
            # As LoadBalancer.send and Pipe.push: this call is the larger part of a round trip.
            pipe.messages.append(request)  # type: ignore[arg-type] # message is no list
            if pipe.hwm == 1:
                pipe.mark_full()
            pipe.reader_signals.append(pipe.reader)
            pipe.asleep = False
        else:
            peer = self._outgoing.send(request)  # type: ignore[arg-type] # likewise
        self._asked = peer
        self._last_id = request_id
        self._envelope = envelope
        self._expects_reply = True
        if peer.inbound.messages or peer is not self._incoming.sole:
            self._incoming.discard("late reply")

    def check_send(self, first_part: Part) -> None:
        self._check_turn()
        super().check_send(first_part)

    def receive(self) -> Message:
        if not self._expects_reply:
            raise UsageError(
                Errno.EFSM,
                hint="REQ must send a request before it can receive the reply (RFC 28)",
            )
        incoming = self._incoming
        peer = incoming.sole
        reply: Any
        if peer is None or (inbound := peer.inbound).full:
            reply = incoming.take()
        elif messages := inbound.messages:
            incoming.peer = peer
            reply = messages.popleft()
        else:
            raise would_block()
        body_at = 1
        if (  # unless it is what it should be
            self._envelope is not _PLAIN
            or incoming.peer is not self._asked
            or type(reply) is not list
            or reply[0] != b""
        ):
            while not (body_at := self._body_of(reply)):
                self._discard()
                reply = incoming.take()
        self._expects_reply = False
        self._asked = None
        body: Message = reply[body_at] if len(reply) == body_at + 1 else reply[body_at:]
        return body

    def can_send_now(self) -> bool:
        if self._expects_reply and not self.options.req_relaxed:
            return False
        return self._outgoing.has_room()

    def can_receive_now(self) -> bool:
        incoming = self._incoming
        sole = incoming.sole
        if sole is not None and not sole.inbound.messages:
            return False
        while self._expects_reply and (message := incoming.peek()) is not None:
            if self._body_of(message):
                return True
            incoming.take()
            self._discard()
        return False

    def _check_turn(self) -> None:
        if self._expects_reply and not self.options.req_relaxed:
            raise UsageError(
                Errno.EFSM,
                hint="REQ must receive the reply before it sends again (RFC 28); use DEALER for "
                "several requests at a time, or REQ_RELAXED with REQ_CORRELATE to give one up",
            )

    def _body_of(self, message: Message) -> int:
        """Where the body begins in what ``_incoming`` has given or will give; 0: no reply to us."""
        envelope, incoming = self._envelope, self._incoming
        before = len(envelope)
        if (
            type(message) is list
            and message[:before] == envelope
            and len(message) > before
            and (incoming.peer is self._asked or self._asked not in incoming)
        ):
            return before
        return 0

    def _discard(self) -> None:
        """Count the message that was taken last: it is of no use."""
        peer = self._incoming.peer
        assert peer is not None
        peer.dropped["unexpected reply"] += 1

    def _say_lost(self, peer: Peer) -> None:
        notice = "the peer left without answering the request it had"
        if not self.options.req_relaxed:
            notice += "; set REQ_RELAXED and REQ_CORRELATE to be able to send again"
        self.notice(peer, notice)


def _is_reply(message: Message) -> bool:
    """Whether a message from the network has a form that libzmq's REQ lets through."""
    if type(message) is not list:
        return False
    return message[0] == b"" or (len(message[0]) == 4 and len(message) > 2 and message[1] == b"")


class Rep(Pattern):
    """Receives a request from each peer in turn and sends the reply back the way it came.

    libzmq's REP is a ROUTER inside, so that a second REQ with the same identity gets no answer;
    here peers are known by their connection, and identities do not matter.
    """

    accepts: ClassVar[frozenset[str]] = frozenset({"REQ", "DEALER"})
    takes_turns: ClassVar[bool] = True

    def __init__(self, options: PatternOptions, seed: int = 0) -> None:
        super().__init__(options, seed)
        self._incoming = FairQueue()
        self.deliver = self._incoming.put  # type: ignore[method-assign] # nothing is looked at
        self._peers: set[Peer] = set()
        self._requester: Peer | None = None
        self._envelope: list[Part] = []  # empty: no request is being answered

    def attach(self, peer: Peer) -> None:
        self._peers.add(peer)
        self._incoming.add(peer)

    def detach(self, peer: Peer) -> None:
        self._peers.discard(peer)
        self._incoming.remove(peer)

    def mend(self, peers: Iterable[Peer]) -> None:
        self._peers = set(peers)
        self._incoming.mend(self._peers)

    def readable(self, peer: Peer) -> None:
        self._incoming.wake(peer)

    def send(self, message: Message) -> None:
        peer, envelope = self._requester, self._envelope
        if peer is None:
            raise _nothing_to_answer()
        self._requester, self._envelope = None, []
        if peer not in self._peers:
            peer.dropped["requester gone"] += 1
            self.dropped["requester gone"] += 1
            return
        pipe = peer.outbound
        if pipe.full:
            peer.dropped[HWM_REACHED] += 1
            return
        reply = envelope + message if type(message) is list else [*envelope, message]
        pipe.messages.append(reply)  # type: ignore[arg-type] # message is no list
        # As Pipe.push: a call of ours is what a reply can do without.
        if 0 < pipe.hwm <= len(pipe.messages):
            pipe.mark_full()
        if pipe.asleep:
            pipe.reader_signals.append(pipe.reader)
            pipe.asleep = False

    def check_send(self, first_part: Part) -> None:
        if not self._envelope:
            raise _nothing_to_answer()

    def receive(self) -> Message:
        if self._envelope:
            raise UsageError(
                Errno.EFSM,
                hint="REP must send the reply before it receives the next request (RFC 28); use "
                "ROUTER to answer in another order",
            )
        incoming = self._incoming
        peer = incoming.sole
        request: Any
        if peer is None or (inbound := peer.inbound).full:
            request = incoming.take()
        elif messages := inbound.messages:
            incoming.peer = peer
            request = messages.popleft()
        else:
            raise would_block()
        body_at = 1  # from a REQ, and no ROUTER in between
        if type(request) is not list or request[0] != b"":
            while not (body_at := _body_of(request)):
                self._discard()
                request = incoming.take()
        self._requester = incoming.peer
        self._envelope = _PLAIN if body_at == 1 else request[:body_at]
        body: Message = request[body_at] if len(request) == body_at + 1 else request[body_at:]
        return body

    def can_send_now(self) -> bool:
        return bool(self._envelope)

    def can_receive_now(self) -> bool:
        incoming = self._incoming
        sole = incoming.sole
        if sole is not None and not sole.inbound.messages:
            return False
        while not self._envelope and (message := incoming.peek()) is not None:
            if _body_of(message):
                return True
            incoming.take()
            self._discard()
        return False

    def _discard(self) -> None:
        """Count the message that was taken last: it is no request (libzmq, "malformed")."""
        peer = self._incoming.peer
        assert peer is not None
        peer.dropped["malformed request"] += 1


def _body_of(message: Message) -> int:
    """Where the body of a request begins: after the first empty frame; 0: it has none."""
    if type(message) is not list:
        return 0
    if message[0] == b"":
        return 1
    try:
        return message.index(b"", 0, -1) + 1
    except ValueError:
        return 0


def _nothing_to_answer() -> UsageError:
    return UsageError(
        Errno.EFSM, hint="REP must receive a request before it can send a reply (RFC 28)"
    )
