"""The modules that programs know as ``zmq.sugar``: names for what lies elsewhere."""

from zerohop.sugar import context, frame, poll, socket, stopwatch, tracker, version

__all__ = ["context", "frame", "poll", "socket", "stopwatch", "tracker", "version"]
