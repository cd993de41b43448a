"""pyzmq's ``zmq.sugar.context``."""

from zerohop import Context, SyncContext

__all__ = ["Context", "SyncContext"]
