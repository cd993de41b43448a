"""KV events: which worker caches which blocks, told over PUB and repaired by replay.

Knows: the events and their forms on the wire, sequence numbers, what a replay is. ``events``,
``encode``, ``decode``, ``ring``, ``blocks``, ``replies``, ``checks``, ``order`` and ``follower``
are pure; the publisher, the subscribers and the recordings act. The page
``docs/explanation/serving-kv.md`` has the picture.
"""
