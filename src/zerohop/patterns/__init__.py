"""Socket semantics: which peer gets a message, whose message comes next, and in what envelope.

Knows peers and the two pipes of each. May not know the wire's bytes, connections, clocks or
threads; so an ``inproc`` connection is simply two patterns that share their pipes.

    pipe           the queue between a socket and one peer
    pattern        what every socket type answers, and what it is told
    routing        fair queue, load balancer, fan-out: what the types are put together from
    subscriptions  which topics somebody wants
    pair pipeline dealer router reqrep publish subscribe stream   the types

``make_pattern`` is the one place where a socket type is turned into its semantics.
"""
