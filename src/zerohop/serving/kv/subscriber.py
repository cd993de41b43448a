"""Reads one worker's KV events, in a thread: SUB for what happens, a DEALER for each question.

    for delivery in subscriber:  <-  KvFollower  <-  SUB, its monitor, DEALERs, deadlines

The follower decides; here its sockets are kept, and what they bring is handed over in the right
order: that there is a connection anew comes before what the connection brought.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import replace as changed
from typing import Any, ClassVar

import zerohop as zmq
from zerohop.serving.actor import ContextOwner, Waker, bound, connected, milliseconds_until, waiting
from zerohop.serving.arguments import apart, seconds, text, whole
from zerohop.serving.closing import Closing
from zerohop.serving.kv.follower import KvFollower
from zerohop.serving.kv.questions import OrderOptions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from zerohop.serving.kv.decode import BatchDecoder
    from zerohop.serving.kv.deliveries import Delivery, Health

__all__ = ["Following", "SyncKvEventSubscriber"]

SLICE = 64  # messages that are taken from a socket before the others have their turn
HWM = 100_000  # vLLM's


class Following(ContextOwner):
    """What both subscribers have: the follower, its sockets, and what it has delivered.

    Attributes:
        endpoint: connected to, or bound.
    """

    _poller_type: ClassVar[Any]

    def __init__(
        self,
        endpoint: str,
        replay: str | None = None,
        *,
        worker: str | None = None,
        topic: str = "",
        bind: bool = False,
        hwm: int = HWM,
        options: OrderOptions | None = None,
    ) -> None:
        """Connect, or bind, and ask for what was before.

        Args:
            endpoint: the publisher's PUB, or where to wait for it.
            replay: the publisher's replay socket; without, what is missed is lost.
            worker: its name in the deliveries; the endpoint unless given.
            topic: the beginning of the topics that are read; all unless given.
            bind: whether to bind ``endpoint``, for a publisher that connects.
            hwm: batches that may wait to be read; more are dropped, and asked for again.
            options: how patient to be, and what may be held; ``replay`` in them follows from the
                argument.

        Raises:
            TypeError, ValueError: an argument is of another kind.
            ZMQError: the endpoint can't be bound or connected.
        """
        apart("endpoint", endpoint)
        if replay is not None:
            apart("replay", replay)
        if worker is not None:
            text("worker", worker)
        text("topic", topic)
        whole("hwm", hwm)
        super().__init__()
        self._replay = replay
        self._follower = KvFollower(
            worker or endpoint, changed(options or OrderOptions(), replay=replay is not None)
        )
        self._out: deque[Delivery] = deque()
        self._dealers: dict[int, Any] = {}  # by the question's id
        with self._starting():
            self._sub = self._context.socket(zmq.SUB)
            self._sub.rcvhwm = hwm
            self._monitor = self._sub.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED)
            self._sub.subscribe(topic.encode())
            (bound if bind else connected)(self._sub, endpoint)
            self.endpoint: str = self._sub.last_endpoint.decode() if bind else endpoint
            self._poller = self._poller_type()
            self._poller.register(self._sub, zmq.POLLIN)
            self._poller.register(self._monitor, zmq.POLLIN)
            self._out += self._follower.start(time.monotonic())
            self._arrange()

    @property
    def worker(self) -> str:
        """Its name in the deliveries."""
        return self._follower.worker

    @property
    def health(self) -> dict[int | None, Health]:
        """What the views are worth, by dp rank."""
        return self._follower.health

    @property
    def decoder(self) -> BatchDecoder:
        """Counts batches that could not be decoded, and events of unknown types."""
        return self._follower.decoder

    def _take(
        self, live: list[list[bytes]], has_connected: bool, replies: list[tuple[int, list[bytes]]]
    ) -> None:
        """Hand over what was received. The monitor was read after ``live``, and goes before it."""
        follower, now = self._follower, time.monotonic()
        if has_connected:
            self._out += follower.connected(now)
        for frames in live:
            self._out += follower.receive_live(frames, now)
        for ask_id, frames in replies:
            self._out += follower.receive_reply(ask_id, frames, now)
        deadline = follower.next_deadline()
        if deadline is not None and now >= deadline:
            self._out += follower.handle_deadline(now)
        self._arrange()

    def _arrange(self) -> None:
        """Make the DEALERs those of the questions that are open: one for each."""
        asks = {ask.id: ask for ask in self._follower.asks}
        for ask_id in self._dealers.keys() - asks.keys():
            dealer = self._dealers.pop(ask_id)
            self._poller.unregister(dealer)
            dealer.close()
        for ask_id in asks.keys() - self._dealers.keys():
            assert self._replay is not None  # or nothing is asked
            dealer = connected(self._context.socket(zmq.DEALER), self._replay)
            self._dealers[ask_id] = dealer
            self._poller.register(dealer, zmq.POLLIN)
            dealer.send_multipart(asks[ask_id].frames, zmq.DONTWAIT)


class SyncKvEventSubscriber(Following, Closing):
    """Follows one worker, in a blocking program.

        with SyncKvEventSubscriber("tcp://worker:5557", replay="tcp://worker:5558") as subscriber:
            for delivery in subscriber:
                view.deliver(delivery)

    One thread reads; any may close it, which ends the iteration.
    """

    _context_type = zmq.Context
    _poller_type = zmq.Poller

    def _start(self) -> None:
        self._lock = threading.Lock()  # whoever reads has it
        self._waker = Waker(self._context)
        self._poller.register(self._waker.receiver, zmq.POLLIN)

    def receive(self, timeout: float | None = None) -> Delivery | None:
        """Wait for the next delivery.

        Args:
            timeout: seconds; ``None``: without limit.

        Returns:
            The delivery, or ``None``: the time has run out, or the subscriber is closed.

        Raises:
            TypeError, ValueError: the timeout is no time.
        """
        give_up = None if timeout is None else time.monotonic() + seconds("timeout", timeout)
        with self._lock:
            while not self._out:
                if self._is_closed:
                    return None
                ends = (give_up, self._follower.next_deadline())
                end = min((each for each in ends if each is not None), default=None)
                self._poller.poll(milliseconds_until(end))
                self._pump()
                if give_up is not None and not self._out and time.monotonic() >= give_up:
                    return None
            return self._out.popleft()

    def __iter__(self) -> Iterator[Delivery]:
        return self

    def __next__(self) -> Delivery:
        delivery = self.receive()
        if delivery is None:
            raise StopIteration
        return delivery

    def close(self) -> None:
        """Read no more. May be called from another thread than that which reads."""
        if self._is_closed:
            return
        self._is_closed = True
        self._waker.wake()
        with self._lock:
            self._out.clear()
            self._context.destroy()

    def _pump(self) -> None:
        if self._is_closed:
            return
        live = list(waiting(self._sub, SLICE))
        has_connected = any([*waiting(self._monitor)])
        replies = [
            (ask_id, frames)
            for ask_id, dealer in self._dealers.items()
            for frames in waiting(dealer, SLICE)
        ]
        self._take(live, has_connected, replies)
