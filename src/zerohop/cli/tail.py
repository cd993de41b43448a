"""``zerohop kv tail``: a table in a terminal, lines elsewhere, JSON for programs."""

from __future__ import annotations

import shutil
import sys
import time

from zerohop.cli.shown import batch_as_json, batch_as_line, notice
from zerohop.cli.tally import Tally, table
from zerohop.serving import Applied, Snapshot, SyncKvEventSubscriber

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from typing import TextIO

    from zerohop.serving.kv.deliveries import Delivery

__all__ = ["run"]

_REFRESH = 0.25  # seconds; what changes more often cannot be read
_QUIET = 5.0  # seconds without anything, after which it is said where to look


def run(options: Namespace) -> int:
    """Show what is published until ``--count`` batches are shown, or for ever."""
    if options.json:
        screen: Screen = JsonLines(sys.stdout)
    elif sys.stdout.isatty():
        screen = LiveTable(sys.stdout)
    else:
        screen = Lines(sys.stdout)
    left = options.count
    begun, heard = time.monotonic(), False
    with SyncKvEventSubscriber(
        options.endpoint, options.replay, topic=options.topic, bind=options.bind
    ) as subscriber:
        try:
            while left is None or left > 0:
                delivery = subscriber.receive(_REFRESH)
                if delivery is not None:
                    screen.deliver(delivery, time.monotonic())
                    heard = heard or isinstance(delivery, Applied | Snapshot)
                    if left is not None and isinstance(delivery, Applied):
                        left -= 1
                elif not heard and time.monotonic() - begun > _QUIET:
                    topic = f" with topic {options.topic}" if options.topic else ""
                    screen.say(
                        f"nothing{topic} from {options.endpoint} for {_QUIET:.0f} s; "
                        f"`zerohop ping {options.endpoint}` tells who is there"
                    )
                    heard = True
                screen.refresh(time.monotonic())
        finally:
            screen.end(time.monotonic())
    return 0


class Screen:
    """What is the same on all screens: each line is out when it is written.

    Args:
        out: standard output.
    """

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._tally = Tally()
        self._refreshed = 0.0

    def deliver(self, delivery: Delivery, now: float) -> None:
        """Show a delivery."""
        self._tally.deliver(delivery, now)
        line = notice(delivery)
        if line is not None:
            self.say(line)

    def say(self, line: str) -> None:
        """Show a line that is about the stream, and not of it."""
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()

    def refresh(self, now: float) -> None:
        """Take note of the time, as often as a person may want to know."""
        if now - self._refreshed >= _REFRESH:
            self._refreshed = now
            self._tally.sample(now)
            self._show()

    def end(self, now: float) -> None:
        """Show what is to be left on the screen: the totals."""
        self._tally.sample(now)
        self._write(table(self._tally))

    def _show(self) -> None:
        """Show what the passing of time has changed."""

    def _write(self, lines: list[str]) -> None:
        self._out.write("".join(f"{line}\n" for line in lines))
        self._out.flush()


class Lines(Screen):
    """A line a batch."""

    def deliver(self, delivery: Delivery, now: float) -> None:
        """Show a delivery."""
        super().deliver(delivery, now)
        if isinstance(delivery, Applied):
            self._write([batch_as_line(delivery.seq, delivery.batch, delivery.dp_rank)])


class JsonLines(Screen):
    """An object a line and batch, and nothing else."""

    def deliver(self, delivery: Delivery, now: float) -> None:
        """Show a delivery."""
        line = notice(delivery)
        if line is not None:
            self.say(line)
        match delivery:
            case Applied(seq=seq, batch=batch, dp_rank=rank):
                self._write([batch_as_json(seq, batch, rank)])
            case Snapshot(batches=batches, dp_rank=rank):
                self._write([batch_as_json(None, batch, rank) for batch in batches])
            case _:
                pass

    def end(self, now: float) -> None:
        """Leave nothing: a program reads this."""


class LiveTable(Screen):
    """A table that is drawn over itself, with the notices above it."""

    def __init__(self, out: TextIO) -> None:
        super().__init__(out)
        self._height = 0  # of what is to be erased

    def say(self, line: str) -> None:
        """Show a line above the table."""
        self._erase()
        self._write([line])

    def end(self, now: float) -> None:
        """Leave the last table."""
        self._erase()
        super().end(now)

    def _show(self) -> None:
        self._erase()
        columns = shutil.get_terminal_size().columns - 1  # a line that wraps would be two to erase
        lines = [line[:columns] for line in table(self._tally)]
        self._write(lines)
        self._height = len(lines)

    def _erase(self) -> None:
        if self._height:
            self._out.write(f"\x1b[{self._height}F\x1b[J")
            self._height = 0
