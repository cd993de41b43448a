"""LMCache's two protocols: its MP server's (requests by number) and its controller's (maps).

Knows: their frames, in each release. ``releases``, ``frames``, ``operations``, ``messages`` and
``table`` are pure; ``server``, ``client`` and ``controller`` act.
"""
