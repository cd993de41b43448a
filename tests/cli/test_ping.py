"""``zerohop ping``: what it prints, and when it succeeds."""

import json
from pathlib import Path

import pytest

from tests.cli.commands import REPOSITORY, SECONDS, running
from tests.serving.control.strangers import Server, bound
from zerohop.cli import ping as command
from zerohop.cli.main import main
from zerohop.serving.codec import pack
from zerohop.serving.control.findings import ADVICE, find

pytestmark = pytest.mark.timeout(30)
FOUND = find("silent", "nothing")


def test_the_page_explains_every_finding():
    page = (REPOSITORY / "docs" / "howto" / "ping.md").read_text()
    assert [code for code in ADVICE if f"`{code}`" not in page] == []


def test_json_is_one_object_with_finding_detail_and_advice(capsys):
    with bound("pyzmq", "PUB") as endpoint:
        assert main(["ping", endpoint, "--json"]) == 1
    shown = capsys.readouterr()
    told = json.loads(shown.out)
    assert list(told) == ["finding", "detail", "advice"]
    assert told["finding"] == "other_socket_type"
    assert told["finding"] in ADVICE
    assert endpoint in told["detail"]
    assert shown.out.count("\n") == 1
    assert shown.err == ""


def test_text_is_a_line_of_what_was_found_and_one_of_what_to_do(capsys):
    with bound("pyzmq", "PULL") as endpoint:
        assert main(["ping", endpoint]) == 1
    found, advice = capsys.readouterr().out.splitlines()
    assert found.startswith("other_socket_type: ")
    assert "PULL" in found
    assert advice.startswith("  to do: ")


def test_only_an_answered_ping_is_a_success(capsys):
    with Server(lambda frames: [*frames[:2], pack(True)]) as server:
        assert main(["ping", server.endpoint]) == 0
        assert main(["ping", server.endpoint, "--json"]) == 0
    assert '"finding": "answered_lmcache"' in capsys.readouterr().out


def test_a_release_of_lmcache_can_be_named(capsys):
    with Server(lambda frames: [*frames[:2], pack(True)]) as server:
        assert main(["ping", server.endpoint, "--lmcache", "0.4.7"]) == 0
    assert "0.4.7" in capsys.readouterr().out
    assert [frames[1:] for frames in server.heard] == [[pack(18)]]


def test_the_ping_story_ends_in_one_line_that_says_what_is_missing(capsys):
    """A foreign cache server without a PING handler: silent to clients, loud in its own log."""
    with Server(lambda _: None) as server:
        assert main(["ping", server.endpoint, "--timeout", "0.5"]) == 1
    found, advice = capsys.readouterr().out.splitlines()
    assert found.startswith(f"no_ping_handler: {server.endpoint} is a ROUTER that left a PING")
    assert "give the server a PING handler" in advice


@pytest.mark.parametrize("arguments", [[], ["--json"]], ids=["text", "json"])
def test_it_ends_in_time_though_nobody_says_anything(arguments, listener):
    endpoint, _ = listener
    with running("ping", endpoint, "--timeout", "1", *arguments) as process:
        shown, _ = process.communicate(timeout=SECONDS)
    assert process.returncode == 1
    assert "silent" in shown


def test_the_time_that_the_process_has_taken_is_a_part_of_the_limit(monkeypatch):
    """The clock of the system knows when a process began; where it does not, its own does."""
    started = command._age()
    assert 0 < started < command._age()
    monkeypatch.setattr(command, "_STAT", Path("/nowhere"))
    assert command._age() > 0

    given = []
    monkeypatch.setattr(command, "_age", lambda: 0.25)
    monkeypatch.setattr(command, "ping", lambda _, timeout, **__: given.append(timeout) or FOUND)
    for limit in ("10", "0.5"):
        assert main(["ping", "tcp://127.0.0.1:1", "--timeout", limit]) == 1
    assert given == [10 - 0.25 - command._END, 0.25]
