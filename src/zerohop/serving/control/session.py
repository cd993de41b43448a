"""A worker's side: it registers, beats, and keeps the server's copy of its table right.

    registering   it has asked, or waits for its turn to ask, to be known
    syncing       the server knows it, and does not have the whole table yet
    right         the server has the table as of the last batch that it acknowledged
    ended         it has left; nothing is sent any more

A worker registers when it starts and when the server says that it does not know it: because
the server has restarted, or took the worker for gone. It scatters over the time that the server
announced, asks one question at a time, and less and less often while nothing comes back, or where
it is refused. Silence alone is no reason to register: what the server has is still right when
it is back, unless it says otherwise.

The table is the session's own: it is what a re-sync sends, whole, in batches, each once the one
before was acknowledged. What changes meanwhile is sent afterwards, the latest value of each key.
"""

from __future__ import annotations

from itertools import islice
from typing import Any, Literal

import msgspec

from zerohop.serving.arguments import seconds, text
from zerohop.serving.codec import decode_with, pack
from zerohop.serving.control.frames import (
    encode_call,
    parse_reply,
    refused_because,
)
from zerohop.serving.control.messages import (
    LONGEST,
    Batch,
    Beat,
    Command,
    Farewell,
    Key,
    Outcome,
    Pulse,
    Receipt,
    Registration,
    Welcome,
)
from zerohop.serving.control.values import encoded, how_many, octets_of, text_of
from zerohop.serving.errors import Malformed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["COMMAND", "SessionState", "WorkerSession"]

SessionState = Literal["registering", "syncing", "right", "ended"]
COMMAND = (pack(None), pack("command"))  # how a pushed command begins

_LATEST = 60.0  # seconds between two questions at most, however long nothing was answered
_decode_welcome = msgspec.msgpack.Decoder(Welcome).decode
_decode_pulse = msgspec.msgpack.Decoder(Pulse).decode
_decode_receipt = msgspec.msgpack.Decoder(Receipt).decode
_decode_command = msgspec.msgpack.Decoder(Command).decode

Question = Literal["register", "beat", "sync"]


class WorkerSession:
    """One worker at one server. Time is an argument: seconds, monotonic.

    Args:
        registration: who it is, and what it offers.
        jitters: numbers between 0 and 1, at random: so scattered are many workers.
        patience: seconds without a reply, after which a question is asked again.

    Attributes:
        state: see the module.
        registration: as given, and the attempt.
        table: what the server is to have; the values as msgpack.
        refused_because: the server's words, while it does not want this worker; else ``None``.
        registrations: how often the server has welcomed it.
        heard_at: when the server last replied.
        malformed: messages of the server that could not be read.

    Raises:
        TypeError: its name is no text, what it offers is no dict, or its patience is no number.
        ValueError: its patience is not above 0.
        Unencodable: its name, or something in what it offers, has no form on the wire.
    """

    def __init__(
        self, registration: Registration, jitters: Iterator[float], patience: float = 2.0
    ) -> None:
        encoded(text("a worker's name", registration.worker))  # a text may have no form, too
        if not isinstance(registration.offers, dict):
            raise TypeError(f"what a worker offers is a dict, not {registration.offers!r:.64}")
        self.registration = msgspec.structs.replace(
            registration, offers=encoded(registration.offers)
        )
        self.state: SessionState = "registering"
        self.table: dict[Key, msgspec.Raw] = {}
        self.refused_because: str | None = None
        self.heard_at: float | None = None
        self.registrations = self.malformed = 0
        self._jitters = jitters
        self._patience = seconds("patience", patience, above_zero=True)
        self._welcome: Welcome | None = None
        self._uids = 0
        self._open: dict[Question, int] = {}  # what waits for a reply
        self._due: dict[Question, float] = {"register": 0.0}  # when it is asked, or asked again
        self._unanswered = 0  # registrations, one after the other
        self._out: list[list[bytes]] = []
        self._unsent: list[tuple[Key, msgspec.Raw]] = []  # of the whole table, the last first
        self._changes: dict[Key, msgspec.Raw | None] = {}  # ``None``: it is removed
        self._batch: Batch | None = None  # not acknowledged yet
        self._next = 0
        self._commands: list[Command] = []
        self._last_command = 0
        self._outcomes: list[Outcome] = []  # not heard yet
        self._said = 0  # the last command whose outcome was sent

    @property
    def is_settled(self) -> bool:
        """Whether the server has acknowledged all that there is."""
        return self.state == "right" and self._batch is None and not self._changes

    def put(self, key: Key, value: Any) -> None:
        """Give a key a value; it is sent at the next :meth:`handle_deadline`.

        Raises:
            TypeError: the key is neither a number nor a text.
            Unencodable: something in it has no form on the wire, or it is too large.
        """
        if type(key) not in (int, str):  # a bool is read as neither
            raise TypeError(f"a key is an int or a str, not {key!r:.64}")
        encoded(key)  # a text may have no form, too
        self.table[key] = value = encoded(value)
        self._change(key, value)

    def remove(self, key: Key) -> None:
        """Take a key out of the table; one that is not there is no fault."""
        if self.table.pop(key, None) is not None:
            self._change(key, None)

    def leave(self) -> None:
        """Say farewell; there is no reply."""
        if self.state == "ended":
            return
        it = self.registration
        if self._welcome is not None:
            self._ask("leave", Farewell(it.worker, it.boot))
        self.state = "ended"
        self._open, self._due = {}, {}
        self._outcomes, self._commands = [], []

    def end(self, command: Command, result: Any = None, error: str | None = None) -> None:
        """Say what became of a command; it goes with a heartbeat, at the next deadline.

        A result that has no form on the wire is an error, for who gave the command to know.
        Each command has to end: the server waits for the outcomes in their order. Never raises.
        """
        if not self._is_mine(command):
            return  # whoever gave it has lost it
        try:
            result = encoded(result)
        except Exception as failure:  # noqa: BLE001 - whatever a result does while it is encoded
            reason = text_of(failure) or type(failure).__name__
            result, error = encoded(None), f"its result has no form on the wire: {reason}"
        error = None if error is None else text_of(error)
        self._outcomes.append(Outcome(command.id, result, error))
        if "beat" in self._due and "beat" not in self._open:
            self._due["beat"] = 0.0

    def commands(self) -> list[Command]:
        """Return the commands to carry out, in order; each once."""
        commands, self._commands = self._commands, []
        return commands

    def data_to_send(self) -> list[list[bytes]]:
        """Return the messages to send. One that cannot be sent may be thrown away."""
        out, self._out = self._out, []
        return out

    def next_deadline(self) -> float | None:
        """When :meth:`handle_deadline` has something to do; in the past: at once."""
        return min(self._due.values(), default=None)

    def handle_deadline(self, now: float) -> None:
        """Ask what is due."""
        for question in [each for each, due in self._due.items() if due <= now]:
            if question == "register":
                self._register(now)
            elif question == "beat":
                self._beat(now)
            else:
                self._sync(now)

    def receive(self, frames: Sequence[bytes], now: float) -> None:
        """Take what the server sent. What cannot be read is counted, and changes nothing."""
        try:
            self._receive(frames, now)
        except Malformed:
            self.malformed += 1

    def _receive(self, frames: Sequence[bytes], now: float) -> None:
        if len(frames) == 3 and (frames[0], frames[1]) == COMMAND:
            self._take_commands([decode_with(_decode_command, frames[2])])
            return
        reply = parse_reply(frames)
        question = next((each for each, uid in self._open.items() if uid == reply.uid), None)
        if question is None:
            return  # it was asked again meanwhile, or is no longer of interest
        self.heard_at = now
        reason = refused_because(reply)
        if reason is not None:
            self._take_refusal(question, reason, now)
            return
        if len(frames) != 3:
            raise Malformed(b"".join(frames), f"the reply to {question!r} has no result")
        data = frames[2]
        if question == "register":
            self._take_welcome(decode_with(_decode_welcome, data), now)
        elif question == "beat":
            self._take_pulse(decode_with(_decode_pulse, data), now)
        else:
            self._take_receipt(decode_with(_decode_receipt, data), now)

    def _take_refusal(self, question: Question, reason: str, now: float) -> None:
        del self._open[question]  # what is not a registration is asked again when it is due
        if question == "register":
            self.refused_because = reason
            self._due["register"] = now + _LATEST * (0.5 + next(self._jitters))

    def _take_welcome(self, welcome: Welcome, now: float) -> None:
        if not (0.0 < welcome.period <= LONGEST and 0.0 <= welcome.spread <= LONGEST):
            reason = f"a period of {welcome.period:g} s and a spread of {welcome.spread:g} s"
            raise Malformed(b"", reason)
        self._welcome, self.refused_because = welcome, None
        del self._open["register"]
        self._due = {"beat": now + welcome.period, "sync": now}
        self._unanswered = 0
        self._commands, self._outcomes, self._last_command, self._said = [], [], 0, 0
        self.registrations += 1
        self.state = "syncing"
        self._unsent = [*reversed(self.table.items())]
        self._changes, self._batch, self._next = {}, None, welcome.next

    def _take_pulse(self, pulse: Pulse, now: float) -> None:
        del self._open["beat"]
        if not pulse.known:
            self._register_anew(now)
            return
        self._outcomes = [each for each in self._outcomes if each.id > pulse.heard]
        self._take_commands(pulse.commands)
        if self._welcome is not None:
            # Those that were sent and are not heard wait their time: a server that never hears
            # them would be told without a pause.
            is_news = self._outcomes and self._outcomes[-1].id > self._said
            self._due["beat"] = now + (0.0 if is_news else self._welcome.period)

    def _take_receipt(self, receipt: Receipt, now: float) -> None:
        del self._open["sync"]
        batch = self._batch
        if not receipt.known or batch is None:
            self._register_anew(now)
        elif receipt.next == batch.number:  # not taken: later
            later = min(max(0.01, receipt.later), _LATEST)  # not a number: the least
            self._due["sync"] = now + later * (0.5 + next(self._jitters))
        elif receipt.next == batch.number + 1:
            self._next, self._batch = receipt.next, None
            if batch.complete:
                self.state = "right"
            del self._due["sync"]
            if self._unsent or self._changes or self.state == "syncing":
                self._due["sync"] = now
        else:  # the server has less than it said, or more than was sent
            self._register_anew(now)

    def _take_commands(self, commands: list[Command]) -> None:
        """Each once, in order; one that came before its predecessor comes again with a pulse."""
        for command in commands:
            if self._is_mine(command) and command.id == self._last_command + 1:
                self._last_command = command.id
                self._commands.append(command)

    def _register_anew(self, now: float) -> None:
        """The server does not know this worker: register, once, at a time of its own."""
        spread = self._welcome.spread if self._welcome is not None else 0.0
        self.state = "registering"
        it = self.registration
        self.registration = msgspec.structs.replace(it, attempt=it.attempt + 1)
        self._open.clear()
        self._due = {"register": now + spread * next(self._jitters)}
        self._batch, self._unsent, self._changes, self._commands = None, [], {}, []

    def _register(self, now: float) -> None:
        delay = min(self._patience * 2**self._unanswered, _LATEST)
        self._unanswered = min(self._unanswered + 1, 10)
        self._due["register"] = now + delay * (0.5 + next(self._jitters))
        self._open["register"] = self._ask("register", self.registration)

    def _beat(self, now: float) -> None:
        assert self._welcome is not None  # or nothing but a registration is due
        it, welcome = self.registration, self._welcome
        count = how_many(octets_of(each.result) for each in self._outcomes)
        outcomes = self._outcomes[:count]
        self._said = max((each.id for each in outcomes), default=self._said)
        beat = Beat(it.worker, it.boot, welcome.server, welcome.stream, outcomes)
        self._open["beat"] = self._ask("beat", beat)
        self._due["beat"] = now + welcome.period

    def _sync(self, now: float) -> None:
        if self._batch is None:
            assert self._welcome is not None
            self._batch = self._next_batch(self._welcome)
        self._open["sync"] = self._ask("sync", self._batch)
        self._due["sync"] = now + self._patience

    def _next_batch(self, welcome: Welcome) -> Batch:
        most = max(welcome.batch, 1)
        put: list[tuple[Key, Any]] = []
        removed: list[Key] = []
        if self.state == "syncing":
            put = self._unsent[-most:][::-1]
            del put[_how_many(put) :]
            del self._unsent[-len(put) :]
        else:
            changes = list(islice(self._changes.items(), most))
            del changes[_how_many(changes) :]
            for key, _ in changes:
                del self._changes[key]
            put = [each for each in changes if each[1] is not None]
            removed = [key for key, value in changes if value is None]
        complete = self.state == "syncing" and not self._unsent
        it = self.registration
        return Batch(
            *(it.worker, it.boot, welcome.server, welcome.stream, self._next),
            *(put, removed, complete),
        )

    def _is_mine(self, command: Command) -> bool:
        if self._welcome is None or self.state not in ("syncing", "right"):
            return False
        return command.stream == self._welcome.stream

    def _change(self, key: Key, value: msgspec.Raw | None) -> None:
        if self.state not in ("syncing", "right"):
            return  # the whole table is to be sent
        self._changes[key] = value
        if self.state == "right":
            self._due.setdefault("sync", 0.0)

    def _ask(self, operation: str, message: Any) -> int:
        self._uids += 1
        self._out.append(encode_call(self._uids, operation, message))
        return self._uids


def _how_many(entries: Sequence[tuple[Key, msgspec.Raw | None]]) -> int:
    return how_many(octets_of(key) + octets_of(value or b"") for key, value in entries)
