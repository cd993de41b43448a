"""One test body for every driver: ``async def``, run by a loop, or by hand where nothing waits.

``asyncio`` and ``uvloop`` run the body on their loop and hand it real asyncio sockets. ``blocking``
needs no loop: the blocking socket's calls are wrapped in coroutines that never suspend, so the body
runs from its first line to its last on the calling thread, as a pyzmq program would.
"""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Generator
from importlib.util import find_spec
from typing import Any, TypeVar

T = TypeVar("T")

DRIVERS = ("asyncio", *(["uvloop"] if find_spec("uvloop") else []), "blocking")
BODY_SECONDS = 18.0  # under the 20 s of pytest-timeout, so that a hang ends where it waits

# The calls that an asyncio socket answers with an awaitable.
FORMS = ("multipart", "string", "json", "pyobj", "serialized")
AWAITED = {"send", "recv", "recv_into", "poll", "wait_connected", "wait_for_subscribers"}
AWAITED |= {f"{verb}_{form}" for verb in ("send", "recv") for form in FORMS}


class BlockingProxy:
    """A blocking socket or poller whose waiting calls can be awaited; everything else as it is."""

    def __init__(self, wrapped: Any) -> None:
        object.__setattr__(self, "wrapped", wrapped)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.wrapped, name)
        return _awaitable(value) if name in AWAITED else value

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.wrapped, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self.wrapped, name)

    def __repr__(self) -> str:
        return f"awaitable {self.wrapped!r}"


class BlockingPoller(BlockingProxy):
    """A blocking poller that knows wrapped sockets by their wrapper."""

    def __init__(self, wrapped: Any) -> None:
        super().__init__(wrapped)
        object.__setattr__(self, "wrappers", {})

    def register(self, item: Any, *flags: int) -> None:
        self.wrappers[unwrap(item)] = item
        self.wrapped.register(unwrap(item), *flags)

    def modify(self, item: Any, flags: int) -> None:
        self.wrapped.modify(unwrap(item), flags)

    def unregister(self, item: Any) -> None:
        self.wrapped.unregister(unwrap(item))

    async def poll(self, timeout: int | None = None) -> list[tuple[Any, int]]:
        return [(self.wrappers.get(i, i), events) for i, events in self.wrapped.poll(timeout)]


def unwrap(item: Any) -> Any:
    """Return the library's own object behind a proxy; anything else unchanged."""
    return item.wrapped if isinstance(item, BlockingProxy) else item


def _awaitable(call: Callable[..., T]) -> Callable[..., Coroutine[Any, Any, T]]:
    async def waiting(*args: Any, **kwargs: Any) -> T:
        return call(*map(unwrap, args), **kwargs)

    return waiting


def run_without_loop(body: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never suspends, because every call in it blocks instead."""
    try:
        body.send(None)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]  # what the coroutine returned
    body.close()
    raise AssertionError("a body for the blocking driver awaited something that suspends")


class ThreadTask:
    """A coroutine that blocks, running in a thread of its own; awaiting it joins the thread."""

    def __init__(self, body: Coroutine[Any, Any, Any]) -> None:
        self._result: Any = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(body,), daemon=True)
        self._thread.start()

    def _run(self, body: Coroutine[Any, Any, Any]) -> None:
        try:
            self._result = run_without_loop(body)
        except BaseException as error:  # noqa: BLE001 - raised again where the task is awaited
            self._error = error

    def done(self) -> bool:
        return not self._thread.is_alive()

    def __await__(self) -> Generator[Any, None, Any]:
        self._thread.join(BODY_SECONDS)
        assert self.done(), "the call started in a thread did not return"
        if self._error is not None:
            raise self._error
        return self._result
        yield  # never reached: it makes this method the generator that __await__ must be


def _loop_factory(name: str) -> Callable[[], asyncio.AbstractEventLoop]:
    if name == "uvloop":
        import uvloop

        return uvloop.new_event_loop
    return asyncio.new_event_loop


def warm_up() -> None:
    """Open and close a loop of each kind: what a library keeps per process is open after it."""
    for name in DRIVERS:
        if name != "blocking":
            _loop_factory(name)().close()


class LoopDriver:
    """asyncio or uvloop: the body is a task of a fresh loop, sockets are the asyncio ones."""

    def __init__(self, name: str) -> None:
        self.name = name

    def run(self, body: Coroutine[Any, Any, None]) -> None:
        """Run the body to its end on a fresh loop; fail if it leaves a task behind."""
        with asyncio.Runner(loop_factory=_loop_factory(self.name)) as runner:
            runner.run(self._bounded(body))

    async def _bounded(self, body: Coroutine[Any, Any, None]) -> None:
        async with asyncio.timeout(BODY_SECONDS):
            await body
        patience = 100  # a cancelled task needs a turn or two of the loop to end
        while left := asyncio.all_tasks() - {asyncio.current_task()}:
            assert patience, f"the test left tasks behind: {left}"
            patience -= 1
            await asyncio.sleep(0.001)

    def start(self, call: Awaitable[T]) -> "asyncio.Future[T]":
        """Let a call go on beside the body."""
        return asyncio.ensure_future(call)

    async def tick(self, seconds: float = 0.001) -> None:
        """Let everybody else run for a moment."""
        await asyncio.sleep(seconds)


class BlockingDriver:
    """No loop: what waits, blocks; what is started goes on in a thread."""

    name = "blocking"

    def run(self, body: Coroutine[Any, Any, None]) -> None:
        """Run the body on this thread."""
        run_without_loop(body)

    def start(self, call: Coroutine[Any, Any, T]) -> ThreadTask:
        """Let a call go on beside the body, in a thread of its own."""
        return ThreadTask(call)

    async def tick(self, seconds: float = 0.001) -> None:
        """Let the other threads run for a moment."""
        time.sleep(seconds)  # noqa: ASYNC251 - there is no loop to block


Driver = LoopDriver | BlockingDriver


def driver(name: str) -> Driver:
    """Return the driver called ``name``, one of ``DRIVERS``."""
    return BlockingDriver() if name == "blocking" else LoopDriver(name)
