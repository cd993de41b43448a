"""The demo's two processes, with the toy engine: what they say, and that both always end."""

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

import demo.__main__
from demo.messages import Failed, Finished, Prompt, Status, Token, pack, unpack

REPOSITORY = Path(__file__).parent.parent.parent
LONG = "word " * 500


@contextmanager
def running(prompt=None, engine="toy"):
    """Start the demo as `make demo` does."""
    wanted = {"PYTHONPATH": str(REPOSITORY / "src"), "ENGINE": engine, "PROMPT": prompt or ""}
    process = subprocess.Popen(
        [sys.executable, "-m", "demo"],
        cwd=REPOSITORY,
        env=os.environ | wanted,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def engine_of(process) -> int:
    """The engine's process id, which the first line says."""
    line = process.stderr.readline().decode()
    return int(re.search(r"engine process (\d+)", line)[1])


def wait_for_the_first_word(process):
    assert process.stdout.read(4) == b"This"


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def eventually_gone(pid: int) -> bool:
    deadline = time.monotonic() + 10
    while is_alive(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not is_alive(pid)


def test_an_answer_is_printed_and_the_status_shown():
    with running("What is ZeroMQ?") as process:
        answer, status = process.communicate(timeout=20)
    assert process.returncode == 0
    assert answer.decode().strip() == (
        "This is the built-in toy engine, no language model. You asked: What is ZeroMQ?"
    )
    assert "toy engine (no language model): ready" in status.decode()
    assert re.search(r"first token after \d+ ms, then \d+ tokens/s", status.decode())


def test_questions_may_come_through_a_pipe():
    with running() as process:
        answers, _ = process.communicate(b"one?\n\ntwo?\n", timeout=20)
    assert process.returncode == 0
    assert re.findall(r"You asked: (\w+)", answers.decode()) == ["one", "two"]


def test_no_question_is_an_error_that_says_how_to_ask():
    with running() as process:
        answers, message = process.communicate(timeout=20)
    assert (process.returncode, answers) == (2, b"")
    assert b'make demo PROMPT="' in message


def test_an_unknown_engine_is_an_error_that_names_the_known_ones():
    with running("Hello?", engine="gpt") as process:
        answers, message = process.communicate(timeout=20)
    assert (process.returncode, answers) == (2, b"")
    assert b"smollm2 or toy" in message


def test_a_missing_model_is_said_and_never_replaced_unasked(monkeypatch, capsys):
    monkeypatch.setattr(demo.__main__, "why_no_model", lambda: "the weights are not installed")
    monkeypatch.delenv("ENGINE", raising=False)
    monkeypatch.setenv("PROMPT", "Hello?")
    assert demo.__main__.main() == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "the weights are not installed" in shown.err
    assert "ENGINE=toy make demo" in shown.err


def test_ctrl_c_ends_both_processes():
    with running(LONG) as process:
        engine = engine_of(process)
        wait_for_the_first_word(process)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)
        assert process.returncode == 130
        assert not is_alive(engine)


def test_an_engine_that_dies_is_an_error_and_no_hang():
    with running(LONG) as process:
        engine = engine_of(process)
        wait_for_the_first_word(process)
        os.kill(engine, signal.SIGKILL)
        _, message = process.communicate(timeout=20)
    assert process.returncode == 1
    assert b"the engine process was killed by SIGKILL" in message


def test_an_engine_does_not_outlive_its_api_process():
    with running(LONG) as process:
        engine = engine_of(process)
        wait_for_the_first_word(process)
        process.kill()
        assert eventually_gone(engine)


@pytest.mark.parametrize(
    "message",
    [
        Prompt(1, "Why?", 10),
        Token(1, "Because"),
        Finished(1, "stop"),
        Failed(1, "too long"),
        Status("toy", "ready", 0, 1, 0.5, 0.02, 80.0),
    ],
    ids=lambda message: type(message).__name__,
)
def test_a_message_is_one_frame_and_comes_back_the_same(message):
    assert unpack(pack(message)) == message


@pytest.mark.parametrize("frame", [b"", b"junk", b"\x91\xa5Token", b"\x92\xa3Nix\x01", b"\xc0"])
def test_a_frame_that_is_none_of_ours_is_refused(frame):
    with pytest.raises(ValueError, match="not a message of this demo"):
        unpack(frame)
