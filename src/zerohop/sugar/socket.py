"""pyzmq's ``zmq.sugar.socket``."""

from zerohop import Socket, SyncSocket

__all__ = ["Socket", "SyncSocket"]
