"""Reads the command line, runs one command, and makes its end an exit status.

    0     done; of ``ping``: a PING was answered
    1     it failed, and the last line of the error output says why
    2     the command line is wrong
    130   ended by Ctrl-C, with files closed and the totals shown
    141   nobody reads the output any more
    143   ended by SIGTERM, likewise

The commands need msgspec, which the sockets don't. It is imported with the command alone, so that
where it is missing this file is there to say so.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
from importlib import import_module

import zerohop as zmq
from zerohop.serving import Malformed, ServingError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["main"]

FAILED, WRONG_USE, INTERRUPTED, NOBODY_READS, TERMINATED = 1, 2, 130, 141, 143

_EPILOG = "See docs/howto/ping.md and docs/howto/kv-events.md for examples."


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status.

    Args:
        arguments: what comes after the command's name; ``None``: this process's.
    """
    _open_what_is_closed()
    options = _parser().parse_args(arguments)
    try:
        command = import_module(options.module)
        with _ending_on_sigterm():
            status: int = command.run(options)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Python flushes once more when it ends, and would complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return NOBODY_READS
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "msgspec":
            raise
        return _complain(f"{error.name} is missing; in a clone of zerohop: pip install '.[cli]'")
    except (zmq.ZMQError, ServingError, OSError, ValueError) as error:
        return _complain(_words_for(error), *getattr(error, "__notes__", ()))
    return status


def _open_what_is_closed() -> None:
    """Have somewhere to write to where the caller closed an output: its number is no socket's."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            number = os.open(os.devnull, os.O_WRONLY)
            setattr(sys, name, os.fdopen(number, "w", closefd=False))  # as Python's own are


@contextlib.contextmanager
def _ending_on_sigterm() -> Iterator[None]:
    """Have SIGTERM, which ``timeout`` sends, end the command as Ctrl-C does: files are closed."""

    def end(*_: object) -> None:
        sys.exit(TERMINATED)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _words_for(error: Exception) -> str:
    match error:
        case Malformed():
            return error.reason  # without the octets: of a file they say nothing
        case OSError(filename=str() | os.PathLike() as place, strerror=str() as reason):
            return f"{place}: {reason}"
        case OSError(strerror=str() as reason):
            return reason
    return str(error)


def _complain(*lines: str) -> int:
    for line in lines:
        sys.stderr.write(f"zerohop: {line}\n")
    return FAILED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="zerohop",
        description="Look at what runs: who is at an endpoint, and what KV events are published.",
        epilog=_EPILOG,
    )
    parser.add_argument("--version", action="version", version=f"zerohop {zmq.__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    _add_ping(commands)
    kv = commands.add_parser(
        "kv", help="KV events: tail, record, play", description="See, keep and replay KV events."
    ).add_subparsers(metavar="COMMAND", required=True)
    _add_tail(kv)
    _add_record(kv)
    _add_play(kv)
    return parser


def _add_ping(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    ping = commands.add_parser(
        "ping",
        help="say what is at the other end of an endpoint, and what to do about it",
        description="Say what is at the other end of an endpoint, and what to do about it. "
        "The exit status is 0 only where a PING was answered.",
    )
    ping.set_defaults(module="zerohop.cli.ping")
    ping.add_argument("endpoint", metavar="ENDPOINT", help="tcp://HOST:PORT or ipc://PATH")
    ping.add_argument(
        "--timeout", type=_seconds, default=5.0, metavar="S", help="seconds for all of it (5)"
    )
    ping.add_argument(
        "--lmcache",
        metavar="RELEASE",
        help="it is known to be LMCache of this release, whose PING has another number",
    )
    ping.add_argument("--json", action="store_true", help="one object: finding, detail, advice")


def _add_tail(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    tail = commands.add_parser(
        "tail",
        help="show KV events as they are published",
        description="Show KV events as they are published: a table in a terminal, lines elsewhere.",
    )
    tail.set_defaults(module="zerohop.cli.tail")
    tail.add_argument(
        "endpoint", type=_endpoint, metavar="ENDPOINT", help="the publisher's PUB socket"
    )
    tail.add_argument(
        "--replay",
        type=_endpoint,
        metavar="ENDPOINT",
        help="its replay socket, to be asked for what was missed",
    )
    _add_topic_count_bind(tail)
    tail.add_argument("--json", action="store_true", help="one object a line and batch")


def _add_record(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    record = commands.add_parser(
        "record",
        help="write KV events into a file",
        description="Write batches of KV events into a file, with the times at which they came.",
    )
    record.set_defaults(module="zerohop.cli.record")
    record.add_argument("file", metavar="FILE", help="one that is there is replaced")
    record.add_argument(
        "endpoints",
        type=_endpoint,
        metavar="ENDPOINT",
        nargs="+",
        help="PUB sockets: of the ranks of one worker",
    )
    _add_topic_count_bind(record)


def _add_play(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    play = commands.add_parser(
        "play",
        help="publish KV events out of a file",
        description="Publish what was recorded, at an endpoint that is bound for it.",
    )
    play.set_defaults(module="zerohop.cli.play")
    play.add_argument("file", metavar="FILE", help="what `zerohop kv record` has written")
    play.add_argument(
        "--endpoint",
        type=_endpoint,
        metavar="ENDPOINT",
        default="tcp://127.0.0.1:5557",
        help="to bind; a port * is a free one (tcp://127.0.0.1:5557)",
    )
    play.add_argument(
        "--speed",
        type=_speed,
        default=1.0,
        metavar="X",
        help="1 as it was, 10 ten times as fast, max without waiting (1)",
    )
    play.add_argument(
        "--wait",
        type=_number,
        default=1,
        metavar="N",
        help="begin when there are so many subscribers (1)",
    )


def _add_topic_count_bind(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--topic", type=_topic, default="", metavar="T", help="topics that begin so (all)"
    )
    command.add_argument("--count", type=_count, metavar="N", help="end after so many batches")
    command.add_argument(
        "--bind", action="store_true", help="bind ENDPOINT, for publishers that connect"
    )


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no number") from None
    if not 0 < seconds < 1e6:
        raise argparse.ArgumentTypeError(f"{text} is not above 0 and below a million")
    return seconds


def _endpoint(text: str) -> str:
    if text.startswith("inproc:"):
        raise argparse.ArgumentTypeError("inproc is within a process, where nobody else is")
    return text


def _topic(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise argparse.ArgumentTypeError(f"{text!r} is no UTF-8") from None
    return text


def _number(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number") from None
    if number < 0:
        raise argparse.ArgumentTypeError(f"{text} is below 0")
    return number


def _count(text: str) -> int:
    count = _number(text)
    if not count:
        raise argparse.ArgumentTypeError("0 batches are nothing to wait for")
    return count


def _speed(text: str) -> float | None:
    return None if text == "max" else _seconds(text)
