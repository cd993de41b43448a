"""Security mechanisms: who may talk, and how frames are wrapped (RFC 24-26, 37).

Each knows one handshake and one form of traffic frames; it fills ``zerohop.wire.mechanism``. It may
not know sockets, clocks or randomness: keys and nonces are given to it.
"""
