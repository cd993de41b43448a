"""LMCache's two protocols: its MP server's (requests by number) and its controller's (maps).

Knows: their frames, in each release; who is registered, and which worker has which chunks. Does
not know: what is in a chunk, or how it moves. ``server``, ``client`` and ``controller`` act; all
else is pure.
"""
