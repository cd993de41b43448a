"""Z85, octets as printable text (RFC 32): pyzmq's ``zmq.utils.z85``."""

from zerohop.wire.z85 import decode, encode

__all__ = ["decode", "encode"]
