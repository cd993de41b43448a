"""Passing messages between two sockets, both ways, until the context ends (``zmq_proxy(3)``).

    frontend  ──►  backend     up to 1000 messages at a time, then the other direction's turn
              ◄──

A message is taken from one side only when the other can send: what nobody can take stays in the
queue it is in, and its sender feels it. A direction whose far side is full waits for that, and not
for its near side, which would be ready all the time.
"""

from __future__ import annotations

import logging
import struct
from typing import TYPE_CHECKING, Any

import zerohop as zmq

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["device", "monitored_queue", "proxy", "proxy_steerable"]

_BURST = 1000  # messages: libzmq's; both directions get their turn however busy one is
_STATISTICS = struct.Struct("=Q")

_log = logging.getLogger("zerohop")


class _Direction:
    """One way through a proxy.

    Args:
        source: where messages come from.
        target: where they go; may be the source itself, which then answers itself.
        note: told of each message before it is sent; or None.
        change: what is sent for each message; None: the message.

    Attributes:
        blocked: there may be messages, and the target cannot send them now.
        parts, octets: passed on so far.
    """

    def __init__(
        self,
        source: zmq.Socket,
        target: zmq.Socket,
        note: Callable[[list[bytes]], object] | None = None,
        change: Callable[[list[bytes]], list[bytes]] | None = None,
    ) -> None:
        self.source = source
        self.target = target
        self.blocked = False
        self.parts = 0
        self.octets = 0
        self._note = note
        self._change = change

    def waits_for(self) -> tuple[zmq.Socket, int]:
        """What has to happen before :meth:`run` is worth while."""
        if self.blocked:
            return self.target, zmq.POLLOUT
        return self.source, zmq.POLLIN

    def run(self) -> None:
        """Pass on what is there, at most one burst.

        Raises:
            ContextTerminated: the context is being ended.
            ZMQError: a socket was closed, or cannot send this message.
        """
        source, target = self.source, self.target
        itself = source is target  # a REP can send only after it has received
        self.blocked = False
        for _ in range(_BURST):
            if not (itself or target.poll(0, zmq.POLLOUT)):
                self.blocked = True
                return
            try:
                message = source.recv_multipart(zmq.DONTWAIT)
            except zmq.Again:
                return
            if self._change is not None:
                message = self._change(message)
            if self._note is not None:
                self._note(message)
            if len(message) == 1:  # the most common, and the shortest way
                target.send(message[0])
            else:
                target.send_multipart(message)
            self.parts += len(message)
            self.octets += sum(map(len, message))


def proxy(frontend: zmq.Socket, backend: zmq.Socket, capture: zmq.Socket | None = None) -> None:
    """Pass messages between two sockets until their context ends; blocks so long.

    ROUTER and DEALER make a queue of requests, XSUB and XPUB a forwarder of subscriptions, PULL
    and PUSH a streamer of work. The same socket at both ends sends everything back.

    Args:
        frontend: bound or connected; clients are usually here.
        backend: likewise; workers are usually here.
        capture: gets a copy of every message of both directions (PUB, PUSH, DEALER, PAIR).

    Raises:
        ContextTerminated: always, in the end.
        ZMQError: a socket was closed, or refuses a message (a ROUTER with ROUTER_MANDATORY).
        TypeError: not blocking sockets.
    """
    _check(frontend=frontend, backend=backend)
    if capture is not None:
        _check(capture=capture)
    directions = _directions(frontend, backend, None if capture is None else capture.send_multipart)
    while True:
        _turn(directions)


def device(device_type: int, frontend: zmq.Socket, backend: zmq.Socket) -> None:
    """As :func:`proxy`; ZeroMQ 2's name for it.

    Args:
        device_type: QUEUE, FORWARDER or STREAMER; makes no difference.
        frontend: as ``proxy``.
        backend: as ``proxy``.
    """
    zmq.DeviceType(device_type)
    proxy(frontend, backend)


def proxy_steerable(
    frontend: zmq.Socket,
    backend: zmq.Socket,
    capture: zmq.Socket | None = None,
    control: zmq.Socket | None = None,
) -> None:
    """As :func:`proxy`, and obeys commands (``zmq_proxy_steerable(3)``).

    Commands are messages of one part: ``PAUSE``; ``RESUME``; ``TERMINATE`` returns from the call;
    ``STATISTICS`` is answered with eight parts, each a number of 8 octets in native order::

        frontend received: parts, octets     frontend sent: parts, octets
        backend received:  parts, octets     backend sent:  parts, octets

    A control socket of type REP gets an empty answer to every other command.

    Args:
        frontend: as ``proxy``.
        backend: as ``proxy``.
        capture: as ``proxy``.
        control: PAIR, PULL, SUB or REP; None: as ``proxy``.

    Raises:
        ContextTerminated, ZMQError, TypeError: as ``proxy``.
    """
    if control is None:
        proxy(frontend, backend, capture)
        return
    _check(frontend=frontend, backend=backend, control=control)
    if capture is not None:
        _check(capture=capture)
    directions = _directions(frontend, backend, None if capture is None else capture.send_multipart)
    paused = False
    while True:
        commanded = _turn([] if paused else directions, control)
        if not commanded:
            continue
        match control.recv_multipart():
            case [b"PAUSE"]:
                paused = True
            case [b"RESUME"]:
                paused = False
            case [b"TERMINATE"]:
                _answer(control)
                return
            case [b"STATISTICS"]:
                control.send_multipart(_statistics(directions))
                continue
            case command:
                _log.warning("proxy_steerable: no such command: %.64r", command)
        _answer(control)


def monitored_queue(
    in_socket: zmq.Socket,
    out_socket: zmq.Socket,
    mon_socket: zmq.Socket,
    in_prefix: bytes = b"in",
    out_prefix: bytes = b"out",
) -> None:
    """As :func:`proxy`, with a prefix to each captured message that says which way it goes.

    Between two ROUTERs the first two parts of each message change places: the sender's routing id
    and the one it addresses.

    Args:
        in_socket: the frontend.
        out_socket: the backend.
        mon_socket: the capture socket (PUB).
        in_prefix: first part of what is captured on its way from ``in_socket``.
        out_prefix: likewise from ``out_socket``.

    Raises:
        ContextTerminated, ZMQError, TypeError: as ``proxy``.
    """
    _check(in_socket=in_socket, out_socket=out_socket, mon_socket=mon_socket)
    send = mon_socket.send_multipart
    change = _swap if in_socket.type == out_socket.type == zmq.ROUTER else None
    directions = [
        _Direction(in_socket, out_socket, lambda message: send([in_prefix, *message]), change)
    ]
    if in_socket is not out_socket:
        directions.append(
            _Direction(out_socket, in_socket, lambda message: send([out_prefix, *message]), change)
        )
    while True:
        _turn(directions)


def _swap(message: list[bytes]) -> list[bytes]:
    return [*message[1::-1], *message[2:]]


def _check(**sockets: Any) -> None:
    for name, socket in sockets.items():
        if not isinstance(socket, zmq.Socket):
            raise TypeError(
                f"Argument {name!r} has incorrect type (expected {zmq.Socket.__name__}, "
                f"got {type(socket).__name__})"
            )


def _directions(
    frontend: zmq.Socket, backend: zmq.Socket, note: Callable[[list[bytes]], object] | None
) -> list[_Direction]:
    forth = _Direction(frontend, backend, note)
    return [forth] if frontend is backend else [forth, _Direction(backend, frontend, note)]


def _turn(directions: list[_Direction], control: zmq.Socket | None = None) -> bool:
    """Wait until something can be done, do it; return whether there is a command."""
    wanted: dict[zmq.Socket, int] = {} if control is None else {control: zmq.POLLIN}
    for direction in directions:
        socket, event = direction.waits_for()
        wanted[socket] = wanted.get(socket, 0) | event
    ready = dict(zmq.zmq_poll(list(wanted.items())))
    for direction in directions:
        socket, event = direction.waits_for()
        if ready.get(socket, 0) & event:
            direction.run()
    return control is not None and bool(ready.get(control, 0) & zmq.POLLIN)


def _answer(control: zmq.Socket) -> None:
    if control.type == zmq.REP:
        control.send(b"")


def _statistics(directions: list[_Direction]) -> list[bytes]:
    forth, back = directions[0], directions[-1]
    numbers = (
        *(forth.parts, forth.octets, back.parts, back.octets),
        *(back.parts, back.octets, forth.parts, forth.octets),
    )
    return [_STATISTICS.pack(number) for number in numbers]
