"""The pictures, as far as they can be looked at without drawing."""

import pytest

from bench.case import Case
from bench.plots import COLOURS, OTHER, colour, dashes, in_octets, whiskers
from bench.rounds import Round
from bench.summary import row_of

ROW = row_of(
    Case("c", "A case", "msg/s"),
    [
        Round("c", "tcp", "pyzmq", number, value, {})
        for number, value in enumerate((10.0, 30.0, 15.0))
    ],
)


@pytest.mark.parametrize(
    ("size", "text"), [(16, "16"), (1 << 10, "1 Ki"), (256 << 10, "256 Ki"), (4 << 20, "4 Mi")]
)
def test_sizes_are_shown_in_round_units(size, text):
    assert in_octets(size) == text


def test_whiskers_reach_from_the_median_to_both_ends():
    assert whiskers(ROW) == (5.0, 15.0)
    assert whiskers(ROW, 2.0) == (10.0, 30.0)


def test_a_library_has_one_colour_and_a_style_one_line():
    assert colour("zmq.asyncio+uvloop") == colour("pyzmq") == COLOURS["pyzmq"]
    assert colour("zerohop -> pyzmq") == OTHER
    assert [dashes(name) for name in ("pyzmq", "zmq.asyncio", "zmq.asyncio+uvloop")] == [
        "-",
        "--",
        ":",
    ]
