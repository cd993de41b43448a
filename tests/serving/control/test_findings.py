"""Findings: short codes that stay, and advice for each of them."""

import errno
import socket

import pytest

from zerohop.serving.control.findings import (
    ADVICE,
    ANSWERED,
    find,
    find_other_type,
    find_unconnected,
)

WHERE = "tcp://127.0.0.1:5555"


@pytest.mark.parametrize("code", ADVICE)
def test_every_kind_of_finding_has_advice_on_one_line(code):
    finding = find(code, "what was found")
    assert finding.advice
    assert "\n" not in finding.advice
    assert finding.answered == (code in ANSWERED)


def test_only_answers_count_as_answered():
    assert {code for code in ADVICE if code.startswith("answered")} == ANSWERED


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConnectionRefusedError(errno.ECONNREFUSED, ""), "no_listener"),
        (FileNotFoundError(errno.ENOENT, ""), "path_missing"),
        (NotADirectoryError(errno.ENOTDIR, ""), "path_missing"),
        (PermissionError(errno.EACCES, ""), "no_permission"),
        (OSError(errno.EPROTOTYPE, ""), "not_a_socket"),
        (BlockingIOError(errno.EAGAIN, ""), "silent"),
        (OSError(errno.EHOSTUNREACH, ""), "unreachable"),
        (OSError(errno.ENETUNREACH, ""), "unreachable"),
        (TimeoutError("timed out"), "unreachable"),
        (TimeoutError(errno.ETIMEDOUT, ""), "unreachable"),
        (socket.gaierror("what nobody has heard of"), "unreachable"),
    ],
)
def test_why_a_connection_was_not_made_is_told_by_its_error(error, code):
    finding = find_unconnected(error, WHERE)
    assert (finding.code, finding.answered) == (code, False)
    assert WHERE in finding.detail


@pytest.mark.parametrize(
    ("kind", "words", "advice"),
    [
        ("PUB", "a PUB socket", "zerohop kv tail"),
        ("XPUB", "an XPUB socket", "zerohop kv tail"),
        ("PULL", "a PULL socket", "PUSH to it"),
        ("PUSH", "a PUSH socket", "PULL from it"),
        ("PAIR", "a PAIR socket", "endpoint for requests"),
    ],
)
def test_what_to_do_with_another_socket_depends_on_its_type(kind, words, advice):
    finding = find_other_type(kind, WHERE)
    assert finding.code == "other_socket_type"
    assert words in finding.detail
    assert advice in finding.advice
