"""One worker's KV events: frames in, deliveries out. What a subscriber drives.

Sequence numbers belong to a worker *and* a dp rank: ranks that share a socket each count from 0. So
there is an order for each rank that is heard of (``order.py``); the first begins before anything is
heard, and takes the rank of the first batch.
"""

from __future__ import annotations

from itertools import count

from zerohop.serving.errors import Malformed
from zerohop.serving.kv.decode import BatchDecoder
from zerohop.serving.kv.deliveries import Undecodable
from zerohop.serving.kv.order import Order
from zerohop.serving.kv.questions import Ask, Item, OrderOptions
from zerohop.serving.kv.replies import parse_live, parse_reply

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from zerohop.serving.kv.deliveries import Delivery, Health
    from zerohop.serving.kv.events import EventBatch

__all__ = ["KvFollower"]

_MAX_RANKS = 1024  # of one worker: a rank is a number that a peer sends


class KvFollower:
    """Follows one worker. Time is an argument: seconds, monotonic.

    After each call the driver makes its DEALERs those of :attr:`asks`, one for each question, and
    arms :meth:`next_deadline`.

    Args:
        worker: its name, for the deliveries.
        options: whether there is a replay socket, and how patient to be.

    Attributes:
        decoder: counts unknown types of events, and batches that could not be decoded.
        foreign: replies of another rank than that which asked.
    """

    def __init__(self, worker: str, options: OrderOptions | None = None) -> None:
        self.worker = worker
        self.decoder = BatchDecoder()
        self.foreign = 0
        self._options = options or OrderOptions()
        self._ids = count()
        self._orders = [Order(worker, self._ids, self._options)]

    @property
    def asks(self) -> list[Ask]:
        """The questions that should be open now; at most one a rank."""
        return [order.ask for order in self._orders if order.ask is not None]

    @property
    def health(self) -> dict[int | None, Health]:
        """What the views are worth, by rank."""
        return {order.dp_rank: order.health for order in self._orders}

    def start(self, now: float) -> list[Delivery]:
        """The sockets are there."""
        return self._each(lambda order: order.start(now))

    def connected(self, now: float) -> list[Delivery]:
        """The SUB socket has a connection, for the first time or again.

        To be called before the messages that the connection brings: the monitor tells of it
        before they can be received.
        """
        return self._each(lambda order: order.connected(now))

    def receive_live(self, frames: Sequence[bytes], now: float) -> list[Delivery]:
        """Take a message of the SUB socket. Never raises for what is in it."""
        try:
            live = parse_live(frames)
        except Malformed as error:
            return [Undecodable(self.worker, None, None, error)]
        batch = self._decode(live.payload)
        if isinstance(batch, Malformed):
            if len(self._orders) > 1:  # whose number this is, a replay will tell
                return [Undecodable(self.worker, None, None, batch)]
            return self._orders[0].live(Item(live.seq, live.payload, batch, True), now)
        order = self._find(batch.dp_rank)
        out: list[Delivery] = []
        if order is None:
            if len(self._orders) >= _MAX_RANKS:
                reason = f"dp rank {batch.dp_rank} is one too many: the limit is {_MAX_RANKS}"
                return [Undecodable(self.worker, None, None, Malformed(live.payload, reason))]
            order = Order(self.worker, self._ids, self._options)
            order.dp_rank = batch.dp_rank
            self._orders.append(order)
            out = order.start(now)
        return out + order.live(Item(live.seq, live.payload, batch, True), now)

    def receive_reply(self, ask_id: int, frames: Sequence[bytes], now: float) -> list[Delivery]:
        """Take a message of a DEALER. Never raises for what is in it.

        Args:
            ask_id: of the question that was sent on it; replies to an old one are ignored.
            frames: as received, with the delimiter.
            now: the time.
        """
        order = next((o for o in self._orders if o.ask and o.ask.id == ask_id), None)
        if order is None:
            return []
        try:
            reply = parse_reply(frames)
        except Malformed as error:
            return [Undecodable(self.worker, order.dp_rank, None, error)]
        if reply.kind == "end":
            return order.end(ask_id, now)
        if reply.head is not None:
            return order.head(ask_id, reply.head, now)
        batch = self._decode(reply.payload)
        if not isinstance(batch, Malformed):
            if order.dp_rank is None:
                order.dp_rank = batch.dp_rank
            elif batch.dp_rank != order.dp_rank:
                self.foreign += 1
                return []
        return order.replied(ask_id, Item(reply.seq, reply.payload, batch, False), now)

    def next_deadline(self) -> float | None:
        """When :meth:`handle_deadline` has something to do, if ever."""
        times = (order.next_deadline() for order in self._orders)
        return min((each for each in times if each is not None), default=None)

    def handle_deadline(self, now: float) -> list[Delivery]:
        """Give up what was not answered in time; ask again what was put off."""
        return self._each(lambda order: order.handle_deadline(now))

    def _each(self, call: Callable[[Order], list[Delivery]]) -> list[Delivery]:
        return [delivery for order in self._orders for delivery in call(order)]

    def _decode(self, payload: bytes) -> EventBatch | Malformed:
        try:
            return self.decoder.decode(payload)
        except Malformed as error:
            return error

    def _find(self, rank: int | None) -> Order | None:
        for order in self._orders:
            if order.dp_rank == rank:
                return order
        if self._orders[0].dp_rank is None:
            self._orders[0].dp_rank = rank
            return self._orders[0]
        return None
