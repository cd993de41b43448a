"""Where a line for the user goes."""

import io
import logging
import subprocess
import sys
import textwrap

import pytest

from zerohop.io.report import report


def test_a_report_is_a_warning_of_the_log(caplog):
    report("50 % of it")
    assert caplog.record_tuples == [("zerohop", logging.WARNING, "50 % of it")]


def test_without_logging_it_is_a_line_on_stderr(monkeypatch, capsys):
    monkeypatch.delitem(sys.modules, "logging")
    report("the peer has left")
    assert capsys.readouterr().err == "the peer has left\n"
    assert "logging" not in sys.modules


def test_while_another_thread_imports_logging_it_is_a_line_on_stderr(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "logging", object())
    report("the peer has left")
    assert capsys.readouterr().err == "the peer has left\n"


@pytest.mark.parametrize("closed", [True, False], ids=["closed", "none"])
def test_where_there_is_no_stderr_it_goes_nowhere(monkeypatch, closed):
    gone = io.StringIO()
    gone.close()
    monkeypatch.delitem(sys.modules, "logging")
    monkeypatch.setattr(sys, "stderr", gone if closed else None)
    report("the peer has left")


def test_a_program_that_dies_of_ctrl_c_with_something_to_report_dies_of_the_signal():
    """What is reported after the exception must not make CPython forget it."""
    program = """
        import atexit
        from zerohop.io.report import report

        atexit.register(report, "the peer has left")
        raise KeyboardInterrupt
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, timeout=30
    )
    assert done.returncode == -2
    assert done.stderr.endswith(b"the peer has left\n")
