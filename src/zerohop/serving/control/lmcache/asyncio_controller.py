"""A controller that LMCache workers register with, and a worker of one, on an event loop."""

from __future__ import annotations

from zerohop.serving.asyncio_actor import ActorTask
from zerohop.serving.control.lmcache.controller import Controlling, Reporting

__all__ = ["LmcacheController", "LmcacheWorker"]


class LmcacheController(Controlling, ActorTask):
    """Keeps the table of LMCache's workers, on the running event loop."""


class LmcacheWorker(Reporting, ActorTask):
    """Tells an LMCache controller what is in a cache, on the running event loop."""
