"""Choosing what to play, and in which order."""

import json
from pathlib import Path

import pytest

from bench.case import Lineup, Settings
from bench.cases import all_cases
from bench.cli import (
    GIVE_UP_AFTER,
    LOCAL,
    RESULTS,
    destination,
    main,
    parser,
    play_entry,
    taken,
    write,
)
from bench.contenders import BY_NAME, Contender, Presence, choose, find
from bench.plan import Entry, lineups
from bench.rounds import Round

ONE = Settings(rounds=1)
PUSHPULL = all_cases()["pushpull-64"]
ABOUT = {
    "name": "test",
    "date": "2026-01-02",
    "machine": dict.fromkeys(
        [
            "cpu",
            "cores",
            "virtual",
            "memory_gib",
            "system",
            "python",
            "loop",
            "commit",
            "load_before",
            "load_after",
        ],
        "?",
    ),
    "versions": {},
    "settings": {"rounds": 1, "warm_up_s": 0.2, "measure_s": 1.0},
    "skipped": {},
    "taken": {"rounds": 1, "seconds": 1.0, "busy": 0, "entries": {}},
}


def play(*failing):
    """A round without processes: fails for those named."""

    def played(case, lineup, transport, number, _settings):
        value = None if lineup.name in failing else 1.0
        return Round(case.name, transport, lineup.name, number, value, {}, "" if value else "no")

    return played


def entry(family, transport="tcp"):
    return Entry(PUSHPULL, transport, lineups(PUSHPULL, choose([family]), by_name=False))


def test_contenders_take_turns_and_each_round_begins_with_another():
    rounds = play_entry(entry("pyzmq"), Settings(rounds=2), play())
    assert [(r.number, r.lineup) for r in rounds] == [
        (1, "pyzmq"),
        (1, "zmq.asyncio"),
        (1, "zmq.asyncio+uvloop"),
        (2, "zmq.asyncio"),
        (2, "zmq.asyncio+uvloop"),
        (2, "pyzmq"),
    ]


def test_a_contender_that_keeps_failing_does_not_keep_the_others_waiting():
    rounds = play_entry(entry("pyzmq"), Settings(rounds=5), play("pyzmq"))
    turns = [r.lineup for r in rounds]
    assert (turns.count("pyzmq"), turns.count("zmq.asyncio")) == (GIVE_UP_AFTER, 5)


def test_choosing_by_library_and_by_name():
    assert [c.name for c in choose(["floor"])] == ["floor", "floor.asyncio"]
    assert [c.name for c in choose([], ["zmq.asyncio", "zerohop"])] == ["zerohop", "zmq.asyncio"]


@pytest.mark.parametrize("arguments", [["nothing"], ["--against", "zmqx"], ["--contenders", "x"]])
def test_an_unknown_name_is_answered_with_the_known_ones(arguments, capsys):
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 2
    assert "there are: " in capsys.readouterr().err


def test_libraries_and_contenders_are_named_once_each(capsys):
    with pytest.raises(SystemExit):
        main(["--against", "x"])
    assert capsys.readouterr().err.rstrip().endswith(": zerohop, pyzmq, pyomq, floor")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ("--rounds 0", "'0' is not a whole number from 1 to"),
        ("--rounds 1.5", "'1.5' is not a whole number from 1 to"),
        ("--seconds 0", "'0' is not a number from 0.01 to"),
        ("--seconds -1", "'-1' is not a number from 0.01 to"),
        ("--seconds nan", "'nan' is not a number from 0.01 to"),
        ("--transports tcp,udp", "no transport is called 'udp'; there are: tcp, ipc"),
        ("--against ,", "',' names nothing"),
    ],
)
def test_what_cannot_be_measured_is_refused_before_anything_is(capsys, arguments, text):
    with pytest.raises(SystemExit) as end:
        main(["pushpull-64", *arguments.split()])
    assert end.value.code == 2
    assert text in capsys.readouterr().err


def test_a_run_that_nobody_can_play_ends_at_once_and_writes_nothing(tmp_path, capsys):
    path = tmp_path / "x.json"
    assert main(["ticker", "--contenders", "floor", "--json", str(path)]) == 2
    assert "none of these contenders can play any of these cases" in capsys.readouterr().err
    assert not path.exists()


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("--name sockets", RESULTS / "2026-01-02-sockets.json"),
        ("reqrep-64 import", LOCAL / "2026-01-02-reqrep-64-import.json"),
        ("", LOCAL / "2026-01-02-everything.json"),
        ("--json a/b.json --name x", Path("a/b.json")),
        ("--quick", None),
        ("--quick --json b.json", Path("b.json")),
    ],
)
def test_only_a_result_with_a_name_is_written_where_git_looks(line, path):
    assert destination(parser().parse_args(line.split()), "2026-01-02") == path


def test_a_case_that_is_named_twice_is_played_once(monkeypatch):
    played = []
    monkeypatch.setattr("bench.cli.run", lambda cases, *_: played.extend(cases) or 0)
    assert main(["reqrep-64", "reqrep-64"]) == 0
    assert [case.name for case in played] == ["reqrep-64"]


def test_a_contender_that_is_not_installed_says_what_is_missing():
    ghost = Contender("ghost", "ghost", "no_such_module", "no_such_module", "ghost", "blocking")
    assert "No module named 'no_such_module'" in find(ghost).missing


def test_a_full_command_line_is_understood():
    line = "reqrep-64 import --against pyzmq,pyomq --rounds 5 --transports tcp,ipc --json a.json"
    options = parser().parse_args(line.split())
    assert (options.cases, options.against) == (["reqrep-64", "import"], ["pyzmq", "pyomq"])
    assert (options.rounds, options.transports, options.json.name) == (5, ["tcp", "ipc"], "a.json")


def test_the_list_names_every_case_and_contender(capsys, monkeypatch):
    monkeypatch.setattr("bench.cli.find", lambda _contender: Presence({"x": "1"}))
    assert main(["--list"]) == 0
    said = capsys.readouterr().out
    assert [name for name in (*all_cases(), *BY_NAME) if f"  {name} " not in said] == []
    assert "together about " in said


def without_matplotlib(_stem, _cases, _rows):
    raise ImportError("No module named 'matplotlib'")


def test_a_run_is_written_as_json_and_as_a_page_also_without_pictures(tmp_path, capsys):
    rounds = play_entry(entry("pyzmq"), ONE, play())
    text = write(tmp_path / "run.json", ABOUT, [PUSHPULL], rounds, without_matplotlib)
    assert "no pictures" in capsys.readouterr().err
    assert (tmp_path / "run.md").read_text(encoding="utf-8") == text
    assert "![" not in text
    written = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))
    assert [row["lineup"] for row in written["rows"]] == [played.lineup for played in rounds]
    assert [played["value"] for played in written["rounds"]] == [1.0] * 3


def test_the_page_shows_the_pictures_that_were_drawn(tmp_path):
    alone = [Lineup(BY_NAME["pyzmq"], BY_NAME["pyzmq"])]
    rounds = play_entry(Entry(PUSHPULL, "tcp", alone), ONE, play())
    text = write(tmp_path / "a.json", ABOUT, [PUSHPULL], rounds, lambda *_: [tmp_path / "a-x.svg"])
    assert "![a-x.svg](a-x.svg)" in text


def test_how_long_each_case_took_is_added_up_and_disturbed_rounds_are_counted():
    rounds = [
        Round("a", "tcp", "pyzmq", 1, 1.0, {}, took_s=0.5, busy={"others": 0.5, "stolen": 0.0}),
        Round("a", "tcp", "pyomq", 1, 1.0, {}, took_s=1.0, busy={"others": 0.01, "stolen": 0.0}),
        Round("b", "", "pyzmq", 1, 1.0, {}, took_s=2.0),
    ]
    assert taken(rounds, 4.0) == {
        "rounds": 3,
        "seconds": 4.0,
        "busy": 1,
        "entries": {"a tcp": 1.5, "b": 2.0},
    }


def test_a_disturbed_round_is_marked_where_it_is_played(capsys):
    def played(case, lineup, transport, number, _settings):
        return Round(case.name, transport, lineup.name, number, 1.0, {}, busy={"others": 0.9})

    play_entry(entry("pyomq"), ONE, played)
    assert "pyomq 1*, pyomq.asyncio 1*" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "transports"),
    [
        ("pushpull-64", {"tcp"}),
        ("pushpull-64 --transports ipc", {"ipc"}),
        ("pushpull-64 inproc-threads --transports tcp,ipc", {"tcp", "ipc", "inproc"}),
    ],
)
def test_cases_by_name_are_played_over_tcp_or_over_what_is_asked(monkeypatch, line, transports):
    asked = []

    def played(case, lineup, transport, number, _settings):
        asked.append(transport)
        return Round(case.name, transport, lineup.name, number, 1.0, {})

    monkeypatch.setattr("bench.cli.play_round", played)
    assert main([*line.split(), "--quick", "--contenders", "floor"]) == 0
    assert set(asked) == transports


def test_a_library_that_is_missing_is_skipped_and_named(monkeypatch, capsys, tmp_path):
    def played(case, lineup, transport, number, _settings):
        return Round(case.name, transport, lineup.name, number, 1.0, {})

    def written(_path, about, _cases, _rounds):
        return f"skipped on the page: {about['skipped']}"

    ghost = Contender("ghost", "ghost", "no_such_module", "no_such_module", "ghost", "blocking")
    monkeypatch.setattr("bench.cli.play_round", played)
    monkeypatch.setattr("bench.cli.write", written)
    monkeypatch.setattr("bench.cli.choose", lambda *_: (BY_NAME["floor"], ghost))
    assert main(["pushpull-64", "--quick", "--json", str(tmp_path / "x.json")]) == 0
    said = capsys.readouterr().out
    reason = "ModuleNotFoundError: No module named 'no_such_module'"
    assert f"skipped: ghost: {reason}" in said
    assert f"skipped on the page: { ({'ghost': reason}) }" in said


@pytest.mark.parametrize(("contender", "status"), [("zerohop", 1), ("pyzmq", 0)])
def test_only_our_own_failures_make_the_run_fail(monkeypatch, capsys, contender, status):
    def failed(case, lineup, transport, number, _settings):
        return Round(case.name, transport, lineup.name, number, None, {}, "it hung")

    monkeypatch.setattr("bench.cli.play_round", failed)
    assert main(["pushpull-64", "--quick", "--contenders", contender]) == status
    assert f"failed: pushpull-64 tcp {contender}: it hung" in capsys.readouterr().err
