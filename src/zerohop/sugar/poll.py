"""pyzmq's ``zmq.sugar.poll``."""

from zerohop import Poller, select

__all__ = ["Poller", "select"]
