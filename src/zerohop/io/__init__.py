"""I/O for both drivers: OS sockets, listeners, dialling and names over a loop.

Knows file descriptors and time, and turns what the pure core answers into system calls. Knows no
pattern, no octets of the wire and no way of waiting: who waits for a message, and how, is the
business of ``zerohop.asyncio`` and ``zerohop.sync``, which hand in their loop
(:class:`zerohop.io.loop.Loop`).
"""
