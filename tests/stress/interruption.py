"""A signal whose handler raises, at any place of our choice in what the main thread executes.

CPython runs the handlers of signals between instructions: after a call, when a function begins,
when a loop goes round. A test that sends real signals meets a given one of these places once in a
thousand attempts; here a trace function notes the signal when the place is reached, and the
interpreter runs its handler exactly where it would have.
"""

import _thread
import dis
import signal
import sys
from contextlib import contextmanager
from pathlib import Path

import zerohop

PACKAGE = str(Path(zerohop.__file__).parent)
CHECKED = ("CALL", "RESUME", "JUMP_BACKWARD", "BEFORE_WITH")


class Interrupted(BaseException):
    """What the handler raises: as KeyboardInterrupt, but nobody else's."""


class _Signal(int):
    # An attribute whose getter is written in C: a call would be followed by a look for signals,
    # and the handler would run here, in the trace function.
    sent = property(_thread.interrupt_main)


_SIGNAL = _Signal(signal.SIGUSR1)


@contextmanager
def handler_that_raises():
    """While this lasts SIGUSR1 raises :class:`Interrupted` in the main thread."""

    def handle(number, frame):
        raise Interrupted

    before = signal.signal(_SIGNAL, handle)
    try:
        yield
    finally:
        signal.signal(_SIGNAL, before)


def places(call):
    """Run ``call``; return how often each place of the package was reached at which it could end.

    A place is a code object and the position of an instruction in it.
    """
    counts = {}

    def trace(frame, event, arg):
        if event == "opcode":
            place = frame.f_code, frame.f_lasti
            counts[place] = counts.get(place, 0) + 1
        return trace

    _traced(call, trace)
    return {place: count for place, count in counts.items() if _is_checked(place)}


def interrupt(call, place, times):
    """Run ``call``, and send the signal when it comes to ``place`` for the ``times``-th time.

    Returns:
        What it returned if it was not interrupted; None if it was: the call has raised.
    """
    code, position = place
    left = times

    def trace(frame, event, arg):
        nonlocal left
        if frame.f_lasti == position and frame.f_code is code and event == "opcode":
            left -= 1
            if not left:
                sys.settrace(None)
                _SIGNAL.sent  # noqa: B018 - see there
        return trace

    try:
        return _traced(call, trace)
    except Interrupted:
        return None


def _traced(call, trace):
    def begin(frame, event, arg):
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return trace

    before = sys.gettrace()
    sys.settrace(begin)
    try:
        return call()
    finally:
        sys.settrace(before)


def _is_checked(place):
    code, position = place
    return dis.opname[code.co_code[position]].startswith(CHECKED)


def describe(place):
    code, position = place
    line = next(
        (line for start, end, line in code.co_lines() if start <= position < end),
        code.co_firstlineno,
    )
    return f"{Path(code.co_filename).relative_to(PACKAGE)}:{line} {code.co_name}+{position}"
