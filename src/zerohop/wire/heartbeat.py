"""Is the peer still there? PING at intervals, and whatever octets come back count as an answer.

Source: RFC 37, "Connection Heartbeating"; ZMQ_HEARTBEAT_IVL, _TTL and _TIMEOUT. A machine over
``now`` (seconds, monotonic), with two clocks that run from the handshake on:

    ours      a PING every ``interval``; the first one that is followed by silence starts
              ``timeout``, at whose end the peer is given up
    theirs    a PING with a TTL says: give me up after so long a silence

Any octet stops both, where libzmq waits for a whole frame: a message that takes longer than the
timeout to arrive does not end its own connection. The machine is told the time of the last octet
when it is asked for a decision, so that receiving costs one assignment.
"""

from __future__ import annotations

from math import inf

from zerohop.constants import Errno
from zerohop.errors import ProtocolError
from zerohop.value import Value

LARGEST_TTL_DS = 655
"""Never send more: libzmq multiplies by 100 in 16 bits, and 66 s would end as 0.5 s."""


class HeartbeatOptions(Value):
    """What the application wants of heartbeats.

    Attributes:
        interval: seconds between two PINGs (ZMQ_HEARTBEAT_IVL); None: send none.
        ttl_ds: tenths of seconds after which the peer should give us up (ZMQ_HEARTBEAT_TTL);
            0: say nothing about it.
        timeout: seconds of silence after a PING until we give the peer up
            (ZMQ_HEARTBEAT_TIMEOUT; libzmq's default is the interval); None: never.
    """

    interval: float | None = None
    ttl_ds: int = 0
    timeout: float | None = None

    @property
    def ttl_on_the_wire(self) -> int:
        """The TTL that our PINGs carry.

        At most :data:`LARGEST_TTL_DS`; and none at all if the peer would then give us up between
        two PINGs that are on time.
        """
        if self.ttl_ds <= LARGEST_TTL_DS:
            return self.ttl_ds
        return LARGEST_TTL_DS if (self.interval or 0) * 10 < LARGEST_TTL_DS else 0


class Heartbeat:
    """The two clocks of one connection, from its handshake on.

    Args:
        options: ours.
        now: when the handshake was complete.
    """

    __slots__ = ("_interval", "_next_ping", "_peer_ttl", "_ping_at", "_timeout")

    def __init__(self, options: HeartbeatOptions, now: float) -> None:
        self._interval = options.interval or inf
        self._timeout = options.timeout or inf
        self._next_ping = now + self._interval
        self._ping_at = -inf  # when the first PING went out that nothing has come after yet
        self._peer_ttl = 0.0

    def ping_received(self, ttl_ds: int) -> None:
        """Take the TTL of the peer's latest PING; 0 ends the one before."""
        self._peer_ttl = ttl_ds / 10

    def next_deadline(self, last_heard: float) -> float:
        """Return when :meth:`is_ping_due` or :meth:`check` wants to be asked, or ``inf``."""
        return min(self._next_ping, self._silence_ends(last_heard))

    def is_ping_due(self, last_heard: float, now: float) -> bool:
        """Say whether a PING has to be sent now; it then counts as sent."""
        if now < self._next_ping:
            return False
        # Not from the deadline: after a suspended laptop or a long pause one PING is enough.
        self._next_ping = now + self._interval
        if last_heard >= self._ping_at:
            self._ping_at = now
        return True

    def check(self, last_heard: float, now: float) -> None:
        """Give the peer up if it was silent for too long.

        Raises:
            ProtocolError: with errno ETIMEDOUT. The connection is finished.
        """
        if now < self._silence_ends(last_heard):
            return
        error = ProtocolError(
            f"peer was silent for {now - last_heard:.1f} s",
            source="RFC 37, Connection Heartbeating",
            hint="HEARTBEAT_TIMEOUT, or the peer's HEARTBEAT_TTL, says how long it may be",
        )
        error.errno = Errno.ETIMEDOUT
        raise error

    def _silence_ends(self, last_heard: float) -> float:
        ends = last_heard + self._peer_ttl if self._peer_ttl else inf
        # At the very instant of the PING counts as after it: clocks can be coarse (15 ms on
        # Windows), and ending a live connection is worse than finding a dead one a PING later.
        if last_heard < self._ping_at:
            ends = min(ends, self._ping_at + self._timeout)
        return ends
