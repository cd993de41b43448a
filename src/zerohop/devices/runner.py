"""A proxy with its sockets: described first, then run here, in a thread or in a process.

    device = ThreadProxy(zmq.ROUTER, zmq.DEALER)
    device.bind_in("tcp://*:5555")
    device.bind_out("ipc:///run/workers")
    device.start()

Sockets are made where the device runs, so that nothing is shared with who described it.
"""

from __future__ import annotations

import multiprocessing
import threading
from typing import TYPE_CHECKING, Any, ClassVar

import zerohop as zmq
from zerohop.devices.relay import monitored_queue, proxy, proxy_steerable

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "Device",
    "MonitoredQueue",
    "ProcessDevice",
    "ProcessMonitoredQueue",
    "ProcessProxy",
    "ProcessProxySteerable",
    "Proxy",
    "ProxySteerable",
    "ThreadDevice",
    "ThreadMonitoredQueue",
    "ThreadProxy",
    "ThreadProxySteerable",
]


class _Side:
    """One socket to be: its type, its options, and where it binds and connects to."""

    def __init__(self, socket_type: int) -> None:
        self.type = socket_type
        self.options: list[tuple[int, Any]] = []
        self.binds: list[str] = []
        self.connects: list[str] = []

    def make(self, context: zmq.Context) -> Any:
        """Make the socket, with its options before its endpoints."""
        made = context.socket(self.type)
        try:
            for option, value in self.options:
                made.set(option, value)
            for address in self.binds:
                made.bind(address)
            for address in self.connects:
                made.connect(address)
        except BaseException:
            made.close()
            raise
        return made


class Device:
    """Two sockets and a proxy between them, run by :meth:`start` in the calling thread.

    Args:
        device_type: QUEUE, FORWARDER or STREAMER; makes no difference.
        in_type: type of the frontend.
        out_type: type of the backend; negative: there is one socket, which sends everything back.

    Attributes:
        context_factory: called where the device runs, for the context of its sockets.
        daemon: whether a thread or process of it may be left behind at exit.
        done: it has run, and its sockets are closed.

    Raises:
        TypeError: a type is missing.
    """

    context_factory: Callable[[], zmq.Context] = zmq.Context.instance

    def __init__(
        self,
        device_type: int = zmq.QUEUE,
        in_type: int | None = None,
        out_type: int | None = None,
    ) -> None:
        if in_type is None:
            raise TypeError("in_type must be specified")
        if out_type is None:
            raise TypeError("out_type must be specified")
        self.device_type = zmq.DeviceType(device_type)
        self.in_type = in_type
        self.out_type = out_type
        self.daemon = True
        self.done = False
        self._in = _Side(in_type)
        self._out = _Side(out_type)
        self._reserved: set[int] = set()
        self._sockets: list[Any] = []

    def bind_in(self, addr: str) -> None:
        """Have the frontend bind to an endpoint."""
        self._in.binds.append(addr)

    def bind_in_to_random_port(self, addr: str, *args: int, **kwargs: int) -> int:
        """Have the frontend bind to a free port; return it. As ``Socket.bind_to_random_port``.

        The port is looked for now and bound when the device starts: somebody may come between.
        """
        return self._bind_to_random_port(self._in, addr, *args, **kwargs)

    def connect_in(self, addr: str) -> None:
        """Have the frontend connect to an endpoint."""
        self._in.connects.append(addr)

    def setsockopt_in(self, opt: int, value: Any) -> None:
        """Set an option of the frontend, before it binds and connects."""
        self._in.options.append((opt, value))

    def bind_out(self, addr: str) -> None:
        """Have the backend bind to an endpoint."""
        self._out.binds.append(addr)

    def bind_out_to_random_port(self, addr: str, *args: int, **kwargs: int) -> int:
        """As :meth:`bind_in_to_random_port`, of the backend."""
        return self._bind_to_random_port(self._out, addr, *args, **kwargs)

    def connect_out(self, addr: str) -> None:
        """Have the backend connect to an endpoint."""
        self._out.connects.append(addr)

    def setsockopt_out(self, opt: int, value: Any) -> None:
        """Set an option of the backend, before it binds and connects."""
        self._out.options.append((opt, value))

    def _bind_to_random_port(self, side: _Side, addr: str, *args: int, **kwargs: int) -> int:
        with zmq.Context() as context:
            while True:
                with context.socket(zmq.PAIR) as probe:
                    port = int(probe.bind_to_random_port(addr, *args, **kwargs))
                if port not in self._reserved:
                    break
        self._reserved.add(port)
        side.binds.append(f"{addr}:{port}")
        return port

    def start(self) -> None:
        """Run; here, so this returns when the device ends."""
        self.run()

    def run(self) -> None:
        """Make the sockets and pass messages until the context ends; closes the sockets.

        Raises:
            ZMQError: a socket could not be made or bound, or was closed by others.
        """
        try:
            self.run_device()
        except zmq.ContextTerminated:
            return  # how devices are ended
        finally:
            self.done = True
            for made in self._sockets:
                made.close()
            self._sockets.clear()

    def run_device(self) -> None:
        """Make the sockets and pass messages."""
        proxy(*self._make_sides())

    def _make_sides(self) -> tuple[Any, Any]:
        context = self.context_factory()
        front = self._make(self._in, context)
        return front, front if self.out_type < 0 else self._make(self._out, context)

    def _make(self, side: _Side, context: zmq.Context) -> Any:
        made = side.make(context)
        self._sockets.append(made)
        return made


class Proxy(Device):
    """A device whose traffic is copied to a third socket.

    Args:
        in_type: type of the frontend.
        out_type: type of the backend; negative: there is one socket, which sends everything back.
        mon_type: type of the third.
    """

    def __init__(self, in_type: int, out_type: int, mon_type: int = zmq.PUB) -> None:
        super().__init__(zmq.QUEUE, in_type, out_type)
        self.mon_type = mon_type
        self._mon = _Side(mon_type)

    def bind_mon(self, addr: str) -> None:
        """Have the third socket bind to an endpoint."""
        self._mon.binds.append(addr)

    def bind_mon_to_random_port(self, addr: str, *args: int, **kwargs: int) -> int:
        """As :meth:`bind_in_to_random_port`, of the third socket."""
        return self._bind_to_random_port(self._mon, addr, *args, **kwargs)

    def connect_mon(self, addr: str) -> None:
        """Have the third socket connect to an endpoint."""
        self._mon.connects.append(addr)

    def setsockopt_mon(self, opt: int, value: Any) -> None:
        """Set an option of the third socket, before it binds and connects."""
        self._mon.options.append((opt, value))

    def run_device(self) -> None:
        """Make the sockets and pass messages."""
        front, back = self._make_sides()
        proxy(front, back, self._make(self._mon, self.context_factory()))


class ProxySteerable(Proxy):
    """A proxy that obeys commands: see :func:`zerohop.devices.proxy_steerable`.

    Args:
        in_type: as Proxy.
        out_type: as Proxy.
        mon_type: as Proxy.
        ctrl_type: type of the socket that the commands come to; None: PAIR.
    """

    def __init__(
        self, in_type: int, out_type: int, mon_type: int = zmq.PUB, ctrl_type: int | None = None
    ) -> None:
        super().__init__(in_type, out_type, mon_type)
        self.ctrl_type = zmq.PAIR if ctrl_type is None else ctrl_type
        self._ctrl = _Side(self.ctrl_type)

    def bind_ctrl(self, addr: str) -> None:
        """Have the control socket bind to an endpoint."""
        self._ctrl.binds.append(addr)

    def bind_ctrl_to_random_port(self, addr: str, *args: int, **kwargs: int) -> int:
        """As :meth:`bind_in_to_random_port`, of the control socket."""
        return self._bind_to_random_port(self._ctrl, addr, *args, **kwargs)

    def connect_ctrl(self, addr: str) -> None:
        """Have the control socket connect to an endpoint."""
        self._ctrl.connects.append(addr)

    def setsockopt_ctrl(self, opt: int, value: Any) -> None:
        """Set an option of the control socket, before it binds and connects."""
        self._ctrl.options.append((opt, value))

    def run_device(self) -> None:
        """Make the sockets and pass messages, until the context ends or TERMINATE comes."""
        front, back = self._make_sides()
        context = self.context_factory()
        capture = self._make(self._mon, context)
        proxy_steerable(front, back, capture, self._make(self._ctrl, context))


class MonitoredQueue(Proxy):
    """A proxy that says of each captured message which way it went.

    Args:
        in_type: as Proxy.
        out_type: as Proxy.
        mon_type: as Proxy.
        in_prefix: first part of what is captured on its way from the frontend; text as UTF-8.
        out_prefix: likewise from the backend.
    """

    def __init__(
        self,
        in_type: int,
        out_type: int,
        mon_type: int = zmq.PUB,
        in_prefix: bytes | str = b"in",
        out_prefix: bytes | str = b"out",
    ) -> None:
        super().__init__(in_type, out_type, mon_type)
        self._in_prefix = in_prefix.encode() if isinstance(in_prefix, str) else in_prefix
        self._out_prefix = out_prefix.encode() if isinstance(out_prefix, str) else out_prefix

    def run_device(self) -> None:
        """Make the sockets and pass messages."""
        front, back = self._make_sides()
        capture = self._make(self._mon, self.context_factory())
        monitored_queue(front, back, capture, self._in_prefix, self._out_prefix)


class _Background(Device):
    """A device that :meth:`start` runs beside the caller.

    Attributes:
        launcher: the thread or process; None before :meth:`start`.
    """

    _launch_class: ClassVar[Callable[..., Any]]
    launcher: Any = None

    def start(self) -> None:
        """Run in the background; returns at once."""
        launcher = type(self)._launch_class(target=self.run, daemon=self.daemon)
        launcher.start()
        self.launcher = launcher

    def join(self, timeout: float | None = None) -> None:
        """Wait until it has ended.

        Args:
            timeout: seconds; None: without limit.
        """
        self.launcher.join(timeout)


class ThreadDevice(_Background):
    """A :class:`Device` in a thread. End it by ending its context."""

    _launch_class: ClassVar[Callable[..., Any]] = threading.Thread


class ProcessDevice(_Background):
    """A :class:`Device` in a process of its own, with a context of its own."""

    _launch_class: ClassVar[Callable[..., Any]] = multiprocessing.Process
    context_factory: Callable[[], zmq.Context] = zmq.Context


class ThreadProxy(Proxy, ThreadDevice):
    """A :class:`Proxy` in a thread."""


class ProcessProxy(Proxy, ProcessDevice):
    """A :class:`Proxy` in a process of its own."""


class ThreadProxySteerable(ProxySteerable, ThreadDevice):
    """A :class:`ProxySteerable` in a thread."""


class ProcessProxySteerable(ProxySteerable, ProcessDevice):
    """A :class:`ProxySteerable` in a process of its own."""


class ThreadMonitoredQueue(MonitoredQueue, ThreadDevice):
    """A :class:`MonitoredQueue` in a thread."""


class ProcessMonitoredQueue(MonitoredQueue, ProcessDevice):
    """A :class:`MonitoredQueue` in a process of its own."""
