"""Real processes: a round gives a checked value, and it always ends."""

import os
import queue
import sys
import time

import pytest

from bench.case import Lineup, Settings
from bench.cases import all_cases
from bench.contenders import BY_NAME
from bench.rounds import Process, RoundError, conduct, play_round, shown

SHORT = Settings(rounds=1, warm_up_s=0.02, measure_s=0.05)


def floor_round(case, contender, transport):
    lineup = Lineup(BY_NAME[contender], BY_NAME[contender])
    return play_round(all_cases()[case], lineup, transport, 1, SHORT)


def start(code, role="receiver"):
    events = queue.Queue()
    return Process(role, [sys.executable, "-c", code], events), events


@pytest.mark.parametrize(
    ("case", "contender", "transport"),
    [
        ("pushpull-64", "floor", "tcp"),
        ("pushpull-256k", "floor", "ipc"),
        ("multipart", "floor", "tcp"),
        ("reqrep-64", "floor", "tcp"),
        ("reqrep-idle", "floor.asyncio", "tcp"),
        ("pushpull-4m", "floor", "tcp"),
        ("pushpull-4m", "floor.asyncio", "ipc"),
        ("inproc-threads", "floor", "inproc"),
        ("pushpull-64", "floor.asyncio", "ipc"),
        ("multipart", "floor.asyncio", "tcp"),
        ("reqrep-64", "floor.asyncio", "tcp"),
        ("import", "floor", ""),
    ],
)
def test_a_round_of_the_floor_gives_a_value(case, contender, transport):
    played = floor_round(case, contender, transport)
    assert (played.error, played.late) == ("", [])
    assert played.value is not None
    assert played.value > 0


@pytest.mark.interop
@pytest.mark.parametrize(
    ("case", "contender"),
    [
        ("ticker", "zmq.asyncio"),
        ("pubsub-1", "zmq.asyncio"),
        ("pubsub-8", "pyzmq"),
        ("topics-1k", "pyzmq"),
        ("router-8", "pyzmq"),
        ("router-8", "zmq.asyncio"),
        ("reconnect", "pyzmq"),
        ("connections", "pyzmq"),
        ("inproc-loop", "zmq.asyncio"),
        ("forward", "pyzmq"),
        ("proxy", "pyzmq"),
        ("lowrate-pull", "pyzmq"),
        ("lowrate-rep", "pyzmq"),
    ],
)
def test_a_round_of_libzmq_gives_a_value(case, contender):
    pyzmq = BY_NAME[contender]
    transport = all_cases()[case].transports[0]
    played = play_round(all_cases()[case], Lineup(pyzmq, pyzmq), transport, 1, SHORT)
    assert played.error == ""
    assert played.value is not None
    assert sum(result.get("lost", 0) for result in played.roles.values()) == 0
    assert played.took_s > 0


@pytest.mark.parametrize("case", ["forward", "proxy"])
def test_a_round_through_a_forwarder_ends_over_ipc_too(case):
    ours = BY_NAME["zerohop"]
    played = play_round(all_cases()[case], Lineup(ours, ours), "ipc", 1, SHORT)
    assert (played.error, played.late) == ("", [])
    assert played.roles["client"]["messages"] > 0


def test_a_process_that_says_nothing_fails_its_round_in_time_and_is_ended():
    process, events = start("import time; time.sleep(60)")
    began = time.monotonic()
    try:
        with pytest.raises(RoundError, match="no result from the receiver within 0 s"):
            conduct({"receiver": process}, events, 0.2)
    finally:
        process.end()
    assert time.monotonic() - began < 10
    with pytest.raises(ProcessLookupError):
        os.kill(process.pid, 0)


def test_a_process_that_dies_fails_its_round_with_its_last_words():
    process, events = start("raise SystemExit('out of luck')")
    try:
        with pytest.raises(RoundError, match="receiver ended without a result: out of luck"):
            conduct({"receiver": process}, events, 20)
    finally:
        process.end()


def test_a_role_that_fails_fails_the_round_with_its_error():
    process, events = start("""print('{"error": "OSError: no"}')""")
    try:
        with pytest.raises(RoundError, match="receiver: OSError: no"):
            conduct({"receiver": process}, events, 20)
    finally:
        process.end()


def test_a_worker_ends_by_itself_at_its_limit_and_says_where_it_was():
    process, events = start(
        "import faulthandler, time; faulthandler.dump_traceback_later(0.1, exit=True)\n"
        "time.sleep(60)"
    )
    try:
        with pytest.raises(RoundError, match=r'stuck in File "<string>", line 2 in <module>'):
            conduct({"receiver": process}, events, 20)
    finally:
        process.end()


def test_an_unknown_case_fails_the_round_and_not_the_run():
    process, events = start("import bench.worker; bench.worker.main()")
    process.say('{"case": "none", "settings": {}, "contender": "floor", "endpoint": ""}')
    try:
        with pytest.raises(RoundError, match="no case is called 'none'"):
            conduct({"receiver": process}, events, 20)
    finally:
        process.end()


def test_what_is_shown_has_one_short_line_and_no_path_of_this_machine():
    text = shown(f"Traceback\n  File {sys.prefix}/lib/x.py\nValueError: {os.getcwd()} " + "x" * 300)
    assert text.startswith("ValueError: ")
    assert os.getcwd() not in text
    assert len(text) == 200
