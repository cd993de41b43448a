"""The simplest kind of Socket: its verbs never wait, so testing what is shared needs no loop."""

from zerohop.api.context import ContextBase
from zerohop.api.parts import check_parts, make_message, make_part
from zerohop.api.receive import as_octets, as_octets_list
from zerohop.api.socket import SocketBase
from zerohop.constants import Flag


class PlainFront:
    """Counts what the driver tells."""

    def __init__(self):
        self.calls = 0

    def activity(self):
        self.calls += 1
        return False

    delivered = activity

    def end(self):
        """Nobody waits."""

    def mend(self):
        """Nothing was to be called back."""


class PlainSocket(SocketBase):
    def _start(self):
        self._front = self._driver.front = PlainFront()
        self._ended = False

    def _on_close(self):
        self._ended = True

    def send(self, data, flags=0, copy=True, track=False):
        part, tracker = make_part(data, copy=copy, track=track, copy_threshold=self.copy_threshold)
        with self._driver.lock:
            if flags & Flag.SNDMORE:
                self._core.send_part(part)
            else:
                self._core.send(part)
            self._driver.pump()
        return tracker

    def send_multipart(self, msg_parts, flags=0, copy=True, track=False):
        message, tracker = make_message(
            check_parts(msg_parts), copy=copy, track=track, copy_threshold=self.copy_threshold
        )
        with self._driver.lock:
            self._core.send(message)
            self._driver.pump()
        return tracker

    def _receive(self, flags, timeout, convert, *, part):
        with self._driver.lock:
            received = self._core.receive_part() if part else self._core.receive()
            self._driver.pump()
        return convert(received)

    def recv(self, flags=0):
        return self._receive(flags, None, as_octets, part=True)

    def recv_multipart(self, flags=0):
        return self._receive(flags, None, as_octets_list, part=False)


class PlainContext(ContextBase):
    _socket_class = PlainSocket


class KeepingContext(PlainContext):
    """Holds its sockets until it is destroyed, as the variables of a program would."""

    def _start(self):
        self._kept = []

    def _add_socket(self, socket):
        super()._add_socket(socket)
        self._kept.append(socket)


def drop_what_lingers(context):
    """What the end of LINGER does; no loop is here that would tell of it."""
    with context._io.lock:
        for driver in list(context._io.drivers):
            driver.core.links.end_close()
            driver.pump()
