"""A whole socket without I/O: options, endpoints, connections and patterns put together.

Knows the wire and the patterns, and is the only place where they meet. Decides everything that can
be decided without I/O: what an address means, when to try again, what a monitor sees, which link
has bytes to send. May not open, read, wait, log, or ask for the time or a random number: ``now``
(seconds, monotonic) and randomness are arguments, and what is to be done is left in lists that the
driver takes. Single-threaded; locks belong to drivers.

    socket       what the application asks of one socket, and how the rest works together
    links        connections over the wire, from their opening to their end
    link         what is kept of each connection, connect() and bind()
    dialers      who is dialled, and when again (reconnect: how long until then)
    peers        the pattern's peers, and where the notes of their pipes go
    output       from a pipe to octets, and back when the connection breaks
    timers       what is due when
    inproc       connections within one Context (context: what its sockets share)
    records      what monitors and the log are told (monitor: the records themselves)
    endpoint     addresses
    options      option_table, option_shapes, option_reference: every option, once
"""
