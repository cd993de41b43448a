"""What an engine tells of its KV blocks: PUB for who listens, a ROUTER for who missed something.

    engine's thread     publish(events): a number is taken, and both are put into a queue
    sending thread      encoded -> kept in the ring -> sent on PUB -> blocks brought up to date
                                         |                                   |
    answering thread                     +--> replays                        +--> snapshots

``publish`` hands over: sending takes a system call and encoding some microseconds, which a step
loop need not wait for. Measured at 64 blocks a batch, 99 % of the calls: 170 us where it sends
itself, 24 us where it hands over (two busy cores, a batch a millisecond).
"""

from __future__ import annotations

import dataclasses
import logging
import os
import queue
import threading
import time

import zerohop as zmq
from zerohop.serving.arguments import apart, seconds, text, whole
from zerohop.serving.closing import Closing
from zerohop.serving.errors import Unencodable
from zerohop.serving.kv.answering import AnsweringThread
from zerohop.serving.kv.encode import BatchEncoder, EventForm, HashForm
from zerohop.serving.kv.events import AllBlocksCleared, KvEvent
from zerohop.serving.kv.replies import answer_replay, answer_snapshot, seq_octets
from zerohop.serving.kv.ring import ReplayRing
from zerohop.serving.kv.snapshots import Numbered, SnapshotTable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from zerohop.serving.kv.replies import Request

__all__ = ["KvEventPublisher", "binds", "endpoint_of_rank"]

_log = logging.getLogger(__name__)

_TOGETHER = 64  # batches that are encoded before the first of them is sent: some 500 us at most
# The table is brought up to date in slices, and between two of them nothing is done for a while:
# what was sent last may still be on its way out, for which another thread needs the GIL.
_QUIET = 0.0002  # seconds
_SLICE = 8  # batches: 100 us or so at 64 blocks
_END = threading.Event()  # in a queue: nothing comes any more


def binds(endpoint: str) -> bool:
    """Whether a publisher binds this endpoint, where it isn't told; else it connects.

    As vLLM does it, but wildcards in numbers (``0.0.0.0``) and free ports bind, too: connecting to
    one would lose everything, and nobody would be told.
    """
    if not endpoint.startswith("tcp://"):
        return True
    host, _, port = endpoint.removeprefix("tcp://").rpartition(":")
    return "*" in host or "::" in host or host == "0.0.0.0" or port in ("0", "*")  # noqa: S104


def endpoint_of_rank(endpoint: str, dp_rank: int) -> str:
    """Return the endpoint of one data parallel rank, as vLLM's readers expect it.

    The port is moved up by the rank; free ports stay free. Other transports get a suffix.
    """
    if dp_rank == 0:
        return endpoint
    if not endpoint.startswith("tcp://"):
        return f"{endpoint}_dp{dp_rank}"
    host, _, port = endpoint.rpartition(":")
    return endpoint if port in ("0", "*") else f"{host}:{int(port) + dp_rank}"


class KvEventPublisher(Closing):
    """Publishes KV events, from an engine's step loop.

    Args:
        endpoint: of the PUB. The default is a free port of the loopback; see :attr:`endpoint`.
        replay: endpoint to bind the ROUTER to, for replays and snapshots; ``None``: there are none.
        topic: goes before each batch; llm-d wants ``kv@<pod>@<model>``.
        dp_rank: of this engine; ``None`` sends nil.
        bind: whether ``endpoint`` is bound or connected. ``None``: as vLLM does it, so that
            ``ipc``, free ports and wildcards (``tcp://*:5557``) are bound, and an address
            (``tcp://127.0.0.1:5557``) is connected to, which the log then says.
        events: ``"map"``, vLLM's current form, or ``"array"`` for older readers.
        hashes: ``"int"`` or ``"as_is"``.
        buffer: how many batches can be replayed.
        buffer_octets: how many octets of them.
        hwm: batches that may be on their way to one reader; more are dropped for this reader.
        snapshots: whether the present blocks are kept, to be asked for.
        max_queue: batches that may wait to be sent; more are dropped, with their numbers.
        max_replays: how many readers are answered at a time; the others wait for their turn.
        patience: seconds in which a reader of a replay must take something, or it is given up.

    Attributes:
        incarnation: 16 octets that are another in each publisher.
        dropped: batches that have a number and were not sent, as too many were waiting.
        unencodable: batches that have a number and could not be sent: an engine's mistake.

    Raises:
        TypeError, ValueError: an argument of another kind, or a number below 0.
        ZMQError: an endpoint can't be bound or connected.
    """

    def __init__(
        self,
        endpoint: str = "tcp://127.0.0.1:*",
        *,
        replay: str | None = None,
        topic: str = "",
        dp_rank: int | None = 0,
        bind: bool | None = None,
        events: EventForm = "map",
        hashes: HashForm = "int",
        buffer: int = 10_000,
        buffer_octets: int = 256 * 1024 * 1024,
        hwm: int = 100_000,
        max_queue: int = 10_000,
        snapshots: bool = True,
        max_replays: int = 16,
        patience: float = 30.0,
    ) -> None:
        apart("endpoint", endpoint)
        text("topic", topic)
        patience = seconds("patience", patience)
        if replay is not None:
            apart("replay", replay)
        if dp_rank is not None:
            whole("dp_rank", dp_rank)
        for name, limit in (
            *(("buffer", buffer), ("buffer_octets", buffer_octets), ("hwm", hwm)),
            *(("max_queue", max_queue), ("max_replays", max_replays)),
        ):
            whole(name, limit)
        self.incarnation = os.urandom(16)
        self.dropped = self.unencodable = 0
        self._topic, self._dp_rank = topic.encode(), dp_rank
        self._encoder = BatchEncoder(events, hashes)
        self._snapshot_encoder = BatchEncoder(events, hashes)  # of the answering thread
        self._ring = ReplayRing(buffer, buffer_octets)
        self._ring_lock = threading.Lock()  # of the ring and of what follows it
        self._sent_seq = -1
        self._table = SnapshotTable() if snapshots and replay is not None else None
        self._lock = threading.Lock()  # between those who publish
        self._next_seq = 0
        self._max_queue = max_queue
        self._queue: queue.SimpleQueue[Numbered | threading.Event] = queue.SimpleQueue()
        self._is_closed = False
        self._answers: AnsweringThread | None = None
        self._context = zmq.Context()
        try:
            self._pub = self._context.socket(zmq.PUB)
            self._pub.sndhwm = hwm
            self._pub.ipv6 = "[" in endpoint
            self.endpoint = self._take_place(endpoint, bind)
            if replay is not None:
                self._answers = AnsweringThread(
                    replay, self._answer, max_readers=max_replays, patience=patience
                )
        except BaseException:
            self._context.destroy(linger=0)
            raise
        self._sender = threading.Thread(target=self._send, name="zerohop-kv-events", daemon=True)
        self._sender.start()

    def _take_place(self, endpoint: str, bind: bool | None) -> str:
        """Bind the PUB, or connect it; return where it is to be found."""
        if binds(endpoint) if bind is None else bind:
            self._pub.bind(endpoint)
            bound: str = self._pub.last_endpoint.decode()
            return bound
        if bind is None:
            _log.warning(
                "the publisher connects to %s, where a reader has to be bound; "
                "with bind=True it is bound, with bind=False this is not said",
                endpoint,
            )
        self._pub.connect(endpoint)
        return endpoint

    @property
    def replay_endpoint(self) -> str | None:
        """Where replays and snapshots are to be had."""
        return self._answers.endpoint if self._answers else None

    @property
    def next_seq(self) -> int:
        """The number that the next batch will have."""
        return self._next_seq

    @property
    def answers(self) -> AnsweringThread | None:
        """The thread that answers, with its counters; ``None`` without a replay endpoint."""
        return self._answers

    def publish(self, events: Sequence[KvEvent], ts: float | None = None) -> int:
        """Publish what happened in one step, and return the number that it got. Never waits.

        The events and the lists in them must not be changed afterwards. May be called from any
        thread. What can't be sent is counted, and readers see by its number that it is missing.

        Args:
            events: in the order in which they happened.
            ts: when, in seconds since 1970; ``None``: now.

        Raises:
            ZMQError: ENOTSOCK, closed.
        """
        if ts is None:
            ts = time.time()
        with self._lock:
            if self._is_closed or self._pub.closed:  # as all sockets are in a child of fork
                raise zmq.ZMQError(zmq.ENOTSOCK)
            seq = self._next_seq
            self._next_seq = seq + 1
            if self._queue.qsize() < self._max_queue:
                self._queue.put((seq, ts, events))
            else:
                self.dropped += 1
                if self._table is not None:
                    self._table.missed_seq = seq
        return seq

    def clear(self) -> int:
        """Publish, at once, that there are no blocks any more, and return the batch's number."""
        return self.publish([AllBlocksCleared()])

    def flush(self, timeout: float = 1.0) -> bool:
        """Wait until what was published before is sent.

        Args:
            timeout: seconds.

        Returns:
            Whether that was in time.
        """
        timeout = seconds("timeout", timeout)
        done = threading.Event()
        with self._lock:
            if self._is_closed:
                return True
            self._queue.put(done)
        return done.wait(timeout)

    def close(self, timeout: float = 1.0) -> None:
        """Send what waits, and end.

        Args:
            timeout: seconds that this takes, about.
        """
        timeout = seconds("timeout", timeout)
        deadline = time.monotonic() + timeout
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            self._queue.put(_END)
        self._sender.join(timeout)
        self._pub.close(linger=int(max(deadline - time.monotonic(), 0.1) * 1000))
        if self._answers is not None:
            self._answers.close(max(deadline - time.monotonic(), 0.1))
        self._context.term()

    # On the sending thread.

    def _send(self) -> None:
        while True:
            numbered, mark = self._take()
            payloads = self._encode(numbered)
            with self._ring_lock:
                self._ring.extend(payloads)
                if numbered:
                    self._sent_seq = numbered[-1][0]
                if self._table is not None:
                    self._table.pending += numbered
            send, topic = self._pub.send_multipart, self._topic  # never waits: it is a PUB
            try:
                for seq, payload in payloads:
                    send([topic, seq_octets(seq), payload])
            except zmq.ZMQError:
                return  # closed: what waits was given its time
            if mark is _END:
                return
            if mark is not None:
                mark.set()
            if self._table is not None and len(self._table.pending) > self._max_queue:
                self._table.bring_up_if_free(2 * len(numbered))  # more than come

    def _take(self) -> tuple[list[Numbered], threading.Event | None]:
        """Wait for what is to be sent, and take some more of it that is there; up to a mark."""
        taken = self._wait()
        numbered: list[Numbered] = []
        while not isinstance(taken, threading.Event):
            numbered.append(taken)
            if len(numbered) == _TOGETHER or self._queue.empty():
                return numbered, None
            taken = self._queue.get()
        return numbered, taken

    def _wait(self) -> Numbered | threading.Event:
        """Wait for what is to be sent; bring the table up to date as long as there is nothing."""
        table = self._table
        while table is not None and table.pending:
            try:
                return self._queue.get(timeout=_QUIET)
            except queue.Empty:
                if not table.bring_up_if_free(_SLICE):
                    break
        return self._queue.get()

    def _encode(self, numbered: list[Numbered]) -> list[tuple[int, bytes]]:
        payloads = []
        encode, dp_rank = self._encoder.encode_events, self._dp_rank
        for seq, ts, events in numbered:
            try:
                payloads.append((seq, encode(ts, events, dp_rank)))
            except Unencodable:
                self.unencodable += 1
                if self.unencodable & (self.unencodable - 1) == 0:  # the first, second, fourth ...
                    _log.exception(
                        "batch %d of KV events is not sent; %d so far", seq, self.unencodable
                    )
        return payloads

    # On the answering thread.

    def _answer(self, request: Request) -> Iterator[list[bytes]]:
        if request.ask == "snapshot":
            payloads, next_seq = self._snapshot()
            return answer_snapshot(request, payloads, next_seq, self.incarnation, self._topic)
        with self._ring_lock:
            replay = self._ring.replay(request.start)
            replay = dataclasses.replace(replay, next_seq=self._sent_seq + 1)
        return answer_replay(request, replay, self.incarnation, self._topic)

    def _snapshot(self) -> tuple[list[bytes] | None, int]:
        """The present blocks, encoded, and the number of the first batch that is not in them."""
        table = self._table
        if table is None:
            return None, self._sent_seq + 1
        with table.lock:
            with self._ring_lock:
                next_seq, pending = self._sent_seq + 1, len(table.pending)
            table.bring_up(pending)
            batches = table.snapshot(time.time(), self._dp_rank)
        try:
            encoded = None if batches is None else [*map(self._snapshot_encoder.encode, batches)]
        except Unencodable:
            encoded = None
        return encoded, next_seq
