"""Choosing what to play, and in which order."""

import pytest

from bench.case import Lineup, Settings
from bench.cases import all_cases
from bench.cli import GIVE_UP_AFTER, lineups, main, parser, play_case, write
from bench.contenders import BY_NAME, CONTENDERS, Contender, choose, find
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
}


def names_of(case, contenders=CONTENDERS, *, by_name=False):
    return [lineup.name for lineup in lineups(all_cases()[case], contenders, by_name=by_name)]


def play(*failing):
    """A round without processes: fails for those named."""

    def played(case, lineup, transport, number, _settings):
        value = None if lineup.name in failing else 1.0
        return Round(case.name, transport, lineup.name, number, value, {}, "" if value else "no")

    return played


def test_every_case_has_a_name_of_its_own_and_a_contender():
    modules = [case for case in all_cases().values() if names_of(case.name)]
    assert len(modules) == len(all_cases()) >= 13


def test_blocking_and_asyncio_cases_have_their_own_contenders():
    assert names_of("inproc-threads") == ["zerohop", "pyzmq", "pyomq", "floor"]
    assert names_of("inproc-loop") == ["zerohop.asyncio", "zmq.asyncio", "pyomq.asyncio"]


def test_uvloop_plays_where_the_case_says_so_or_when_asked_by_name():
    uvloop = [BY_NAME["zmq.asyncio+uvloop"]]
    assert names_of("pushpull-64", uvloop) == ["zmq.asyncio+uvloop"]
    assert names_of("pushpull-1k", uvloop) == []
    assert names_of("pushpull-1k", uvloop, by_name=True) == ["zmq.asyncio+uvloop"]


def test_crossed_pairs_are_ours_and_pyzmq_both_ways_in_one_style():
    assert names_of("crossed") == [
        "zerohop -> pyzmq",
        "pyzmq -> zerohop",
        "zerohop.asyncio -> zmq.asyncio",
        "zmq.asyncio -> zerohop.asyncio",
    ]


def test_without_ours_the_others_are_crossed_with_pyzmq():
    assert names_of("crossed", [BY_NAME["pyzmq"], BY_NAME["pyomq"]]) == [
        "pyomq -> pyzmq",
        "pyzmq -> pyomq",
    ]


def test_each_role_of_a_pair_uses_its_own_library():
    pair = lineups(all_cases()["crossed"], [BY_NAME["zerohop"], BY_NAME["pyzmq"]], by_name=False)[0]
    assert pair.contender("sender").name == "zerohop"
    assert pair.contender("receiver").name == "pyzmq"


def test_contenders_take_turns_and_each_round_begins_with_another():
    playing = lineups(PUSHPULL, choose(["pyzmq"]), by_name=False)
    rounds = play_case(PUSHPULL, playing, "tcp", Settings(rounds=2), play())
    assert [(r.number, r.lineup) for r in rounds] == [
        (1, "pyzmq"),
        (1, "zmq.asyncio"),
        (1, "zmq.asyncio+uvloop"),
        (2, "zmq.asyncio"),
        (2, "zmq.asyncio+uvloop"),
        (2, "pyzmq"),
    ]


def test_a_contender_that_keeps_failing_does_not_keep_the_others_waiting():
    playing = lineups(PUSHPULL, choose(["pyzmq"]), by_name=False)
    rounds = play_case(PUSHPULL, playing, "tcp", Settings(rounds=5), play("pyzmq"))
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


def test_a_contender_that_is_not_installed_says_what_is_missing():
    ghost = Contender("ghost", "ghost", "no_such_module", "no_such_module", "ghost", "blocking")
    assert "No module named 'no_such_module'" in find(ghost).missing


def test_a_full_command_line_is_understood():
    line = "reqrep-64 import --against pyzmq,pyomq --rounds 5 --transports tcp,ipc --json a.json"
    options = parser().parse_args(line.split())
    assert (options.cases, options.against) == (["reqrep-64", "import"], ["pyzmq", "pyomq"])
    assert (options.rounds, options.transports, options.json.name) == (5, ["tcp", "ipc"], "a.json")


def test_the_list_names_every_case_and_contender(capsys):
    assert main(["--list"]) == 0
    said = capsys.readouterr().out
    assert [name for name in (*all_cases(), *BY_NAME) if f"  {name} " not in said] == []


def without_matplotlib(_stem, _cases, _rows):
    raise ImportError("No module named 'matplotlib'")


def test_a_run_is_written_as_json_and_as_a_page_also_without_pictures(tmp_path, capsys):
    playing = lineups(PUSHPULL, choose(["pyzmq"]), by_name=False)
    rounds = play_case(PUSHPULL, playing, "tcp", ONE, play())
    text = write(tmp_path / "new" / "run.json", ABOUT, [PUSHPULL], rounds, without_matplotlib)
    assert "no pictures" in capsys.readouterr().err
    assert (tmp_path / "new" / "run.md").read_text(encoding="utf-8") == text
    assert "![" not in text
    assert '"lineup": "zmq.asyncio"' in (tmp_path / "new" / "run.json").read_text(encoding="utf-8")


def test_the_page_shows_the_pictures_that_were_drawn(tmp_path):
    rounds = play_case(PUSHPULL, [Lineup(BY_NAME["pyzmq"], BY_NAME["pyzmq"])], "tcp", ONE, play())
    text = write(tmp_path / "a.json", ABOUT, [PUSHPULL], rounds, lambda *_: [tmp_path / "a-x.svg"])
    assert "![a-x.svg](a-x.svg)" in text
