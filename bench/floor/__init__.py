"""The floor: what the bytes and the calls cost in Python, without being a ZeroMQ at all.

Plain sockets that carry ZMTP's frames (RFC 37, "Framing") between two ends that need no handshake,
with the few names that the cases use. No routing, no high-water mark, no reconnect, no lock, one
peer. What a real library adds to this is what it takes longer.
"""
