"""Blocking sockets: how a thread waits, and who does the I/O meanwhile.

Knows ``zerohop.api`` (what both kinds of Socket share) and ``zerohop.io``, for which its reactor
plays the part of an asyncio loop. Does not know ``zerohop.asyncio``, patterns or octets: a rule
that both kinds of Socket must obey belongs below.

    socket         Socket: pyzmq's calls that move messages
    wait_methods   its calls that wait for something else: readiness, peers, subscribers
    context        Context: how it ends, and what the interpreter's exit waits for
    poller         Poller, select, zmq_poll; system_items: the descriptors among what they wait for
    front          between a socket and its driver: lanes without the lock, and the ways past them
    outflow        when what was sent is written
    waiters        who waits in a socket, for what, until when
    reactor        the loop: the seat, and who drives
    seat           how callers and the helper thread sleep and are woken
    callbacks      what the loop calls: soon, at a time, when a descriptor is ready
    readiness      epoll, or what the system has instead
"""
