"""What an answer to a PING says of who gave it."""

import pytest

from zerohop.serving.codec import pack
from zerohop.serving.control.answers import PING_UID, read_answer
from zerohop.serving.control.frames import parse_request, refusal
from zerohop.serving.control.lmcache.frames import ping_request
from zerohop.serving.control.messages import VERSION, Presence

REQUEST = ping_request(PING_UID)
UID, NUMBER, _ = REQUEST


def read(*frames, request=REQUEST, release="0.5.6"):
    return read_answer("tcp://there", "ROUTER", request, frames, release)


def test_true_is_an_answered_ping_of_the_releases_that_share_its_number():
    finding = read(UID, NUMBER, pack(True))
    assert finding.code == "answered_lmcache"
    assert finding.answered
    assert "LMCache 0.5.3 or 0.5.6" in finding.detail


def test_a_boot_token_is_an_answered_ping_too():
    finding = read(UID, NUMBER, pack(1234567))
    assert finding.code == "answered_lmcache"
    assert "boot token 1234567" in finding.detail


def test_a_release_that_is_known_to_be_there_is_named():
    request = ping_request(PING_UID, "0.4.6")
    finding = read(request[0], request[1], pack(True), request=request, release="0.4.6")
    assert finding.code == "answered_lmcache"
    assert "as LMCache 0.4.6 does" in finding.detail


def test_a_control_server_of_ours_says_who_it_is():
    finding = read(UID, NUMBER, pack(Presence("cache", VERSION, b"\x01\xff")))
    assert finding.code == "answered_control"
    assert finding.answered
    assert "protocol 'cache', boot token 01ff" in finding.detail


def test_a_delimiter_is_no_part_of_an_answer():
    assert read(b"", UID, NUMBER, pack(True)).answered


def test_a_refusal_of_ours_says_that_there_is_no_handler():
    finding = read(*refusal(parse_request(REQUEST), "no handler for ping"))
    assert finding.code == "no_ping_handler"
    assert "no handler for ping" in finding.detail


@pytest.mark.parametrize(
    "result", [[pack(False)], [], [pack("well")], [pack({"protocol": 1})]], ids=repr
)
def test_a_ping_that_failed_in_the_server_is_no_answer(result):
    finding = read(UID, NUMBER, *result)
    assert finding.code == "unwell"
    assert not finding.answered


@pytest.mark.parametrize(
    "frames",
    [
        [b"error: unknown operation"],
        [b'{"status": "ERROR"}'],
        [UID, pack({"error": "no such thing"})],
        [UID, b"Unsupported operation"],
    ],
    ids=repr,
)
def test_an_error_says_that_there_is_no_handler(frames):
    finding = read(*frames)
    assert finding.code == "no_ping_handler"
    assert "answers a PING with an error" in finding.detail


@pytest.mark.parametrize(
    "frames",
    [[b""], [b"hello"], [UID], [pack(2), NUMBER, pack(True)], [UID, pack(21), pack(256)]],
    ids=repr,
)
def test_anything_else_is_an_answer_that_nobody_knows(frames):
    assert read(*frames).code == "unknown_answer"


def test_of_a_long_answer_the_beginning_is_shown():
    finding = read(*[b"%d" % number * 100 for number in range(6)])
    shown = " ".join(repr(b"%d" % number * 64) for number in range(4))
    assert finding.detail.endswith(f"answers a PING with {shown}")


def test_an_echo_is_no_answer():
    finding = read(*REQUEST)
    assert finding.code == "unknown_answer"
    assert "sends back what it is sent" in finding.detail
