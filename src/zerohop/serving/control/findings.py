"""What ``zerohop ping`` can find at an endpoint, and what to do about it.

A finding has a short code that stays the same in later versions, so that programs may compare it.
Those of :data:`ANSWERED` mean that a PING was answered; all others say why none was.

    bad_endpoint name_unresolved unreachable no_listener          nobody was reached
    path_missing path_too_long not_a_socket no_permission         nobody was reached, by ipc
    silent hung_up not_zeromq old_zeromq                          something else than ZMTP 3
    no_handshake other_mechanism refused other_socket_type        ZMTP 3, but nobody to ask
    no_ping_handler unknown_answer unwell                         asked, and no PING's answer
    answered_control answered_lmcache                             answered
"""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

__all__ = [
    "ADVICE",
    "ANSWERED",
    "PINGABLE",
    "Finding",
    "find",
    "find_other_type",
    "find_unconnected",
]

ANSWERED: Final = frozenset({"answered_control", "answered_lmcache"})
PINGABLE: Final = frozenset({"ROUTER", "REP"})
"""The types of sockets that may answer whoever asks."""

ADVICE: Final = {
    "answered_control": "nothing: it is there and answers",
    "answered_lmcache": "nothing: it is there and answers",
    "bad_endpoint": "give tcp://HOST:PORT or ipc://PATH, as the server's users connect to it",
    "name_unresolved": "check the spelling and the DNS of this machine, or give the address",
    "unreachable": "check the address, the route to it, and the firewalls between",
    "no_listener": "start the server, or look which port its log says that it bound; "
    "a server that bound 127.0.0.1 is not reached from other machines",
    "path_missing": "start the server, or look which path its log says that it bound; "
    "containers each have their own files",
    "path_too_long": "bind and connect to a shorter path; a digest of the long one will do",
    "not_a_socket": "look which path the server's log says that it bound",
    "no_permission": "run this as the server's user, or give this user the right to write there",
    "silent": "look whether the process that has this port is stopped or stuck (py-spy dump), "
    "and whether it is the right port",
    "hung_up": "look in the log of the process that has this port; "
    "a proxy without a server behind it does this, too",
    "not_zeromq": "look which program has this port (ss -ltnp), and which port the server bound",
    "old_zeromq": "upgrade the peer to libzmq 4.0 (2013) or later",
    "no_handshake": "look whether the server is stuck, or waits for an authenticator (ZAP) "
    "that does not run",
    "other_mechanism": "connect with the keys or the password that the server wants; "
    "this command has none, and speaks NULL",
    "refused": "look in the log of the server's authenticator (ZAP) why it refuses this address",
    "other_socket_type": "ask at the server's endpoint for requests",
    "no_ping_handler": "look in its log, where it may complain of an unknown operation; "
    "give the server a PING handler, or a version that has one; "
    "if it has one, it is stuck, or speaks another protocol; "
    "LMCache before 0.5.3 has a PING of another number: see --lmcache",
    "unknown_answer": "look whether this is the endpoint that you mean: it speaks another protocol",
    "unwell": "look in its log",
}

_ADVICE_BY_TYPE = {
    "PUB": "read what it publishes with a SUB socket; KV events with `zerohop kv tail`",
    "XPUB": "read what it publishes with a SUB socket; KV events with `zerohop kv tail`",
    "PULL": "this takes messages and sends none: PUSH to it, and ask at another endpoint",
    "SUB": "this takes messages and sends none: PUB to it, and ask at another endpoint",
    "XSUB": "this takes messages and sends none: PUB to it, and ask at another endpoint",
    "PUSH": "this sends messages and takes none: PULL from it, and ask at another endpoint",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """What is at the other end.

    Attributes:
        code: which kind of finding, the same in later versions; ``docs/howto/ping.md`` lists them.
        detail: what was found, with its values, on one line.
        advice: what to do about it, on one line.
    """

    code: str
    detail: str
    advice: str

    @property
    def answered(self) -> bool:
        """Whether a PING was answered."""
        return self.code in ANSWERED


def find(code: str, detail: str, advice: str | None = None) -> Finding:
    """Make a finding, with the usual advice unless there is a better one."""
    return Finding(code, detail, ADVICE[code] if advice is None else advice)


def find_unconnected(error: OSError, where: str) -> Finding:
    """Return why a connection could not be made.

    Args:
        error: what ``connect`` raised.
        where: the address or path, as it is shown.
    """
    code = "unreachable"
    match error.errno:
        case errno.ECONNREFUSED:
            code = "no_listener"
        case errno.ENOENT | errno.ENOTDIR:
            code = "path_missing"
        case errno.EACCES | errno.EPERM:
            code = "no_permission"
        case errno.EPROTOTYPE | errno.ENOTSOCK:
            code = "not_a_socket"
        case errno.EAGAIN:  # of ipc alone
            return find("silent", f"{where} has a listener that accepts no more connections")
    if isinstance(error, TimeoutError):
        lost = "packets are lost on the way, or its queue of connections is full"
        return find(code, f"{where} did not answer in time: {lost}")
    reason = os.strerror(error.errno) if error.errno else str(error)
    return find(code, f"cannot connect to {where}: {reason}")


def find_other_type(socket_type: str, where: str) -> Finding:
    """Return what to say of a socket that nobody can ask anything."""
    article = "an" if socket_type.startswith("X") else "a"
    return find(
        "other_socket_type",
        f"{where} is {article} {socket_type} socket, and PING needs a ROUTER or a REP",
        _ADVICE_BY_TYPE.get(socket_type),
    )
