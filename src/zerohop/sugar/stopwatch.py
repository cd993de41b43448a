"""pyzmq's ``zmq.sugar.stopwatch``."""

from zerohop import Stopwatch

__all__ = ["Stopwatch"]
