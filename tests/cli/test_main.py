"""The command line itself: usage, exit statuses, and a missing dependency."""

import signal
import subprocess
import sys

import pytest

import zerohop
from tests.cli.commands import COMMAND, SECONDS, is_waiting, running, wait_until
from zerohop.cli import main as cli
from zerohop.cli.main import main


def test_without_a_command_the_usage_is_shown(capsys):
    with pytest.raises(SystemExit) as ended:
        main([])
    assert ended.value.code == cli.WRONG_USE
    assert "usage: zerohop" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["fly"],
        ["ping"],
        ["ping", "tcp://127.0.0.1:1", "--timeout", "0"],
        ["ping", "tcp://127.0.0.1:1", "--timeout", "nan"],
        ["ping", "tcp://127.0.0.1:1", "--timeout", "-1"],
        ["ping", "tcp://127.0.0.1:1", "--timeout", "inf"],
        ["ping", "tcp://127.0.0.1:1", "--timeout", "soon"],
        ["kv"],
        ["kv", "tail"],
        ["kv", "tail", "tcp://127.0.0.1:1", "--count", "0"],
        ["kv", "record", "file"],
        ["kv", "play"],
        ["kv", "play", "file", "--speed", "0"],
        ["kv", "play", "file", "--wait", "-1"],
    ],
    ids=" ".join,
)
def test_a_wrong_command_line_is_told(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == cli.WRONG_USE
    assert "error:" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--speed", "fast"], "argument --speed: 'fast' is no number"),
        (["--speed", "inf"], "argument --speed: inf is not above 0 and below a million"),
        (["--wait", "1.5"], "argument --wait: '1.5' is no whole number"),
    ],
)
def test_what_is_no_number_is_told_in_words(arguments, told, capsys):
    with pytest.raises(SystemExit):
        main(["kv", "play", "file", *arguments])
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["tail", "inproc://x"],
        ["tail", "tcp://127.0.0.1:1", "--replay", "inproc://x"],
        ["record", "file", "tcp://127.0.0.1:1", "inproc://x"],
        ["play", "file", "--endpoint", "inproc://x"],
    ],
    ids=" ".join,
)
def test_nobody_else_is_at_an_endpoint_within_the_process(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["kv", *arguments])
    assert ended.value.code == cli.WRONG_USE
    assert "inproc is within a process, where nobody else is" in capsys.readouterr().err


def test_a_topic_is_text(capsys):
    with pytest.raises(SystemExit):
        main(["kv", "tail", "tcp://127.0.0.1:1", "--topic", "\udcff"])
    assert r"argument --topic: '\udcff' is no UTF-8" in capsys.readouterr().err


def test_help_is_no_failure(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["kv", "tail", "--help"])
    assert ended.value.code == 0
    assert "--replay" in capsys.readouterr().out


def test_the_version_is_that_of_the_package(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"zerohop {zerohop.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["ping", "tcp://127.0.0.1:1", "--lmcache", "0.1"], "has no PING"),
        (["ping", "tcp://127.0.0.1:1", "--lmcache", ""], "has no PING"),
        (["kv", "tail", "nowhere"], "nvalid"),
        (["kv", "play", "/nonexistent/file"], "/nonexistent/file: No such file"),
        (["kv", "play", "/"], "/: Is a directory"),
        (["kv", "play", "/dev/null"], "zerohop: /dev/null is no recording of KV events\n"),
        (["kv", "record", "/nonexistent/file", "tcp://127.0.0.1:1"], "file: No such file"),
        (["kv", "record", "/dev/full", "tcp://127.0.0.1:1"], "zerohop: No space left on device"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else value,
)
def test_what_fails_is_told_on_a_line_of_the_error_output(arguments, words, capsys):
    assert main(arguments) == cli.FAILED
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.splitlines()[-1].startswith("zerohop: ")
    assert words in shown.err


@pytest.mark.parametrize("closed", ["stdout", "stderr", "stdout and stderr"])
def test_an_output_that_the_caller_has_closed_is_missed_by_nobody(closed):
    shut = "".join({"stdout": ">&- ", "stderr": "2>&- "}[each] for each in closed.split(" and "))
    done = subprocess.run(
        ["/bin/sh", "-c", f'"$@" {shut}', "sh", *COMMAND, "ping", "ipc://nowhere"],
        capture_output=True, text=True, timeout=SECONDS,
    )  # fmt: skip
    assert done.returncode == cli.FAILED
    assert ("path_missing" in done.stdout) == ("stdout" not in closed)
    assert done.stderr == ""


def test_without_msgspec_it_is_said_how_to_install_it():
    program = (
        "import sys; sys.modules['msgspec'] = None\n"
        "from zerohop.cli.main import main\n"
        "sys.exit(main(['ping', 'tcp://127.0.0.1:1']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=SECONDS
    )
    assert done.returncode == cli.FAILED
    assert done.stderr == (
        "zerohop: msgspec is missing; in a clone of zerohop: pip install '.[cli]'\n"
    )


def test_another_missing_module_is_a_bug_and_shown_as_one(monkeypatch):
    def missing(_):
        raise ModuleNotFoundError("No module named 'zerohop.nothing'", name="zerohop.nothing")

    monkeypatch.setattr(cli, "import_module", missing)
    with pytest.raises(ModuleNotFoundError, match="nothing"):
        main(["ping", "tcp://127.0.0.1:1"])


def test_it_runs_as_a_module():
    with running("ping", "nowhere", "--json") as process:
        shown, complaints = process.communicate(timeout=SECONDS)
    assert process.returncode == 1
    assert '"finding": "bad_endpoint"' in shown
    assert complaints == ""


@pytest.mark.parametrize(
    "arguments",
    [
        ["ping", "ENDPOINT", "--timeout", "60"],
        ["kv", "tail", "ENDPOINT"],
        ["kv", "tail", "ENDPOINT", "--json"],
        ["kv", "record", "FILE", "ENDPOINT"],
    ],
    ids=" ".join,
)
@pytest.mark.parametrize(
    ("number", "status"),
    [(signal.SIGINT, cli.INTERRUPTED), (signal.SIGTERM, cli.TERMINATED)],
    ids=["ctrl_c", "sigterm"],
)
def test_a_signal_ends_a_command_with_its_status_and_no_traceback(
    number, status, arguments, tmp_path, listener
):
    endpoint, accepted = listener
    file = tmp_path / "file"
    names = {"ENDPOINT": endpoint, "FILE": str(file)}
    with running(*[names.get(word, word) for word in arguments]) as process:
        accepted()  # it is at work, or opens its file, whose header it writes when nothing comes
        wait_until(lambda: "record" not in arguments or (file.exists() and file.stat().st_size))
        # Before that it may have sockets that no variable holds yet.
        wait_until(lambda: is_waiting(process))
        process.send_signal(number)
        _, complaints = process.communicate(timeout=SECONDS)
    assert process.returncode == status
    assert "Traceback" not in complaints
    assert "Warning" not in complaints
