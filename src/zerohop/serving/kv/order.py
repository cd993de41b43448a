"""The numbers of one worker and dp rank: what to apply, what to ask for, when to give up.

The promise: what has been applied is the worker's state at one number of one of its lives, or it
has been declared lost. There are two streams, and neither says which life of the worker it is from:
live batches, and replays. Three proofs tie them together, and to what has been applied:

*Overlap.* A replay is asked for from the last applied batch on. Its first reply must be that batch,
octet for octet (it has the time in it). If it is another, or there is none, the worker has
restarted. Our publisher's head has its incarnation, which proves the same without the batch.

*Joined.* The live stream belongs to what has been applied, if it was applied from it from the
first number on, or if one of its batches was, octet for octet, one that a replay brought. Until
then, and after each new connection, live batches are held, and a replay is asked for, which must
bring them, too.

*In order.* A live number that is not above the last one heard on the same connection is a restart.

While a question is open, live batches are held and not applied. Held are so many at most; what
comes then is let go of, and is a gap of its own later.

    CATCHING_UP --- question answered, nothing missing ---> LIVE, once there is a live stream
      ^   |                                                  | gap, new connection, restart
      |   +--------------------<-----------------------------+
      |   | too old, or no answer, or an undecodable batch
      |   v
      +- LOST: goes on from where there are batches; a snapshot, a clear or a restart makes it whole
"""

from __future__ import annotations

from zerohop.serving.errors import Malformed
from zerohop.serving.kv.checks import Checks
from zerohop.serving.kv.deliveries import (
    Applied,
    Health,
    HealthChanged,
    Lost,
    Restarted,
    Snapshot,
    Undecodable,
)
from zerohop.serving.kv.events import AllBlocksCleared
from zerohop.serving.kv.questions import Held, Item, OrderOptions, Question, Questions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from zerohop.serving.kv.deliveries import Delivery
    from zerohop.serving.kv.questions import Ask
    from zerohop.serving.kv.replies import Head

__all__ = ["Order"]


class Order:
    """One worker and dp rank. See the module's docstring for the theory.

    Each verb returns what the consumer is to be told. After each, the driver looks at :attr:`ask`
    and :meth:`next_deadline`.

    Args:
        worker: its name, for the deliveries.
        ids: where the ids of questions come from; one for all orders of a driver.
        options: see there.

    Attributes:
        worker: as given.
        dp_rank: of the batches; who hands them over sets it when it is known.
        health: what the view is worth.
    """

    def __init__(self, worker: str, ids: Iterator[int], options: OrderOptions) -> None:
        self.worker = worker
        self.dp_rank: int | None = None
        self.health = Health.CATCHING_UP
        self._options = options
        self._out: list[Delivery] = []
        # What was applied. `_last` is the payload of batch `_next - 1`, where that was applied.
        self._next = options.first
        self._last: bytes | None = None
        self._begun = False  # whether anything is known of the worker, be it that it is lost
        self._whole = True
        self._adrift = False  # after a loss: whatever live number comes, is the next
        # The live stream.
        self._connected = False  # ever
        self._joined = False
        self._heard = -1  # its last number on this connection
        self._held = Held(options.max_held, options.max_held_octets)
        self._doubt_at: float | None = None  # late numbers have come that nothing explains yet
        self._checks = Checks(options.check if options.replay else None)
        self._questions = Questions(ids, options)

    @property
    def ask(self) -> Ask | None:
        """The question that should be open now."""
        question = self._questions.open
        return question.ask if question else None

    @property
    def next_seq(self) -> int:
        """The number that is applied next."""
        return self._next

    def start(self, now: float) -> list[Delivery]:
        """The sockets are there: ask for what was before."""
        self._checks.begin(now)
        if self._options.replay and not self._begun and self._questions.open is None:
            self._ask_replay(now)
        return self._deliver()

    def connected(self, now: float) -> list[Delivery]:
        """The live stream has a connection, for the first time or again; what it brings follows.

        The worker may have restarted in between. Without a replay socket, nobody can tell.
        """
        self._connected = True
        self._heard = -1
        self._joined = False
        self._held.clear()
        self._doubt_at = None
        self._questions.renew()
        self._checks.connected(now)
        if self._options.replay:
            self._seek_anew(now)  # an answer from before may lack what was sent since
        elif self._begun:
            self._lose("connected anew, and there is no replay to tell whether it has restarted")
            self._adrift = True
        return self._deliver()

    def live(self, item: Item, now: float) -> list[Delivery]:
        """A batch of the live stream."""
        if item.seq <= self._heard:
            self._restart(f"number {item.seq} came after {self._heard}")
        self._connected = True
        self._heard = item.seq
        self._checks.heard(now)
        if self._adrift:
            self._adrift = False
            self._next, self._last, self._joined = item.seq, None, True
            self._whole = item.seq == self._options.first  # nothing was before the first
        if item.seq < self._next:
            self._take_late(item, now)
        else:
            self._held.add(item)
            if self._questions.open is None:
                self._go_on(now)
        return self._deliver()

    def head(self, ask_id: int, head: Head, now: float) -> list[Delivery]:
        """What our publisher says before its batches."""
        question = self._questions.find(ask_id)
        if question is None:
            return self._deliver()
        question.head, question.deadline = head, now + self._options.silence
        question.routine &= head.next == self._next
        known = self._questions
        known.extended = True
        if known.incarnation not in (b"", head.incarnation) or head.next < self._next:
            self._restart("the publisher has another incarnation")
            known.incarnation = head.incarnation
            self._ask_replay(now)
        elif question.kind == "snapshot":
            if head.too_old:
                question.parts = None
        else:
            if known.incarnation or self._last is None:
                known.incarnation, question.proved = head.incarnation, True
            if head.too_old and known.has_snapshots:
                self._ask_snapshot(now)
            elif head.too_old:
                self._skip_to(head.oldest, "the publisher has neither the batches nor a snapshot")
                question.proved = True
        return self._deliver()

    def replied(self, ask_id: int, item: Item, now: float) -> list[Delivery]:
        """A batch of a replay or a snapshot."""
        question = self._questions.find(ask_id)
        if question is None:
            return self._deliver()
        if question.kind == "snapshot" or item.seq > question.last_seq:
            question.deadline = now + self._options.silence
        question.last_seq = max(question.last_seq, item.seq)
        if question.kind == "snapshot":
            self._take_part(question, item)
        elif question.proved or self._prove(question, item, now):
            self._take(question, item)
        return self._deliver()

    def end(self, ask_id: int, now: float) -> list[Delivery]:
        """The last reply to a question."""
        question = self._questions.find(ask_id)
        if question is None:
            return self._deliver()
        self._questions.open = None
        if question.extended and question.head is None:  # it is of another make
            self._questions.extended = self._questions.has_snapshots = False
            if self._questions.incarnation:
                self._restart("another publisher is there now")
            self._ask_replay(now)
        elif question.kind == "snapshot":
            self._end_snapshot(question, now)
        elif not question.proved:
            self._restart(f"the publisher does not know batch {self._next - 1}")
            self._ask_replay(now)
        else:
            # Of another make, nothing at all may also mean that it keeps nothing.
            self._begun |= question.head is not None or question.last_seq >= 0
            self._count(question)
            self._go_on(now)
        return self._deliver()

    def next_deadline(self) -> float | None:
        """When :meth:`handle_deadline` has something to do, if ever."""
        known = self._questions
        asked = known.open.deadline if known.open else None
        times = (asked, known.quiet_until, self._doubt_at, self._checks.due)
        return min((each for each in times if each is not None), default=None)

    def handle_deadline(self, now: float) -> list[Delivery]:
        """Give up what was not answered; ask again what was put off."""
        known = self._questions
        question = known.open
        if question is not None and now >= question.deadline:
            known.open = None
            self._give_up(question, now)
        if known.quiet_until is not None and now >= known.quiet_until:
            known.quiet_until, known.fruitless = None, 0
            if known.open is None and not self._whole:
                known.has_snapshots = known.extended is not False
                self._seek_anew(now)
        doubt = self._doubt_at is not None and now >= self._doubt_at
        if doubt:
            self._doubt_at = None
        check = self._checks.take(now)
        if (doubt or (check and not self._adrift)) and known.open is None and known.may_ask():
            self._ask_replay(now, routine=not doubt)
        return self._deliver()

    # What was applied.

    def _deliver(self) -> list[Delivery]:
        question = self._questions.open
        is_asking = question is not None and not question.routine
        if not self._whole:
            health = Health.LOST
        elif is_asking or not (self._begun and self._connected) or self._is_missing():
            health = Health.CATCHING_UP  # and where a replay alone answers: nothing new is heard
        else:
            health = Health.LIVE
        if health is not self.health:
            self.health = health
            self._out.append(HealthChanged(self.worker, self.dp_rank, health))
        out, self._out = self._out, []
        return out

    def _apply(self, item: Item) -> None:
        self._next, self._last = item.seq + 1, item.payload
        self._begun = True
        self._questions.fruitless = 0
        batch = item.batch
        if isinstance(batch, Malformed):
            self._out.append(Undecodable(self.worker, self.dp_rank, item.seq, batch))
            self._lose(f"batch {item.seq} can't be decoded")
            return
        if not self._whole:
            self._whole = any(isinstance(event, AllBlocksCleared) for event in batch.events)
        self._out.append(Applied(self.worker, self.dp_rank, item.seq, batch))

    def _restart(self, reason: str) -> None:
        self._out.append(Restarted(self.worker, self.dp_rank, reason))
        self._next, self._last = self._options.first, None
        self._begun, self._whole, self._adrift = False, True, False
        self._joined, self._heard, self._doubt_at = False, -1, None
        self._held.clear()
        self._questions.forget()

    def _lose(self, reason: str) -> None:
        self._out.append(Lost(self.worker, self.dp_rank, reason))
        self._begun, self._whole = True, False

    def _skip_to(self, seq: int, reason: str) -> None:
        self._lose(reason)
        self._next, self._last = seq, None
        self._held.drop_below(seq)

    # The live stream.

    def _is_missing(self) -> bool:
        return len(self._held) > 0 or self._heard >= self._next

    def _go_on(self, now: float) -> None:
        """Apply what is held and next; ask for what is missing, or go on without it."""
        self._drain()
        while self._is_missing():
            if self._questions.may_ask():
                self._ask_replay(now)
                return
            seq = self._held.lowest() if len(self._held) else self._heard + 1
            self._skip_to(seq, f"batches {self._next} to {seq - 1} are missing, and not to be had")
            self._joined = True
            self._drain()
        if not self._whole and self._questions.has_snapshots and self._questions.may_ask():
            self._ask_snapshot(now)

    def _drain(self) -> None:
        item = self._held.get(self._next)
        if item is None:
            return
        if self._next == self._options.first and item.live:
            self._joined = True  # nothing was before the first
        while self._joined and (item := self._held.take(self._next)) is not None:
            self._apply(item)

    def _take_late(self, item: Item, now: float) -> None:
        """A live batch that a replay or a snapshot has brought before; or one of a new life."""
        if self._joined:
            return
        if item.seq == self._next - 1 and self._last is not None:
            if item.payload == self._last:
                self._joined, self._doubt_at = True, None
            else:
                self._restart(f"batch {item.seq} is another now")
                self._heard = item.seq
                self._held.add(item)
                self._go_on(now)
        elif self._questions.open is None and self._doubt_at is None:
            self._doubt_at = now + self._options.silence

    # The publisher.

    def _seek_anew(self, now: float) -> None:
        if self._adrift:  # nothing is known, so there is nothing to lose: from the beginning
            self._next, self._last = self._options.first, None
            self._begun, self._whole, self._adrift = False, True, False
        self._ask_replay(now)

    def _ask_replay(self, now: float, *, routine: bool = False) -> None:
        self._questions.ask_replay(self._next, self._last, self._joined, now, routine)

    def _ask_snapshot(self, now: float) -> None:
        self._questions.ask_snapshot(self._next, self._joined, now)

    def _prove(self, question: Question, item: Item, now: float) -> bool:
        """Look at the first replies; return whether this one is to be taken."""
        before = self._next - 1
        if item.seq < before:
            return False  # some give more than they were asked for
        if item.seq > before:
            self._skip_to(item.seq, f"the publisher no longer has batch {before}")
        elif item.payload != self._last:
            self._restart(f"batch {before} is another now")
            self._ask_replay(now)
            return False
        question.proved = True
        if question.head is not None:
            self._questions.incarnation = question.head.incarnation
        return True

    def _take(self, question: Question, item: Item) -> None:
        held = self._held.get(item.seq)
        if held is not None and held.live and held.payload != item.payload:
            self._held.take(item.seq)  # what is left of the live stream of an earlier life
        elif held is not None and held.live and not self._joined:
            self._joined = True
            self._held.drop_below(item.seq)  # those may still be of an earlier life
        if item.seq < self._next:
            return
        nothing_below = not question.fits and self._last is None and question.head is None
        if item.seq > self._next and nothing_below:
            self._skip_to(item.seq, f"the publisher no longer has batch {self._next}")
        question.fits = True
        if item.seq > self._next:
            self._held.add(item)
            return
        self._held.take(item.seq)
        self._apply(item)
        self._drain()

    def _take_part(self, question: Question, item: Item) -> None:
        if isinstance(item.batch, Malformed):
            self._out.append(Undecodable(self.worker, self.dp_rank, None, item.batch))
        question.take_part(item, self._options.max_held_octets)

    def _end_snapshot(self, question: Question, now: float) -> None:
        head, parts = question.head, question.parts
        if head is None or parts is None:
            self._questions.has_snapshots = False
            if self._begun and not self._is_missing():
                self._go_on(now)
            else:
                self._ask_replay(now)
            return
        self._out.append(Snapshot(self.worker, self.dp_rank, head.next, tuple(parts)))
        self._next, self._last = head.next, None
        self._begun, self._whole, self._adrift, self._joined = True, True, False, False
        self._questions.incarnation, self._questions.fruitless = head.incarnation, 0
        self._held.drop_below(head.next)
        self._go_on(now)

    def _count(self, question: Question) -> None:
        """Count a question that brought nothing, though something is missing."""
        helped = self._next > question.next_seq or self._joined > question.joined
        self._questions.fruitless = (
            0 if helped or not self._is_missing() else self._questions.fruitless + 1
        )

    def _give_up(self, question: Question, now: float) -> None:
        if question.kind == "replay":
            helped = self._next > question.next_seq
            self._questions.fruitless = 0 if helped else self._questions.fruitless + 1
            if self._questions.fruitless < self._options.attempts:
                self._ask_replay(now)
                return
        self._questions.quiet_until = now + self._options.pause
        if not self._joined and not self._is_missing():  # nobody says whether it is still the same
            self._lose(f"the publisher does not answer when asked for {question.ask.what}")
            self._adrift = True
        else:
            self._go_on(now)
