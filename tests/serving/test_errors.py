"""Each error says what happened, with which values, and keeps them."""

import pickle

import pytest

from zerohop.serving import errors
from zerohop.serving.errors import (
    DeadlineExceeded,
    EngineDead,
    EngineOverloaded,
    Malformed,
    MissingHandlers,
    NoAnswer,
    ProtocolMismatch,
    RequestRefused,
    ServingError,
    SlowConsumer,
    Unencodable,
    UtilityFailed,
)


@pytest.mark.parametrize(
    ("error", "text", "attributes"),
    [
        (
            EngineDead("e0", "its pulse stopped"),
            "engine e0 is gone (its pulse stopped)",
            {"engine": "e0", "reason": "its pulse stopped", "request_id": None},
        ),
        (
            EngineDead("e0", "killed", "r1"),
            "engine e0 is gone (killed); request r1 is lost",
            {"request_id": "r1"},
        ),
        (
            EngineOverloaded("e0", 8),
            "engine e0 has 8 open requests, which is its limit; try again later, or another engine",
            {"engine": "e0", "limit": 8},
        ),
        (
            EngineOverloaded("e0", 1),
            "engine e0 has 1 open request, which is its limit; try again later, or another engine",
            {"engine": "e0", "limit": 1},
        ),
        (
            SlowConsumer("api-1", 9),
            "api-1 fell more than 9 messages behind, and its streams were ended; "
            "read faster, or raise the limit",
            {"consumer": "api-1", "limit": 9},
        ),
        (
            DeadlineExceeded("request r1", 2.5),
            "request r1 did not end within 2.5 s",
            {"what": "request r1", "seconds": 2.5},
        ),
        (
            RequestRefused("r1", "too long"),
            "request r1 was refused: too long",
            {"request_id": "r1", "reason": "too long"},
        ),
        (
            UtilityFailed("reset", "KeyError: 3"),
            "utility 'reset' failed in the engine: KeyError: 3",
            {"name": "reset", "failure": "KeyError: 3"},
        ),
        (
            ProtocolMismatch("protocol version", 1, 2),
            "protocol version differs: here 1, there 2",
            {"what": "protocol version", "ours": 1, "theirs": 2},
        ),
        (
            Malformed(b"ab", "no map"),
            "malformed message of 2 octets: no map: b'ab'",
            {"data": b"ab", "reason": "no map", "offset": None},
        ),
        (
            Malformed(b"ab", "no map", 1),
            "malformed message of 2 octets at octet 1: no map: b'ab'",
            {"offset": 1},
        ),
        (
            NoAnswer("tcp://h:1", "PING", 5),
            "tcp://h:1 did not answer PING within 5 s",
            {"endpoint": "tcp://h:1", "question": "PING", "seconds": 5},
        ),
        (
            MissingHandlers("cache", ["ping", "store"]),
            "protocol cache has operations without a handler: ping, store; declare a handler for "
            "each of them, or serve a protocol without them",
            {"protocol": "cache", "operations": ("ping", "store")},
        ),
        (
            Unencodable(2**64, "too large"),
            f"cannot encode {2**64}: too large",
            {"value": 2**64, "reason": "too large"},
        ),
    ],
)
def test_an_error_says_what_happened_and_keeps_the_values(error, text, attributes):
    assert isinstance(error, ServingError)
    assert str(error) == text
    assert {name: getattr(error, name) for name in attributes} == attributes


@pytest.mark.parametrize("error", [Malformed(b"x" * 100, "r"), Unencodable("x" * 100, "r")])
def test_foreign_values_are_cut_in_the_text_and_whole_beside_it(error):
    assert len(str(error)) < 150
    assert "..." in str(error)
    assert len(getattr(error, "data", None) or error.value) == 100


def test_what_to_do_is_a_note():
    error = NoAnswer("e", "PING", 1, hint="start the server")
    assert error.__notes__ == ["start the server"]


def test_each_error_is_public():
    from zerohop import serving

    assert set(errors.__all__) <= set(serving.__all__)
    assert issubclass(Unencodable, ValueError)
    assert pickle.loads(pickle.dumps(ServingError("text"))).args == ("text",)


class Unspeakable:
    def __repr__(self):
        raise RuntimeError("no words for it")


def test_a_value_that_cannot_even_be_shown_is_told_all_the_same():
    nested = []
    for _ in range(5000):
        nested = [nested]
    text = str(Unencodable(Unspeakable(), "r"))
    assert text == "cannot encode a Unspeakable whose repr raises RuntimeError: r"
    assert "a list whose repr raises RecursionError" in str(Unencodable(nested, "r"))
