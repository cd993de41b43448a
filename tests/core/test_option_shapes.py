"""The rules for option values: what is taken, what it is inside, what is shown again."""

import ipaddress

import pytest

from zerohop.core import option_shapes as shape

NETWORK = ipaddress.ip_network
Z85_KEY = b"0" * 40


@pytest.mark.parametrize(
    ("rule", "taken", "refused"),
    [
        (shape.ANY, [-5, 0, 5], []),
        (shape.COUNT, [0, 1, 2**31 - 1], [-1]),
        (shape.POSITIVE, [1], [0, -1]),
        (shape.SIZE, [-1, 0, 1], [-2]),
        (shape.TERNARY, [-1, 0, 1], [-2, 2]),
        (shape.FLAG, [0, 1], [-1, 2]),
        (shape.INVERSE, [0, 1], [-1, 2]),
        (shape.SWITCH, [0, 1, 2], [-1]),
        (shape.TRUTH, [-1, 0, 1, 2], []),
        (shape.FOREVER, [-1, 0, 1], [-2]),
        (shape.NEVER, [-1, 0, 1], [-2]),
        (shape.OFF, [0, 1], [-1]),
        (shape.OWN, [0, 1], [-1]),
        (shape.TENTHS, [-99, 0, 6553599], [-100, 6553600]),
        (shape.DESCRIPTOR, [-1, 0, 9], [-2]),
        (shape.WHOLE, [b"", b"x" * 1000], []),
        (shape.NAME, [b"x", b"x" * 1000], [b""]),
        (shape.TEXT, [b"x", b"x" * 255], [b"", b"x" * 256]),
        (shape.SHORT, [b"", b"x" * 255], [b"x" * 256]),
        (shape.DEVICE, [b"x", b"x" * 16], [b"", b"x" * 17]),
        (shape.KEY, [b"\xff" * 32, Z85_KEY, Z85_KEY + b"\0"], [b"", Z85_KEY + b"0", b" " * 40]),
        (shape.KEY, [], [b"0" * 35, b"0" * 41, b"x" * 31]),
        (shape.PROPERTY, [b"X-a:b", b"X-" + b"n" * 253 + b":v"], [b"X-a:", b"x-a:b", b"X-:v"]),
        (shape.PROPERTY, [b"X-:vv", b"X-a:b:c"], [b"X-" + b"n" * 254 + b":v", b"X-abc", b":b"]),
        (shape.NETWORK, [b"10.0.0.1", b"10.0.0.1/8", b"::1", b"[::1]"], [b"lo", b"1.1.1.1/33"]),
        (shape.NETWORK, [], [b"", b"\xff"]),
    ],
)
def test_what_may_be_set(rule, taken, refused):
    assert [value for value in taken + refused if rule.accepts(value)] == taken


@pytest.mark.parametrize(
    ("rule", "outside", "inside"),
    [
        (shape.ANY, 7, 7),
        (shape.FLAG, 1, True),
        (shape.INVERSE, 1, False),
        (shape.FOREVER, -1, None),
        (shape.FOREVER, 0, 0.0),
        (shape.FOREVER, 2**31 - 1, 2147483.647),
        (shape.NEVER, -1, None),
        (shape.NEVER, 0, 0.0),
        (shape.OFF, 0, None),
        (shape.OFF, 30000, 30.0),
        (shape.OWN, 0, 0.0),
        (shape.TENTHS, 6500, 65),
        (shape.DESCRIPTOR, -1, None),
        (shape.DESCRIPTOR, 0, 0),
        (shape.MESSAGE_SIZE, -1, None),
        (shape.MESSAGE_SIZE, 0, 0),
        (shape.TEXT, b"name", b"name"),
    ],
)
def test_what_a_value_is_inside_and_shows_again(rule, outside, inside):
    stored = rule.store(outside)
    assert (stored, type(stored)) == (inside, type(inside))
    assert rule.show(stored) == outside


@pytest.mark.parametrize(
    ("rule", "outside", "shown"),
    [
        (shape.SWITCH, 5, 1),
        (shape.TRUTH, -5, 1),
        (shape.TENTHS, 199, 100),
        (shape.TENTHS, -50, 0),
        (shape.MESSAGE_SIZE, -7, -1),
    ],
)
def test_what_is_rounded_on_the_way(rule, outside, shown):
    assert rule.show(rule.store(outside)) == shown


@pytest.mark.parametrize("milliseconds", [1, 3, 7, 29, 333, 1001, 123456789, 2**31 - 1])
def test_a_duration_comes_back_to_the_millisecond(milliseconds):
    assert shape.FOREVER.show(shape.FOREVER.store(milliseconds)) == milliseconds


def test_a_timeout_that_was_never_set_is_shown_as_minus_one():
    assert shape.OWN.show(None) == -1


def test_a_key_is_kept_as_octets_and_a_filter_as_a_network():
    assert shape.KEY.store(Z85_KEY) == bytes(32)
    assert shape.KEY.store(Z85_KEY + b"\0") == bytes(32)
    assert shape.NETWORK.store(b"10.1.2.3/8") == NETWORK("10.0.0.0/8")
    assert shape.NETWORK.store(b"[::1]") == NETWORK("::1/128")
