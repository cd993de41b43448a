"""What ``make peers`` does around the peers: installing, listening to their programs, the page."""

import sys
from pathlib import Path

import pytest

from scripts import peers

GREEN = {"check": "a", "result": "all of it", "ok": True}
RED = {"check": "b", "result": "half of it", "ok": False}


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A source tree with a page and no programs."""
    monkeypatch.setattr(peers, "ROOT", tmp_path)
    monkeypatch.setattr(peers, "ENVIRONMENTS", tmp_path / "environments")
    (tmp_path / "scripts").mkdir()
    return tmp_path


def program(place, text, **options):
    (place / "scripts" / "peers_x.py").write_text(text)
    return peers.run(peers.Peer("x", (), **options), Path(sys.executable))


def test_a_row_is_what_was_tried_and_what_came_of_it():
    *_, green, red = peers.table([GREEN, RED]).splitlines()
    assert green == "| a | all of it | ✓ |"
    assert red == "| b | half of it | ✗ |"


def test_a_table_stands_between_the_marks_of_its_peer_and_nothing_else_is_touched(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- peer: x -->\nold\n<!-- end of x -->\nafter\n<!-- peer: y -->\n")
    peers.write("x", [GREEN], "one 1.0, two 2.0", page)
    before, _, rest = page.read_text().partition("<!-- peer: x -->")
    table, _, after = rest.partition("<!-- end of x -->")
    assert (before, after) == ("before\n", "\nafter\n<!-- peer: y -->\n")
    assert "one 1.0, two 2.0" in table
    assert "| a | all of it | ✓ |" in table
    assert "old" not in table


@pytest.mark.parametrize("text", ["nothing", "<!-- peer: x -->", "<!-- end of x -->"])
def test_a_page_without_the_marks_is_an_error_and_stays(tmp_path, text):
    page = tmp_path / "page.md"
    page.write_text(text)
    with pytest.raises(ValueError, match="has no marks"):
        peers.write("x", [GREEN], "", page)
    assert page.read_text() == text


@pytest.mark.parametrize("name", peers.PEERS)
def test_every_peer_has_a_program_marks_in_the_page_and_pinned_versions(name):
    assert (peers.ROOT / "scripts" / f"peers_{name}.py").exists()
    assert f"<!-- peer: {name} -->" in peers.PAGE.read_text()
    assert all("==" in requirement for requirement in peers.PEERS[name].requirements)


def test_a_program_says_its_rows_and_versions_and_may_say_other_things(place):
    rows, versions = program(
        place,
        """if True:
            print('{"versions": "one 1.0"}')
            print("hello")
            print('{"check": "a", "result": "all of it", "ok": true}')
        """,
    )
    assert (rows, versions) == ([GREEN], "one 1.0")


def test_a_program_that_fails_is_not_green_whatever_it_said_before(place):
    rows, _ = program(
        place, """print('{"check": "a", "result": "all of it", "ok": true}'); raise SystemExit(3)"""
    )
    assert rows == [
        GREEN,
        {"check": "the program", "result": "it ended with status 3", "ok": False},
    ]


def test_a_program_that_takes_too_long_is_ended_and_not_green(place):
    rows, _ = program(place, "import time; print('hello', flush=True); time.sleep(60)", limit=0.5)
    assert [row["ok"] for row in rows] == [False]


PIP_FAILS = """#!/bin/sh
echo "ERROR: No matching distribution found" >&2
exit 1
"""


def test_what_can_not_be_installed_is_said_and_fails_unless_it_is_optional(
    place, monkeypatch, capsys
):
    def create(environment, **_):
        python = environment / "bin" / "python"
        python.parent.mkdir(parents=True, exist_ok=True)
        python.write_text(PIP_FAILS)
        python.chmod(0o755)

    monkeypatch.setattr(peers.venv, "create", create)
    assert peers.main(["dynamo"]) == 2
    said = capsys.readouterr().err
    assert "dynamo: not run, as ai-dynamo-runtime==1.6.1 can't be installed here" in said
    assert "No matching distribution found" in said
    assert peers.main(["dynamo", "--optional"]) == 0


def test_a_name_that_is_no_peer_is_refused_with_those_that_are(capsys):
    with pytest.raises(SystemExit):
        peers.main(["nobody"])
    assert "no peer 'nobody'; there are: dynamo" in capsys.readouterr().err
