"""A whole socket without I/O: options, endpoints, connections and patterns put together.

Knows the wire and the patterns, and is the only place where they meet. Decides everything that can
be decided without I/O: what an address means, when to try again, what a monitor sees, which link
has bytes to send. May not open, read, wait, log, or ask for the time or a random number: ``now``
(seconds, monotonic) and randomness are arguments, and what is to be done is left in lists that the
driver takes. Single-threaded; locks belong to drivers.
"""
