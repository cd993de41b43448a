"""A run as JSON."""

import json

from bench.document import as_json, rounded

DOCUMENT = {
    "name": "a",
    "machine": {"cores": 2, "load": 0.123456789},
    "empty": [],
    "rounds": [{"value": 1234567.891, "why": "µs"}, {"value": None, "roles": {"a": (1.5, 2)}}],
}


def test_what_is_written_can_be_read_again_with_six_digits():
    assert json.loads(as_json(DOCUMENT)) == {
        "name": "a",
        "machine": {"cores": 2, "load": 0.123457},
        "empty": [],
        "rounds": [{"value": 1234570.0, "why": "µs"}, {"value": None, "roles": {"a": [1.5, 2]}}],
    }


def test_each_round_is_one_line():
    lines = as_json(DOCUMENT).splitlines()
    assert '  {"value": 1234570.0, "why": "µs"},' in lines


def test_only_floats_are_rounded():
    assert rounded([1234567891, True, "1.23456789", 1.23456789]) == [
        1234567891,
        True,
        "1.23456789",
        1.23457,
    ]
