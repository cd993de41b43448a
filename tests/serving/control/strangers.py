"""Listeners of all kinds for the tests of the probe: scripted octets, and real sockets."""

import contextlib
import socket
import threading
from pathlib import Path

import zmq as pyzmq

import zerohop

PATIENCE = 10.0  # seconds that a listener waits for whoever it is for


class Stranger:
    """A TCP or ipc listener that does to each connection what a script says, in threads.

    Args:
        script: called with each connection, which is closed after it.
        path: of an ipc endpoint; else a port of the loopback.
    """

    def __init__(self, script, path=None):
        self._script = script
        if path is None:
            self._listener = socket.create_server(("127.0.0.1", 0))
            self.endpoint = f"tcp://127.0.0.1:{self._listener.getsockname()[1]}"
        else:
            self._listener = socket.socket(socket.AF_UNIX)
            self._listener.bind(str(path))
            self._listener.listen()
            self.endpoint = f"ipc://{path}"
        self._is_over = False
        self._threads = []
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self):
        self._thread.start()
        return self.endpoint

    def __exit__(self, *_):
        self._is_over = True
        with socket.socket(self._listener.family) as waking:
            waking.connect(self._listener.getsockname())
            self._thread.join()
        self._listener.close()
        for thread in self._threads:
            thread.join()

    def _serve(self):
        while True:
            connection, _ = self._listener.accept()
            if self._is_over:
                connection.close()
                return
            self._threads.append(threading.Thread(target=self._meet, args=[connection]))
            self._threads[-1].start()

    def _meet(self, connection):
        with connection, contextlib.suppress(OSError):
            connection.settimeout(PATIENCE)
            self._script(connection)


def saying(*pieces):
    """A script: say all of it at once, and listen until the other end has enough."""

    def script(connection):
        connection.sendall(b"".join(pieces))
        until_closed(connection)

    return script


def until_closed(connection):
    """Take whatever comes."""
    while connection.recv(4096):
        pass


def hang_up(connection):
    """A script: read a little and close."""
    connection.recv(1)


def http_that_waits_for_a_line(connection):
    """A script: like servers that read a whole line before they complain."""
    heard = b""
    while not heard.endswith(b"\r\n\r\n"):
        data = connection.recv(4096)
        if not data:
            return
        heard += data
    connection.sendall(b"HTTP/1.1 404 Not Found\r\nServer: uvicorn\r\n\r\n")


LIBRARIES = {"zerohop": zerohop, "pyzmq": pyzmq}


@contextlib.contextmanager
def bound(library, kind, endpoint="tcp://127.0.0.1:*", **options):
    """A socket that nobody reads, and where it is."""
    zmq = LIBRARIES[library]
    with zmq.Context() as context, context.socket(getattr(zmq, kind)) as it:
        it.linger = 0
        for name, value in options.items():
            setattr(it, name, value)
        it.bind(endpoint)
        yield it.last_endpoint.decode()
    if endpoint.startswith("ipc:///"):  # libzmq leaves the file
        Path(endpoint.removeprefix("ipc://")).unlink(missing_ok=True)


class Server:
    """A ROUTER or REP with a thread that answers each request.

    Args:
        answer: gets the frames after the routing id and gives those of the answer; ``None``: none.
        library, kind: of its socket.

    Attributes:
        heard: all requests so far.
    """

    def __init__(self, answer, *, library="pyzmq", kind="ROUTER"):
        zmq = LIBRARIES[library]
        self.heard = []
        self._answer = answer
        self._context = zmq.Context()
        self._again = zmq.Again
        self._is_router = kind == "ROUTER"
        self._socket = self._context.socket(getattr(zmq, kind))
        self._socket.linger, self._socket.rcvtimeo = 0, 20
        self._socket.bind("tcp://127.0.0.1:*")
        self.endpoint = self._socket.last_endpoint.decode()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()
        self._socket.close()
        self._context.term()

    def _serve(self):
        while not self._over.is_set():
            try:
                frames = self._socket.recv_multipart()
            except self._again:
                continue
            routing = [frames.pop(0)] if self._is_router else []
            self.heard.append(frames)
            answer = self._answer(frames)
            if answer is not None:
                self._socket.send_multipart([*routing, *answer])
