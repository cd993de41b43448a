"""What both kinds of Socket share: everything that does not wait.

Knows what the user gives and gets (parts, frames, options by name, statistics, pyzmq's error texts)
and hands it to ``zerohop.io``. Does not know how to wait: that is all that ``zerohop.sync`` and
``zerohop.asyncio`` add, and neither is known here.

    tracker      MessageTracker: is the caller's buffer free again?
    frame        Frame: one part, with what is known of it
    parts        what the user gives -> parts and messages
    receive      parts and messages -> what the user gets
    values       text, JSON, pickles: send_string, recv_json, ...
    options      options by method and by attribute
    endpoints    bind, connect, and what undoes them
    statistics   SocketStats and PeerInfo
    insight      stats(), peers(), and a word about the classic mistakes
    monitor      what happens to a socket's connections, as pyzmq's PAIR; records, to iterate over
    socket       SocketBase: all of this, from its beginning to its end
    fronts       a socket and its shadows
    context      ContextBase; context_options, and what a fork does to it: fork
"""
