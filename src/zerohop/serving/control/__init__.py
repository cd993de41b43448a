"""The control channel: who is here, what they are told to do, and how both sides agree again.

Knows: registration, heartbeats, commands, re-sync, and protocols whose operations all have a
handler. Does not know: engines or caches; what is registered and re-synced is the user's.
The servers, the clients and ``probe``, which says what is at an endpoint, act; all else is pure.
``lmcache`` speaks LMCache's protocols. The page ``docs/explanation/serving-control.md`` has the
picture.
"""
