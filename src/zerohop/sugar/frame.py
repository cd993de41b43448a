"""pyzmq's ``zmq.sugar.frame``."""

from zerohop import Frame, Message

__all__ = ["Frame", "Message"]
