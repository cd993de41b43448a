"""The engine channel: requests from API servers to engines, and their outputs back.

Knows: the messages of both sides, who is alive, which requests are open and how each of them ends.
Does not know: models, scheduling, or what is in a payload. ``client`` and ``server`` act with
``pulse``; every other file is pure.
"""
