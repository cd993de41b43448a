"""The octets of ONE connection: greeting, handshake, frames, commands, heartbeats (RFC 23, 37).

It knows bytes and one peer. It may not know sockets of either kind, patterns, clocks or threads:
``now`` is an argument, octets go in and come out. :class:`zerohop.wire.connection.Connection` is
what the rest of the package uses; all else here are its parts.
"""
