"""Two sockets joined by a thread: proxies, queues, forwarders.

Knows the public API only: whatever this does, a program of yours can do.

    relay      the loop that passes messages: proxy, proxy_steerable, monitored_queue
    runner     a relay with its sockets, described first and run later: Device and its kin
"""

from typing import TYPE_CHECKING, Any

from zerohop.devices.relay import device, monitored_queue, proxy, proxy_steerable

if TYPE_CHECKING:
    from zerohop.devices.runner import (
        Device,
        MonitoredQueue,
        ProcessDevice,
        ProcessMonitoredQueue,
        ProcessProxy,
        ProcessProxySteerable,
        Proxy,
        ProxySteerable,
        ThreadDevice,
        ThreadMonitoredQueue,
        ThreadProxy,
        ThreadProxySteerable,
    )

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
    "device",
    "monitored_queue",
    "proxy",
    "proxy_steerable",
]


def __getattr__(name: str) -> Any:
    """Import the classes when one of them is first asked for.

    They need ``multiprocessing``, and ``zerohop`` complete; but ``zerohop`` imports the functions
    from here for names of its own.
    """
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from zerohop.devices import runner

    return getattr(runner, name)
