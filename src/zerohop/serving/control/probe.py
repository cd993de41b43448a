"""Finds out what is at the other end of an endpoint, within a time limit.

    name ─► addresses ─► connection ─► its greeting and READY ─► one PING, if it can be asked
      │         │            │               │ silent: a question in HTTP, on a second connection
      ▼         ▼            ▼               ▼
    a Finding, wherever the way ends

What the peer says of itself is read by a plain socket, for the public API tells in words, and only
after several attempts, what a program has to tell apart here: that it can't reach a peer, that the
peer is none of ZeroMQ's, what it is if it does not fit. The PING goes by a DEALER like any other.

**One message is sent at most**: LMCache's PING of the latest releases. Its operations have another
number in each, some of which empty the cache; a name, or a number above a release's last, ends the
thread that answers. So no number is tried after another (see ``lmcache/frames.py``).
"""

from __future__ import annotations

import contextlib
import errno
import os
import queue
import re
import selectors
import socket
import stat
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import zerohop as zmq
from zerohop.serving.arguments import seconds, text
from zerohop.serving.control.answers import PING_UID, read_answer
from zerohop.serving.control.findings import Finding, find, find_unconnected
from zerohop.serving.control.lmcache.frames import ping_request
from zerohop.serving.control.lmcache.releases import LATEST
from zerohop.serving.control.opening import OPENING, READY, REST, Opening

__all__ = ["ping"]

_TCP = re.compile(r"tcp://(?:\[(?P<six>[^\]]+)\]|(?P<host>[^:\[\];*]+)):(?P<port>\d{1,5})")
_HTTP = b"HEAD / HTTP/1.0\r\n\r\n"
_READ = 4096  # octets at a time
_LONGEST = 64 * 1024  # octets of an answer
_AF_UNIX = getattr(socket, "AF_UNIX", None)  # not on every system

_Place: TypeAlias = "tuple[socket.AddressFamily, Any]"  # a family, and an address of it


@dataclass(frozen=True, slots=True)
class _Target:
    """What an endpoint means: a path, or a host and a port."""

    endpoint: str
    path: str = ""
    host: str = ""
    port: int = 0


def ping(endpoint: str, timeout: float = 5.0, *, release: str | None = None) -> Finding:
    """Look who is there, ask for a PING's answer of who can be asked, and say what was found.

    Never raises for what is found. Takes no longer than ``timeout``, but for closing its sockets.

    Args:
        endpoint: ``tcp://host:port``, ``ipc://path`` or ``ipc://@name``.
        timeout: seconds for all of it.
        release: the LMCache that is known to be there, whose PING is sent; ``None``: nobody knows.

    Raises:
        TypeError: the endpoint is no text, or the timeout no number.
        ValueError: there is no such release, or it has no PING; the timeout is not above 0.
    """
    text("endpoint", endpoint)
    release = LATEST if release is None else release
    request = ping_request(PING_UID, release)
    deadline = time.monotonic() + seconds("timeout", timeout, above_zero=True)
    target = _read_endpoint(endpoint)
    if isinstance(target, Finding):
        return target
    places = _find_places(target, deadline)
    if isinstance(places, Finding):
        return places
    opening = Opening(endpoint)
    error: OSError | None = None
    for tried, place in enumerate(places):
        try:
            sock = socket.socket(place[0], socket.SOCK_STREAM)
        except OSError as reason:  # a name has IPv6 addresses, and this machine has no IPv6
            error = reason
            continue
        with sock:
            error = _connect(sock, place, _left(deadline) / (len(places) - tried))
            if error is None:
                found = _meet(sock, place, opening, deadline)
                break
    else:
        return _find_why(target, error)
    return found or _ask(opening, place, request, release, deadline)


def _read_endpoint(endpoint: str) -> _Target | Finding:
    path = endpoint.removeprefix("ipc://")
    if path not in ("", endpoint) and "\0" not in path and _AF_UNIX is not None:
        octets = len(path.encode(errors="surrogateescape"))
        if octets > zmq.IPC_PATH_MAX_LEN:
            return find(
                "path_too_long",
                f"the path has {octets} octets, and sockets have {zmq.IPC_PATH_MAX_LEN} at most",
            )
        return _Target(endpoint, path="\0" + path[1:] if path.startswith("@") else path)
    match = _TCP.fullmatch(endpoint)
    if match and 0 < int(match["port"]) < 65536:
        return _Target(endpoint, host=match["six"] or match["host"], port=int(match["port"]))
    why = "it is no tcp:// or ipc:// endpoint"
    if endpoint.startswith("ipc://"):
        why = "it has no path, or this system has no ipc"
    if endpoint.startswith("tcp://"):
        why = "it has no host, or no port from 1 to 65535"
    return find("bad_endpoint", f"cannot connect to {endpoint!r}: {why}")


def _find_places(target: _Target, deadline: float) -> list[_Place] | Finding:
    """Where it is; names are looked up in a thread, for that can't be given a time limit."""
    if target.path:
        assert _AF_UNIX is not None
        return [(_AF_UNIX, target.path)]
    answers: queue.SimpleQueue[list[_Place] | OSError] = queue.SimpleQueue()

    def look_up() -> None:
        try:
            found = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
        except OSError as error:
            answers.put(error)
        except UnicodeError:
            answers.put(OSError(None, "it is no name of a host"))
        else:
            answers.put([(family, address) for family, _, _, _, address in found])

    thread = threading.Thread(target=look_up, name="zerohop-ping-resolve", daemon=True)
    thread.start()
    try:
        answer = answers.get(timeout=_left(deadline))
    except queue.Empty:
        return find("name_unresolved", f"nobody answered in time what {target.host!r} means")
    thread.join()
    if isinstance(answer, OSError):
        reason = answer.strerror or str(answer)
        return find("name_unresolved", f"cannot resolve {target.host!r}: {reason}")
    return answer


def _connect(sock: socket.socket, place: _Place, seconds: float) -> OSError | None:
    """Connect, and return what is wrong, if anything is."""
    family, address = place
    sock.settimeout(seconds)
    try:
        sock.connect(address)
        if family != _AF_UNIX and sock.getpeername() == sock.getsockname():
            # A port of our own range that connected to itself, for nobody listens there.
            raise ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))
    except OSError as error:
        return error
    return None


def _find_why(target: _Target, error: OSError | None) -> Finding:
    """Why nobody was reached."""
    if target.path and not target.path.startswith("\0"):
        with contextlib.suppress(OSError):
            if not stat.S_ISSOCK(Path(target.path).stat().st_mode):
                return find("not_a_socket", f"{target.path} is there, and is no socket")
    return find_unconnected(error or OSError("it has no address"), target.endpoint)


def _meet(sock: socket.socket, place: _Place, opening: Opening, deadline: float) -> Finding | None:
    """Hear what the peer is, and if it says nothing, ask it in HTTP in the second half."""
    found = _hear(sock, opening, time.monotonic() + _left(deadline) / 2)
    if found is None or opening.octets:
        return found
    silent = sock if found.code == "silent" else None
    stranger = _hear_http(silent, place, opening.where, deadline)
    if stranger is not None or silent is None:
        return stranger or found
    return _hear(sock, opening, deadline, say=b"")  # it may have begun to speak meanwhile


def _hear(
    sock: socket.socket, opening: Opening, deadline: float, say: bytes = OPENING
) -> Finding | None:
    """Have the peer say what it is; ``None``: it is one that can be asked."""
    begun = time.monotonic()
    span = _left(deadline)
    try:
        sock.settimeout(span)
        sock.sendall(say)
        # A peer may wait for the rest of our greeting, or for our READY, before it says more.
        for more, share in ((REST, 0.4), (READY, 0.8), (b"", 1.0)):
            until = begun + span * share  # also where there is always one more octet
            while not (opening.greeted and more == REST) and time.monotonic() < until:
                sock.settimeout(_left(until))
                try:
                    data = sock.recv(_READ)
                except TimeoutError:
                    break
                if not data:
                    raise ConnectionResetError
                found = opening.receive_data(data)
                if found is not None or opening.socket_type:
                    return found
            if opening.octets:
                sock.settimeout(_left(deadline))
                sock.sendall(more)
    except OSError:
        if opening.octets:
            return opening.end("and then closed the connection")
        return find("hung_up", f"{opening.where} took the connection and closed it without a word")
    if opening.octets:
        return opening.end("and then said nothing more")
    return find("silent", f"{opening.where} took the connection and says nothing")


def _hear_http(
    silent: socket.socket | None, place: _Place, endpoint: str, deadline: float
) -> Finding | None:
    """Ask a stranger in HTTP, which most of those answer that wait to be spoken to.

    Args:
        silent: the first connection, if it is open; where something comes on it, this ends.
        place: where the stranger is.
        endpoint: as it is shown.
        deadline: when this ends at the latest.

    Returns:
        What the stranger is, if it has said that.
    """
    family, address = place
    opening = Opening(endpoint)
    found: Finding | None = None
    with (
        contextlib.suppress(OSError),
        socket.socket(family, socket.SOCK_STREAM) as asking,
        selectors.DefaultSelector() as selector,
    ):
        asking.settimeout(_left(deadline))
        asking.connect(address)
        asking.sendall(_HTTP)
        selector.register(asking, selectors.EVENT_READ)
        if silent is not None:
            selector.register(silent, selectors.EVENT_READ)
        while found is None and time.monotonic() < deadline:
            ready = [key.fileobj for key, _ in selector.select(_left(deadline))]
            if ready != [asking]:
                break
            data = asking.recv(_READ)
            if not data:
                break
            found = opening.receive_data(data)
    if found is None and opening.octets:
        found = opening.end("and then said nothing more")
    return found if found is not None and found.code == "not_zeromq" else None


def _ask(
    opening: Opening, place: _Place, request: list[bytes], release: str, deadline: float
) -> Finding:
    """Send the one message, and read what comes back."""
    family, address = place
    where, kind = opening.where, opening.socket_type
    if family != _AF_UNIX:  # it was reached there; a name might mean another place now
        host = f"[{address[0]}]" if family == socket.AF_INET6 else address[0]
        endpoint = f"tcp://{host}:{address[1]}"
    else:
        endpoint = where
    begun = time.monotonic()
    with zmq.Context() as context, context.socket(zmq.DEALER) as dealer:
        dealer.linger, dealer.maxmsgsize = 0, _LONGEST
        dealer.ipv6 = family == socket.AF_INET6
        dealer.connect(endpoint)
        dealer.send_multipart([b"", *request] if kind == "REP" else request)
        if dealer.poll(_left(deadline) * 1000):
            return read_answer(where, kind, request, dealer.recv_multipart(), release)
        trouble = dealer.last_error(endpoint)
    lost = f"; the connection was lost: {trouble}" if trouble else ""
    return find(
        "no_ping_handler",
        f"{where} is a {kind} that left a PING without an answer "
        f"for {time.monotonic() - begun:.1f} s{lost}",
    )


def _left(deadline: float) -> float:
    """Seconds that are left; never none, for to a socket that would mean without limit."""
    return max(deadline - time.monotonic(), 0.001)
