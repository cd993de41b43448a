"""pyzmq's ``zmq.sugar.tracker``."""

from zerohop import MessageTracker

__all__ = ["MessageTracker"]
