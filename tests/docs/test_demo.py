"""The demo's two processes, with the toy engine: what they say, and that both always end."""

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

import demo.__main__
from demo.blocks import BLOCK_SIZE, PromptBlocks
from zerohop.serving import PresentBlocks

REPOSITORY = Path(__file__).parent.parent.parent
LONG = "word " * 500
LONG_LINE = b"word " * 500 + b"\n"


@contextmanager
def running(prompt=None, engine="toy", stdin=subprocess.PIPE):
    """Start the demo as `make demo` does."""
    wanted = {"PYTHONPATH": str(REPOSITORY / "src"), "ENGINE": engine, "PROMPT": prompt or ""}
    process = subprocess.Popen(
        [sys.executable, "-m", "demo"],
        cwd=REPOSITORY,
        env=os.environ | wanted,
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def chatting():
    """Start the demo with a terminal to type into; yield it and the terminal's other end."""
    ours, its = os.openpty()
    try:
        with running(stdin=its) as process:
            yield process, ours
    finally:
        os.close(ours)
        os.close(its)


def wait_for(stream, pattern):
    """Read what a process says until the pattern is in it."""
    said = b""
    while not re.search(pattern, said.decode(errors="replace")):
        more = stream.read1(4096)
        assert more, said
        said += more


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
    shown = r"KV blocks of 8 tokens, by its events \(live\): 1 [0-9a-f]{16}\n"
    assert re.search(shown, status.decode())  # of 14 words


def test_questions_may_come_through_a_pipe():
    with running() as process:
        answers, _ = process.communicate(b"one?\n\ntwo?\n", timeout=20)
    assert process.returncode == 0
    assert re.findall(r"You asked: (\w+)", answers.decode()) == ["one", "two"]


def test_where_nobody_asks_it_asks_something_itself_and_says_how_to_ask():
    with running() as process:
        answers, message = process.communicate(timeout=20)
    assert process.returncode == 0
    assert b"You asked: The capital of France is" in answers
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


def test_missing_messages_are_said_with_what_to_do(monkeypatch, capsys):
    monkeypatch.setattr(demo.__main__, "find_spec", lambda name: None)
    assert demo.__main__.main() == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "pip install msgspec" in shown.err


def test_ctrl_c_aborts_in_the_engine_and_ends_both_processes():
    with running(LONG) as process:
        engine = engine_of(process)
        wait_for_the_first_word(process)
        process.send_signal(signal.SIGINT)
        _, message = process.communicate(timeout=20)
        assert process.returncode == 130
        assert re.search(r"the engine aborted a request after \d+ tokens", message.decode())
        assert not is_alive(engine)


def test_ctrl_c_in_a_chat_ends_the_answer_alone():
    with chatting() as (process, terminal):
        engine_of(process)
        os.write(terminal, LONG_LINE)
        wait_for_the_first_word(process)
        process.send_signal(signal.SIGINT)
        wait_for(process.stderr, r"the engine aborted a request after \d+ tokens")
        os.write(terminal, b"Still there?\n")
        wait_for(process.stdout, r"You asked: Still there\?")
        wait_for(process.stderr, r"KV blocks .+\n> ")  # or it would end that answer
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)
        assert process.returncode == 130


def test_a_chat_ends_with_the_input():
    with chatting() as (process, terminal):
        wait_for(process.stderr, r"> ")
        os.write(terminal, b"\x04")  # Ctrl-D
        process.communicate(timeout=20)
        assert process.returncode == 0


def test_an_engine_that_dies_is_an_error_and_no_hang():
    with running(LONG) as process:
        engine = engine_of(process)
        wait_for_the_first_word(process)
        os.kill(engine, signal.SIGKILL)
        _, message = process.communicate(timeout=20)
    assert process.returncode == 1
    assert re.search(r"engine engine-0 is gone \(.+\); request \S+ is lost", message.decode())
    assert b"its process was killed by SIGKILL" in message


def test_an_engine_that_dies_while_nobody_asks_is_said():
    with chatting() as (process, _):
        engine = engine_of(process)
        wait_for(process.stderr, r"> ")
        os.kill(engine, signal.SIGKILL)
        _, message = process.communicate(timeout=20)
    assert process.returncode == 1
    assert b"its process was killed by SIGKILL" in message


def test_an_engine_that_dies_while_it_loads_is_said():
    with running(LONG) as process:
        os.kill(engine_of(process), signal.SIGKILL)
        answer, message = process.communicate(timeout=20)
    assert (process.returncode, answer) == (1, b"")
    assert b"its process was killed by SIGKILL" in message


def test_an_engine_does_not_outlive_its_api_process():
    with running(LONG) as process:
        engine = engine_of(process)
        wait_for_the_first_word(process)
        process.kill()
        assert eventually_gone(engine)


PROMPTS = st.lists(st.lists(st.integers(0, 1), max_size=5 * BLOCK_SIZE), max_size=6)


@given(PROMPTS)
def test_a_view_made_of_the_events_has_the_full_blocks_of_the_last_prompt(prompts):
    blocks, view = PromptBlocks(), PresentBlocks()
    for prompt in prompts:
        view.apply(blocks.replace(prompt), 0)
        assert view.unknown_removals == 0
        assert len(view) == len(prompt) // BLOCK_SIZE
        assert blocks.replace(prompt) == []


def test_prompts_that_begin_alike_share_their_first_blocks():
    begin, end = [*range(BLOCK_SIZE)], [7] * BLOCK_SIZE
    blocks = PromptBlocks()
    (first,) = blocks.replace([*begin, *end])
    removed, stored = blocks.replace([*begin, *range(BLOCK_SIZE), 1])
    assert removed.block_hashes == first.block_hashes[1:]
    assert stored.parent_block_hash == first.block_hashes[0]
    assert stored.token_ids == [*range(BLOCK_SIZE)]
