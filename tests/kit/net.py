"""A network for one test: sockets of the library under test, fresh endpoints, ways to wait."""

import inspect
import itertools
import random
import socket as plain
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Self, TypeVar

from tests.kit.drivers import BlockingPoller, BlockingProxy, Driver, unwrap
from tests.kit.library import Library
from tests.kit.workers import share

T = TypeVar("T")

TRANSPORTS = ("tcp", "ipc", "inproc")
PATIENCE_MS = 8000  # a call that would wait for ever says Again instead, and the test its line

# Below the range that Linux gives to outgoing connections: such a port is never taken by chance,
# and a connection to it while nobody listens cannot meet itself.
_PORTS = share(range(16000, 32000))
_ports = itertools.cycle(random.sample(_PORTS, len(_PORTS)))
_names = itertools.count(1)


def free_port() -> int:
    """Return a TCP port of the loopback interface that nobody listens on."""
    for port in _ports:
        with plain.socket() as probe:
            probe.setsockopt(plain.SOL_SOCKET, plain.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("no free port")


async def eventually(
    driver: Driver, condition: Callable[[], T | Awaitable[T]], within: float = 8.0
) -> T:
    """Wait until ``condition()`` is true, at most ``within`` seconds; return what it gave."""
    deadline = time.monotonic() + within
    while True:
        value: Any = condition()
        if inspect.isawaitable(value):
            value = await value
        if value:
            return value  # type: ignore[no-any-return]  # T, once awaited
        assert time.monotonic() < deadline, f"not within {within} s: last seen {value!r}"
        await driver.tick()


class Net:
    """Sockets of one library under one driver, joined over one transport.

    Every socket has RCVTIMEO and SNDTIMEO set to ``PATIENCE_MS``, so that a wait which the library
    gets wrong fails where it stands. Options are set by name before anything is bound.
    """

    def __init__(self, library: Library, driver: Driver, transport: str, directory: Path) -> None:
        self.library = library
        self.driver = driver
        self.transport = transport
        self.directory = directory
        self.zmq = library.blocking
        self._contexts: list[Any] = []
        self._raw: list[plain.socket] = []
        self._sockets: list[Any] = []  # held: a socket that is collected unclosed warns of it
        self._context: Any = None

    @property
    def context(self) -> Any:
        """The context of this test's sockets, made when first asked for."""
        if self._context is None:
            self._context = self.new_context()
        return self._context

    def new_context(self) -> Any:
        """Return one more context of this driver, destroyed when the test ends."""
        module = self.library.blocking if self.driver.name == "blocking" else self.library.asyncio
        context = module.Context()
        self._contexts.append(context)
        return context

    def socket(self, socket_type: int, *, context: Any = None, **options: Any) -> Any:
        """Return a socket with these options (``sndhwm=1``), its waiting calls awaitable."""
        made = self.adopt((context or self.context).socket(socket_type))
        for name, value in {"rcvtimeo": PATIENCE_MS, "sndtimeo": PATIENCE_MS, **options}.items():
            setattr(made, name, value)
        return made

    def adopt(self, made: Any) -> Any:
        """Return a socket that the library made, such that its waiting calls can be awaited."""
        self._sockets.append(made)
        return BlockingProxy(made) if self.driver.name == "blocking" else made

    def keep(self, raw: plain.socket) -> None:
        """Close this plain socket when the test ends, if it is still open then."""
        self._raw.append(raw)

    def poller(self) -> Any:
        """Return a poller for this driver's sockets; its ``poll`` can be awaited."""
        if self.driver.name == "blocking":
            return BlockingPoller(self.library.blocking.Poller())
        return self.library.asyncio.Poller()

    def endpoint(self) -> str:
        """Return an endpoint of this transport that nobody has used."""
        match self.transport:
            case "tcp":
                return f"tcp://127.0.0.1:{free_port()}"
            case "ipc":
                return f"ipc://{self.directory}/{next(_names)}"
            case _:
                return f"inproc://{next(_names)}"

    async def rebind(self, socket: Any, endpoint: str) -> None:
        """Bind where another socket has just been: libzmq may still hold the endpoint."""

        def bound() -> bool:
            try:
                socket.bind(endpoint)
            except self.zmq.ZMQError as error:
                if error.errno != self.zmq.EADDRINUSE:
                    raise
                return False
            return True

        await self.eventually(bound)

    async def link(self, binder: Any, *connectors: Any, endpoint: str | None = None) -> str:
        """Bind one socket, connect the others in turn, wait until all are peers; say where."""
        endpoint = endpoint or self.endpoint()
        binder.bind(endpoint)
        await self.join(endpoint, binder, *connectors)
        return endpoint

    async def join(self, endpoint: str, binder: Any, *connectors: Any) -> None:
        """Connect each socket in turn to a bound one, and wait until it is its peer."""
        if self.transport == "inproc":
            for connector in connectors:
                connector.connect(endpoint)
        else:
            with self.watch(binder, self.zmq.EVENT_HANDSHAKE_SUCCEEDED) as handshakes:
                for connector in connectors:
                    connector.connect(endpoint)
                    await handshakes.next()
        _ = binder.events  # a libzmq socket meets its new peers when it is next looked at

    def watch(self, watched: Any, events: int) -> "Watch":
        """Return a context manager that sees what happens to a socket's connections."""
        return Watch(self, watched, events)

    def start(self, call: Any) -> Any:
        """Let ``socket.recv()``, or any coroutine, go on beside the test; await it for its result.

        Never for a task that the test does not await.
        """
        return self.driver.start(call)

    async def eventually(self, condition: Callable[[], T | Awaitable[T]], within: float = 8.0) -> T:
        """Wait until ``condition()`` is true, at most ``within`` seconds; return what it gave."""
        return await eventually(self.driver, condition, within)

    async def tick(self, seconds: float = 0.001) -> None:
        """Let everybody else run for a moment: for conditions that cannot be observed."""
        await self.driver.tick(seconds)

    async def close(self) -> None:
        """Close every socket without linger and end the contexts."""
        for made in self._sockets:
            made.close(linger=0)
        for end in self._raw:
            end.close()
        for context in self._contexts:
            if not context.closed:
                context.destroy(linger=0)


class Watch:
    """The monitor of one socket while a ``with`` block lasts."""

    def __init__(self, net: Net, watched: Any, events: int) -> None:
        self._net = net
        self._watched = unwrap(watched)
        self._events = events
        self._monitor: Any = None

    def __enter__(self) -> Self:
        address = f"inproc://watch-{next(_names)}"  # libzmq gives up the last one's name late
        self._monitor = self._net.adopt(self._watched.get_monitor_socket(self._events, address))
        self._monitor.rcvtimeo = PATIENCE_MS
        return self

    def __exit__(self, *exc_info: object) -> None:
        if not self._watched.closed:
            self._watched.disable_monitor()  # before the PAIR is closed: see libzmq #3575
        self._monitor.close(linger=0)

    async def next(self) -> int:
        """Wait for the next event that was asked for; return its number."""
        event, _endpoint = await self._monitor.recv_multipart()
        return int.from_bytes(event[:2], "little")
