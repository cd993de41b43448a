"""What child processes of the fork tests do; in a module, as ``spawn`` and ``forkserver`` ask."""

import os

import zerohop as zmq

PATIENCE_MS = 8000


def context():
    """A context of the child's own, whose calls do not wait for ever."""
    made = zmq.Context()
    made.linger = PATIENCE_MS
    made.rcvtimeo = made.sndtimeo = PATIENCE_MS
    return made


def talk(endpoint, name, count):
    """Ask a ROUTER or REP of another process ``count`` times, and see that the answer is right."""
    with context() as own, own.socket(zmq.REQ) as req:
        req.connect(endpoint)
        for n in range(count):
            question = b"%d asks %d" % (name, n)
            req.send(question)
            assert req.recv() == b"re " + question


def talk_to_oneself():
    """Sockets of a child's own context reach each other over every transport."""
    with context() as own:
        for endpoint in ("tcp://127.0.0.1:*", "inproc://own", f"ipc://@own-{os.getpid()}"):
            with own.socket(zmq.PAIR) as one, own.socket(zmq.PAIR) as other:
                one.bind(endpoint)
                other.connect(one.last_endpoint.decode())
                other.send(b"x" * 100_000)
                assert one.recv() == b"x" * 100_000


_shared = None


def begin(endpoint):
    """Initializer of a pool's workers: each has a context, kept for all its jobs."""
    global _shared
    _shared = zmq.Context.instance().socket(zmq.REQ)
    _shared.linger = 0
    _shared.rcvtimeo = _shared.sndtimeo = PATIENCE_MS
    _shared.connect(endpoint)


def job(number):
    """One of a pool's jobs: what the parent says to a number."""
    _shared.send(b"%d" % number)
    return _shared.recv()
