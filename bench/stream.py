"""Numbered messages: made once, sent in passes, each compared on arrival.

Building a message for each send would measure the generator, so a stream repeats one *pass* of
distinct messages. Message *i* of a pass begins with *i* (8 octets, big-endian) or with its topic;
what follows is random, and different for each *i*. The receiver walks through the same pass and
compares every message in full with the one that is due: a wrong, lost, repeated or reordered
message is seen at once. A fault that is a whole number of passes long would look right, so the last
message carries the number of messages sent, and the receiver's own count must agree.

Three markers travel in the stream, where order keeps them honest:

    bench/probe        PUB only: "has the subscription arrived?"; ignored afterwards
    bench/start        the warm-up is over; the receiver's clock starts when it arrives
    bench/end <count>  that was all: <count> messages, warm-up included
"""

import random
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from operator import length_hint
from typing import Any

PROBE = b"bench/probe"
START = b"bench/start"
END = b"bench/end "
MARKER = b"bench/"

# A frame, or the list of frames of one multipart message.
Message = bytes | list[bytes]

# Passes are short enough for a clock read between two of them (1024 messages take 1-20 ms), and
# small enough to stay in a shared cache, as a real sender's fresh message would.
PASS_MESSAGES = 1024
PASS_OCTETS = 4 << 20
FEWEST_MESSAGES = 8


class StreamError(Exception):
    """A message arrived that was never sent, or more or fewer than were sent."""


def make_pass(
    size: int, frames: int = 1, messages: int | None = None, heads: Sequence[bytes] = ()
) -> list[Any]:
    """The messages of one pass.

    Args:
        size: octets of each frame, at least 8.
        frames: frames of each message; 1 gives plain ``bytes``, more give lists.
        messages: how many; by default what fits ``PASS_OCTETS``, 8 to 1024.
        heads: what the messages begin with, one head each, all different, instead of numbers.
    """
    if messages is None:
        messages = min(PASS_MESSAGES, max(FEWEST_MESSAGES, PASS_OCTETS // (size * frames)))
    heads = heads or [number.to_bytes(8, "big") for number in range(messages)]
    # Each body is another window on the same random octets: distinct, and quick to make.
    noise = random.Random(size).randbytes(size + len(heads) * frames)
    made: list[Any] = []
    for number, head in enumerate(heads):
        windows = range(number * frames, (number + 1) * frames)
        bodies = [noise[window : window + size] for window in windows]
        bodies[0] = head + bodies[0][len(head) :]
        made.append(bodies if frames > 1 else bodies[0])
    return made


def marker(text: bytes, frames: int = 1) -> Any:
    """A marker in the form that this stream's messages have."""
    return [text] if frames > 1 else text


def head_of(message: Message) -> bytes:
    """The frame that carries the number, or the marker."""
    return message[0] if isinstance(message, list) else message


class Account:
    """What one receiver has received of a stream, and which message is due.

    ``due`` is an iterator over the rest of the current pass: the loops below draw from it, so a
    message that is right costs one comparison and no arithmetic. The account is asked only at the
    end of a pass and when a message is not the one that is due.

    Attributes:
        gaps: how often the stream jumped. Zero, unless the pattern may drop.
        sent: what the sender says it sent; None until the end marker.
    """

    def __init__(self, messages: Sequence[Any]) -> None:
        self.messages = messages
        self.gaps = 0
        self.sent: int | None = None
        self._settled = 0
        self._begin(0)

    def _begin(self, number: int) -> None:
        self._first = number
        self.due: Iterator[Any] = iter(self.messages[number:] if number else self.messages)

    def _drawn(self) -> int:
        """How many messages of this pass have been drawn from ``due`` since it began."""
        return len(self.messages) - length_hint(self.due) - self._first

    @cached_property
    def _numbers(self) -> dict[bytes, int]:
        """The first frame of each message -> its number; made when something was lost."""
        return {head_of(message): number for number, message in enumerate(self.messages)}

    @property
    def received(self) -> int:
        """Messages received so far; right at any moment, also in the middle of a pass."""
        return self._settled + self._drawn()

    @property
    def lost(self) -> int:
        """Messages that were sent and never came; zero before the end marker."""
        return 0 if self.sent is None else self.sent - self.received

    def end_pass(self) -> None:
        """``due`` is exhausted: begin the next pass."""
        self._settled += self._drawn()
        self._begin(0)

    def undraw(self) -> None:
        """What was just drawn from ``due`` has not come: it is due again."""
        expected = self._first + self._drawn() - 1
        self._settled += expected - self._first
        self._begin(expected)

    def surprise(self, message: Message) -> bytes:
        """Explain a message that is not the one just drawn from ``due``.

        Returns:
            The marker, if it is one; nothing after a gap, when the stream goes on behind it.

        Raises:
            StreamError: no such message was sent, or the sender's count is below ours.
        """
        expected = self._first + self._drawn() - 1
        self._settled += expected - self._first
        head = head_of(message)
        if head.startswith(MARKER):
            self._begin(expected)
            if head.startswith(END):
                self.sent = int(head[len(END) :])
                if self.lost < 0:
                    raise StreamError(f"{self.received} messages came, {self.sent} were sent")
            return head
        number = self._numbers.get(head)
        if number is None or message != self.messages[number]:
            raise StreamError(f"message {expected} was due, {head[:24]!r} came: never sent")
        self.gaps += 1
        self._settled += 1
        self._begin(number + 1)
        return b""

    def must_be_whole(self) -> None:
        """Refuse a stream with a loss or a gap: the pattern in use may not drop.

        Raises:
            StreamError: something was lost, repeated or out of order.
        """
        if self.lost or self.gaps:
            raise StreamError(f"{self.lost} messages lost, {self.gaps} out of order")


def receive_pass(recv: Callable[[], Message], account: Account, most: int | None = None) -> bytes:
    """Receive the rest of a pass, or so many; return the marker that cut it short, or nothing."""
    for expected in account.due if most is None else islice(account.due, most):
        message = recv()
        if message != expected:
            return account.surprise(message)
    if not length_hint(account.due):
        account.end_pass()
    return b""


async def receive_pass_async(
    recv: Callable[[], Awaitable[Message]], account: Account, most: int | None = None
) -> bytes:
    """``receive_pass`` with one ``await`` a message, as an asyncio program would write it."""
    for expected in account.due if most is None else islice(account.due, most):
        message = await recv()
        if message != expected:
            return account.surprise(message)
    if not length_hint(account.due):
        account.end_pass()
    return b""


def receive_ready(
    recv: Callable[[int], Message],
    no_wait: int,
    empty: type[Exception],
    account: Account,
    most: int,
) -> bytes:
    """Receive what is there, at most so many, without waiting; return the marker that ended it.

    What a program does with a socket that its Poller named.

    Args:
        recv: takes the flags.
        no_wait: the flag that says not to wait.
        empty: what it raises when nothing is there.
        account: of this socket.
        most: so that one socket does not keep the others waiting.
    """
    try:
        for expected in islice(account.due, most):
            message = recv(no_wait)
            if message != expected:
                return account.surprise(message)
    except empty:
        account.undraw()
        return b""
    if not length_hint(account.due):
        account.end_pass()
    return b""


def receive_until(recv: Callable[[], Message], account: Account, end: bytes) -> None:
    """Receive until a marker that begins with ``end``; other markers are passed over."""
    while not receive_pass(recv, account).startswith(end):
        pass


async def receive_until_async(
    recv: Callable[[], Awaitable[Message]], account: Account, end: bytes
) -> None:
    """``receive_until`` with awaits."""
    while not (await receive_pass_async(recv, account)).startswith(end):
        pass


def send_for(send: Callable[[Any], object], messages: Sequence[Any], seconds: float) -> int:
    """Send whole passes until the time is over; return how many messages that were."""
    sent = 0
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        for message in messages:
            send(message)
        sent += len(messages)
    return sent


async def send_for_async(
    send: Callable[[Any], Awaitable[object]], messages: Sequence[Any], seconds: float
) -> int:
    """``send_for`` with one ``await`` a message."""
    sent = 0
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        for message in messages:
            await send(message)
        sent += len(messages)
    return sent
