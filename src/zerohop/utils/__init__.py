"""The small modules that programs know as ``zmq.utils``: names for what lies elsewhere."""
