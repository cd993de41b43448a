"""An API server's half of the channel, without sockets: frames of engines in, what follows out.

    take_control(frames, now)   from the ROUTER         to_say      for engines; may be lost
    take_outputs(frames, now)   from the PULL           aborts      for engines; to be said at last
    handle_deadline(now)        time has passed         woken       streams that have something new
                                                        answered    calls that have ended
                                                        has_joined  an engine became ready
                                                        remarks     for the log

Who drives it calls one of the left, and does what is told on the right. Which streams there are,
who is alive and what that means is decided in :mod:`~zerohop.serving.engine.streams` and
:mod:`~zerohop.serving.engine.roster`. Pure over ``now``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from zerohop.serving.codec import decode_with
from zerohop.serving.engine.buffers import PayloadDecoder
from zerohop.serving.engine.columns import Columns
from zerohop.serving.engine.handshake import Identity, mismatch
from zerohop.serving.engine.messages import (
    Beat,
    FromEngine,
    FromEngineOutputs,
    Goodbye,
    Hello,
    HelloAgain,
    Leaving,
    Outputs,
    Ready,
    Refusal,
    Start,
    first_numbers,
)
from zerohop.serving.engine.roster import Roster
from zerohop.serving.engine.streams import StreamTable
from zerohop.serving.errors import EngineDead, Malformed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from zerohop.serving.engine.liveness import Patience
    from zerohop.serving.engine.messages import Delta, UtilityResult, Welcome
    from zerohop.serving.engine.roster import Departure
    from zerohop.serving.engine.streams import OpenStream
    from zerohop.serving.errors import ProtocolMismatch

__all__ = ["Exchange", "OpenCall"]

_LOOKS = 50  # for last outputs: who still makes some has not ended with its connection
_REFUSALS = 256  # of engines, that are kept: anybody may say hello, under any name


@dataclass(slots=True, eq=False)
class OpenCall:
    """A call of a utility that has not been answered.

    Attributes:
        boot: of the engine.
        name: of the utility.
        waiter: the driver's.
        result: the answer.
        error: why there is none.
    """

    boot: int
    name: str
    waiter: Any
    result: UtilityResult | None = None
    error: EngineDead | None = None

    @property
    def ended(self) -> bool:
        """Nothing more comes."""
        return self.result is not None or self.error is not None


class Exchange:
    """All that one API server has with its engines.

    Args:
        name: by which engines know it.
        boot: its boot token.
        outputs: the endpoint of its PULL.
        patience: when an engine is hung, or gone.
        stream_limit: tokens, or deltas with something else in them, that may wait to be read, of
            one stream.
        end_hung: who is hung is taken for gone.

    Attributes:
        boot: see there.
        roster: the engines.
        streams: the requests.
        calls: of utilities, by number.
        refusals: by engine, why it was not taken.
        malformed: messages that could not be read.
        last_malformed: the last of them.
        to_say: routing ids and messages; the driver empties it, like the lists that follow.
        aborts: numbers of requests, by the routing ids of those who have them.
        woken: streams whose readers may be waiting.
        answered: calls that have ended.
        has_joined: an engine became ready; the driver makes it false.
        remarks: whether it is a warning, and its text.
    """

    def __init__(
        self,
        name: str,
        boot: int,
        outputs: str,
        patience: Patience,
        *,
        stream_limit: int,
        end_hung: bool,
    ) -> None:
        self.boot = boot
        self.roster = Roster(name, boot, outputs, patience)
        self.streams = StreamTable(stream_limit)
        self.calls: dict[int, OpenCall] = {}
        self.refusals: dict[str, ProtocolMismatch] = {}
        self.malformed = 0
        self.last_malformed: Malformed | None = None
        self.to_say: list[tuple[bytes, Any]] = []
        self.aborts: dict[bytes, list[int]] = {}
        self.woken: list[OpenStream] = []
        self.answered: list[OpenCall] = []
        self.has_joined = False
        self.remarks: list[tuple[bool, str]] = []
        self._end_hung = end_hung
        self._control = msgspec.msgpack.Decoder(FromEngine).decode
        self._decoder = PayloadDecoder(FromEngineOutputs)
        self._columns: dict[int, Columns] = {}  # by boot token

    # What engines say of themselves

    def take_control(self, frames: list[bytes], now: float) -> None:
        """Take a message of an engine's pulse."""
        routing_id = frames[0]
        identity = Identity.of(routing_id)
        try:
            message = decode_with(self._control, frames[-1])
        except Malformed as error:
            self._note(error)
            return
        if identity is None:
            self._note(Malformed(routing_id, "it is no routing id of an engine"))
            return
        match message:
            case Hello():
                answer, departure = self.roster.hello(identity, message, now)
                self.depart(departure)
                self._take_in(identity, answer)
                self.to_say.append((routing_id, answer))
            case Beat():
                seen, to_start = self.roster.beat(identity, message, now)
                self.to_say.append((routing_id, seen))
                if to_start is not None:
                    self.to_say.append((to_start.takes, Start(self.boot)))  # if it is there yet

    def _take_in(self, identity: Identity, answer: Welcome | Refusal) -> None:
        was_refused = self.refusals.pop(identity.engine, None) is not None
        if isinstance(answer, Refusal):
            error = mismatch(answer, engine=False)
            if not was_refused and len(self.refusals) < _REFUSALS:
                self.remarks.append((True, f"engine {identity.engine} is refused: {error}"))
            self.refusals[identity.engine] = error
            if len(self.refusals) > _REFUSALS:
                del self.refusals[next(iter(self.refusals))]

    # What engines make

    def take_outputs(self, frames: list[bytes], now: float) -> None:
        """Take outputs of an engine. What of them is kept is given by :meth:`give`."""
        try:
            message = self._decoder.message(frames)
        except Malformed as error:
            self._note(error)
            self._give_up(frames, now)
            return
        match message:
            case Outputs():
                counts, departure = self.roster.outputs(message, now)
                if counts:
                    self._take_step(message, now)
                elif departure is None:
                    self.streams.stale += len(message.tokens) + len(message.deltas)
                self.depart(departure)
            case Ready():
                if self.roster.ready(message, now) is not None:
                    self.has_joined = True
            case Leaving():
                if message.server == self.boot and (who := self.roster.of(message.boot)):
                    departure = self.roster.leave(who.identity, message.reason)
                    self.depart(departure, is_warning=False)

    def give(self, now: float) -> None:
        """Give the streams what was kept, as their readers are about to be woken."""
        for boot, columns in self._columns.items():
            if columns.steps:
                self._give(boot, columns, now)

    def _give_up(self, frames: list[bytes], now: float) -> None:
        """Outputs can't be read: what is lost with them would be silence. Their engine is gone."""
        match first_numbers(frames[0], 5):
            case [21, server, boot, life, seq]:  # Outputs
                outputs = Outputs[Any](server, boot, life, seq, [], [])
            case _:
                return
        counts, departure = self.roster.outputs(outputs, now)
        if counts:
            self._leave_unread(outputs)
        self.depart(departure)

    def _leave_unread(self, outputs: Outputs[Any]) -> None:
        if who := self.roster.of(outputs.boot):
            self.depart(self.roster.leave(who.identity, f"outputs {outputs.seq} can't be read"))

    def _take_step(self, outputs: Outputs[msgspec.Raw], now: float) -> None:
        boot = outputs.boot
        columns = self._columns.get(boot)
        if columns is None:
            columns = self._columns[boot] = Columns()
        try:
            if not columns.have(outputs.numbers):
                self._give(boot, columns, now)
                columns.begin(outputs.numbers)
            columns.add(outputs.tokens)
        except Malformed as error:
            self._note(error)
            self._leave_unread(outputs)
            return
        if not (outputs.deltas or outputs.ended or outputs.results):
            return
        self._give(boot, columns, now, outputs.deltas)
        if outputs.ended:
            self.woken += self.streams.end(boot, outputs.ended)
        for result in outputs.results:
            call = self.calls.get(result.number)
            if call is not None and call.boot == boot and not call.ended:
                call.result = result
                self.answered.append(call)
        self._has_less_work(boot, now)

    def _give(self, boot: int, columns: Columns, now: float, deltas: Sequence[Delta] = ()) -> None:
        """To its streams what an engine has made, and of the last step the deltas."""
        woken, overflown = self.streams.deliver(boot, columns.numbers, columns.take(), deltas)
        if overflown:
            self._abort(overflown, now)
        self.woken += woken

    # How requests and engines end

    def abandon(self, stream: OpenStream, now: float) -> None:
        """Nobody reads a stream any more."""
        if not stream.ended:
            self._abort([stream], now)
            self.streams.abort(stream)
            self._has_less_work(stream.boot, now)

    def broke(self, identity: Identity) -> None:
        """A connection of an engine broke: it gets no requests, and is soon to be lost."""
        if (member := self.roster.of(identity.boot)) is not None:
            member.is_breaking = True

    def lose(self, identity: Identity, seq: int | None, *, has_more: bool) -> int | None:
        """Give an engine up whose connection broke, once its last outputs are here.

        They come on another connection, so more may be on its way.

        Args:
            identity: whose connection broke.
            seq: what the last look returned; ``None``: this is the first.
            has_more: outputs are there that were not taken yet.

        Returns:
            With what to look again, after some time without outputs; ``None``: no more.
        """
        member = self.roster.of(identity.boot)
        if member is None:
            return None
        member.looks += 1
        if (member.next_seq == seq and not has_more) or member.looks > _LOOKS:
            self.depart(self.roster.leave(identity, "its connection broke"))
            return None
        return member.next_seq

    def depart(self, departure: Departure | None, *, is_warning: bool = True) -> None:
        """An engine is gone: so is what it was doing."""
        if departure is None:
            return
        identity, reason = departure.identity, departure.reason
        if (columns := self._columns.pop(identity.boot, None)) is not None:
            self.woken += self.streams.deliver(identity.boot, columns.numbers, columns.take())[0]
        self.remarks.append((is_warning, f"engine {identity.engine} is gone: {reason}"))
        self.woken += self.streams.engine_gone(identity.boot, reason)
        for call in self.calls.values():
            if call.boot == identity.boot and not call.ended:
                call.error = EngineDead(
                    identity.engine, f"{reason}; it was asked for {call.name!r}"
                )
                self.answered.append(call)

    def begin_anew(self, reason: str) -> None:
        """What engines have made is not known any more: it ends, and they are to join again."""
        for member in self.roster.members():
            self.depart(self.roster.leave(member.identity, reason))
            self.to_say.append((member.identity.routing_id(b"p"), HelloAgain()))

    def leave(self) -> None:
        """Say goodbye to all engines: this API server ends. What is open ends with them."""
        for member in self.roster.members():
            self.to_say.append((member.identity.routing_id(b"p"), Goodbye("it was closed")))
            self.depart(self.roster.leave(member.identity, "this API server was closed"))
        self.aborts.clear()
        self.remarks.clear()  # who ends it knows it

    def next_deadline(self) -> float | None:
        """When :meth:`handle_deadline` has something to do; ``None``: never."""
        deadlines = (self.roster.next_deadline(), self.streams.next_deadline())
        return min((each for each in deadlines if each is not None), default=None)

    def handle_deadline(self, now: float) -> None:
        """Take notice of the time: once what has come is taken, or who is late may not be."""
        for departure in self.roster.handle_deadline(now, end_hung=self._end_hung):
            self.depart(departure)
        late = self.streams.handle_deadline(now)
        if late:
            self._abort(late, now)
            self.woken += late

    def _abort(self, streams: Iterable[OpenStream], now: float) -> None:
        """Have engines told, in one message each for all that end at a time."""
        for stream in streams:
            takes = Identity(stream.engine, stream.boot).routing_id(b"r")
            self.aborts.setdefault(takes, []).append(stream.number)
            self._has_less_work(stream.boot, now)

    def _has_less_work(self, boot: int, now: float) -> None:
        if not self.streams.load(boot):
            self.roster.has_work(boot, False, now)

    def _note(self, error: Malformed) -> None:
        self.malformed += 1
        self.last_malformed = error
        if self.malformed & (self.malformed - 1) == 0:  # the first, the second, the fourth ...
            text = f"message {self.malformed} that can't be read: {error}"
            self.remarks.append((True, text))
