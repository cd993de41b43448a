"""What the tests of the wire share: octets to be read, streams cut anywhere, calls counted."""

import gc
import sys
from itertools import pairwise

from hypothesis import strategies as st

from zerohop.wire.frames import Command


def octets(spec: str) -> bytes:
    """Hex with spaces and ``# comments``, so that a test can be read beside the RFC."""
    return bytes.fromhex("".join(line.split("#")[0] for line in spec.splitlines()))


def pieces(stream: bytes, cuts: list[int]) -> list[bytes]:
    """The stream, cut at these places."""
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    return [stream[start:stop] for start, stop in pairwise(edges)]


def octet_by_octet(stream: bytes) -> list[bytes]:
    return [stream[i : i + 1] for i in range(len(stream))]


def calls_during(function, *args) -> int:
    """How many Python and C calls happen while ``function(*args)`` runs, its own included."""
    count = 0

    def profiler(frame, event, arg):
        nonlocal count
        count += event in ("call", "c_call")

    gc.disable()  # a collection would be counted, with whatever is told of it
    sys.setprofile(profiler)
    try:
        function(*args)
    finally:
        sys.setprofile(None)
        gc.enable()
    return count - 1  # the call of sys.setprofile that ends the counting


cuts = st.lists(st.integers(0, 6000), max_size=30)

# Sizes around the edges of the format, and few enough values that equal ones follow each other.
bodies = st.one_of(
    st.binary(max_size=20),
    st.sampled_from([0, 1, 40, 254, 255, 256, 257, 1000]).map(bytes),
)
parts = st.lists(bodies, min_size=2, max_size=5)
runs = st.tuples(st.one_of(bodies, parts), st.integers(1, 60)).map(lambda run: [run[0]] * run[1])


def streams_of(messages):
    """Lists of messages, long runs of equal ones among them."""
    return st.lists(st.one_of(messages.map(lambda message: [message]), runs), max_size=12).map(
        lambda groups: [message for group in groups for message in group]
    )


messages = streams_of(st.one_of(bodies, parts))
traffic = streams_of(st.one_of(bodies, parts, bodies.map(Command)))
