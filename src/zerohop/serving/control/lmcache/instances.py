"""The engines that have registered with an MP server, and which of them still ping.

As LMCache has it: an instance is a number that its worker chose (its process id, say). One that
has pinged counts as gone when it is silent for ``timeout``; one that never has, for ``grace``:
workers begin to ping with their first store.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from zerohop.serving.errors import RequestRefused
from zerohop.serving.wording import counted

__all__ = ["Instance", "Instances"]


@dataclass(slots=True)
class Instance:
    """A worker of an engine.

    Attributes:
        instance_id: its number.
        registration: what it said of itself, as it came.
        seen: when it was last heard of.
        has_pinged: since it registered.
    """

    instance_id: int
    registration: Any
    seen: float
    has_pinged: bool = False


class Instances:
    """Who is registered. Time is an argument: seconds, monotonic.

    Args:
        timeout: seconds of silence after which one that has pinged is gone.
        grace: the same for one that has not.
        most: how many may be here; more are refused, unless some of them are gone.

    Attributes:
        present: by number.
        strangers: pings of instances that are not registered.
    """

    def __init__(self, timeout: float = 120.0, grace: float = 3600.0, most: int = 10_000) -> None:
        self.present: dict[int, Instance] = {}
        self.strangers = 0
        self._timeout, self._grace, self._most = timeout, grace, most

    def register(self, instance_id: int, registration: Any, now: float) -> None:
        """It is here; what was known of it before is void.

        Raises:
            RequestRefused: there are too many.
        """
        if instance_id not in self.present and len(self.present) >= self._most:
            self.reap(now)
            if len(self.present) >= self._most:
                reason = f"the limit of {counted(self._most, 'instance')} is reached"
                raise RequestRefused(f"{instance_id!r:.64}", reason)
        self.present[instance_id] = Instance(instance_id, registration, now)

    def unregister(self, instance_id: int) -> None:
        """It goes; one that is not here is no fault."""
        self.present.pop(instance_id, None)

    def ping(self, instance_id: int | None, now: float) -> bool:
        """It is alive. ``None``: somebody wants to know whether this server is."""
        instance = self.present.get(instance_id) if instance_id is not None else None
        if instance is not None:
            instance.seen, instance.has_pinged = now, True
        elif instance_id is not None:
            self.strangers += 1
        return True

    def reap(self, now: float) -> list[Instance]:
        """Take out and return those that are gone."""
        gone = [
            each
            for each in self.present.values()
            if each.seen + (self._timeout if each.has_pinged else self._grace) <= now
        ]
        for each in gone:
            del self.present[each.instance_id]
        return gone
