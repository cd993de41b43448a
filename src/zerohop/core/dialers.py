"""The connect()s of one socket: who is dialled, when again, and when not any more.

    add ──► to_dial ──► (the driver is at it) ──► linked ──► ended ──► again
              ▲                   │                                     │
              │                 failed ──────────────────────────────► again
              │                                                         │
              └───────────── due (RECONNECT_IVL later) ◄────────────────┤
                                                                        │
                dropped: it was to leave, and has nothing left ◄────────┤
                stopped: RECONNECT_IVL=-1, RECONNECT_STOP ◄─────────────┘

A dialled peer exists for the pattern from connect() on, so that messages queue before anybody
listens; with IMMEDIATE only while it is connected.
"""

from __future__ import annotations

from zerohop.constants import Event
from zerohop.core.link import Dialer
from zerohop.core.peers import let_go
from zerohop.core.reconnect import Failure, next_delay
from zerohop.value import NOTHING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from zerohop.core.endpoint import Endpoint
    from zerohop.core.options import SocketOptions
    from zerohop.core.peers import Peers
    from zerohop.core.records import Records
    from zerohop.core.timers import Timers


_FEW = 8  # connect()s: among so many one is looked for, and most sockets have one


class Dialers:
    """Every connect() to tcp or ipc that was not taken back, in the order they came.

    Args:
        peers: where a dialled peer is attached.
        options: a dialler goes by them as they are at its connect().
        jitter: a random number in [0, 1) at each call, for the back-off.
        timers: tell when to dial again.
        records: hear of what fails.

    Attributes:
        to_dial: for the driver: open a connection to ``endpoint``.
        dropped: for the driver: have no more to do with these.
        stopped: those that will not dial again.
    """

    def __init__(
        self,
        peers: Peers,
        options: SocketOptions,
        jitter: Callable[[], float],
        timers: Timers,
        records: Records,
    ) -> None:
        self.to_dial: list[Dialer] = []
        self.dropped: list[Dialer] = NOTHING
        self._dialers: dict[Dialer, None] = {}
        self._by_address: dict[str, dict[Dialer, None]] | None = None  # made for more than a few
        self.stopped: dict[Dialer, None] = {}
        self._peers = peers
        self._options = options
        self._jitter = jitter
        self._timers = timers
        self._records = records

    def __iter__(self) -> Iterator[Dialer]:
        return iter(self._dialers)

    def __len__(self) -> int:
        return len(self._dialers)

    def __contains__(self, dialer: object) -> bool:
        return dialer in self._dialers

    def find(self, endpoint: Endpoint) -> Dialer | None:
        """Return the one that leads there and is to stay; the first, where there are several."""
        for dialer in self._same(str(endpoint)):
            if not dialer.leaving:
                return dialer
        for dialer in self._dialers:  # its address may have been written otherwise
            if dialer.endpoint == endpoint and not dialer.leaving:
                return dialer
        return None

    def has(self, address: str) -> bool:
        """Whether one of this very address is to stay."""
        if not self._dialers:
            return False
        same = self._same(address)
        return bool(same) and any(not dialer.leaving for dialer in same)

    def _same(self, address: str) -> Collection[Dialer]:
        """Those of this very address."""
        if len(self._dialers) <= _FEW:
            return [dialer for dialer in self._dialers if dialer.address == address]
        if self._by_address is None:
            self._by_address = {}
            for dialer in self._dialers:
                self._by_address.setdefault(dialer.address, {})[dialer] = None
        return self._by_address.get(address, ())

    def given_up(self, address: str) -> list[Dialer]:
        """Those of this very address that will not dial again, and were not asked to leave."""
        return [each for each in self.stopped if each.address == address and not each.leaving]

    def add(self, endpoint: Endpoint, address: str) -> Dialer:
        """Begin to connect; the pattern has the peer from now on, unless IMMEDIATE is set."""
        options = self._options.frozen()
        if options.connect_routing_id:
            self._options.connect_routing_id = b""  # libzmq: for the next connect only
        dialer = Dialer(endpoint, address, options)
        self._dialers[dialer] = None
        if self._by_address is not None:
            self._by_address.setdefault(address, {})[dialer] = None
        if not options.immediate:
            peer = dialer.peer = self._peers.new(conflate=options.conflate)
            peer.connect_routing_id = options.connect_routing_id
            self._peers.attach(peer)
        self.to_dial.append(dialer)
        return dialer

    def failed(self, dialer: Dialer, error: OSError, now: float) -> None:
        """Nobody answered; try again later, as RECONNECT_IVL and RECONNECT_STOP say."""
        dialer.last_error = error
        if self._records.monitors:
            self._records.add(Event.CLOSED, error.errno or 0, dialer.address, reason=str(error))
        refused = isinstance(error, ConnectionRefusedError)
        if not refused and not isinstance(error, FileNotFoundError):
            # Nobody listens yet: that is no trouble. No such name, no route: that may be.
            self._records.report(dialer, dialer.address, error)
        self.again(dialer, Failure.REFUSED if refused else Failure.UNREACHABLE, now)

    def again(self, dialer: Dialer, failure: Failure, now: float) -> None:
        """There is no connection (any more): dial again later, or let it be."""
        if dialer not in self._dialers:
            return
        if dialer.done or dialer.stopped:
            self.drop(dialer)
            return
        wait = next_delay(failure, dialer.attempt, dialer.options.reconnect, self._jitter())
        dialer.attempt += 1
        if wait is None:
            self._stop(dialer)
            return
        if self._records.monitors:
            self._records.add(Event.CONNECT_RETRIED, int(wait * 1000), dialer.address)
        self._timers.arm(dialer, now + wait)

    def _stop(self, dialer: Dialer) -> None:
        """Give the endpoint up: no messages for it, which would wait for ever."""
        if dialer.leaving:
            self.drop(dialer)
            return
        dialer.stopped = True
        self.stopped[dialer] = None
        self._let_go(dialer)

    def due(self, dialer: Dialer) -> None:
        """The time has come to dial again."""
        self.to_dial.append(dialer)

    def mend(self) -> None:
        """See that each has a link, a time to dial, or is to be dialled now: see ``io.mending``."""
        self._by_address = None
        self.stopped = {dialer: None for dialer in self._dialers if dialer.stopped}
        for dialer in list(self._dialers):
            if dialer.link is not None or dialer.due_at is not None or dialer in self.to_dial:
                continue
            if dialer.done:
                self.drop(dialer)
            elif not dialer.stopped:
                self.to_dial.append(dialer)

    def drop(self, dialer: Dialer) -> None:
        """Forget a connect(): no more dialling, and the pattern loses the peer."""
        if dialer in self._dialers:  # what a signal handler interrupts here is done the next time
            if self._by_address is not None:
                same = self._by_address.get(dialer.address, {})
                same.pop(dialer, None)
                if not same:
                    self._by_address.pop(dialer.address, None)
            self.stopped.pop(dialer, None)
            self.dropped = self.dropped or []
            self.dropped.append(dialer)
            del self._dialers[dialer]
        if dialer in self.to_dial:
            self.to_dial.remove(dialer)
        dialer.due_at = None
        self._let_go(dialer)

    def _let_go(self, dialer: Dialer) -> None:
        peer, dialer.peer = dialer.peer, None
        if peer is not None:
            self._peers.drop_queue(peer)
            self._peers.detach(peer)
            if dialer.link is None:
                let_go(peer)
