"""Blocking sockets: how a thread waits, and who does the I/O meanwhile.

Knows ``zerohop.api`` (what both kinds of Socket share) and ``zerohop.io``, for which its reactor
plays the part of an asyncio loop. Does not know ``zerohop.asyncio``, patterns or octets: a rule
that both kinds of Socket must obey belongs below.
"""
