"""The page of options is made from the table, and says what the table says."""

from pathlib import Path

from zerohop.constants import SocketOption
from zerohop.core.option_reference import markdown
from zerohop.core.option_table import TABLE

PAGE = Path(__file__).parent.parent.parent / "docs" / "reference" / "options.md"
LINES = {line.split(" ")[1]: line for line in markdown().splitlines() if line.startswith("| ")}


def test_the_page_in_the_repository_is_current():
    assert PAGE.read_text("utf-8") == markdown()


def test_every_option_is_on_the_page():
    for option in SocketOption:
        assert f"{option.name} ({int(option)})" in markdown()
    for row in TABLE.values():
        assert row.about in LINES[row.number.name]


def test_a_line_names_value_default_types_and_marks():
    assert LINES["LINGER"].startswith(
        "| LINGER (17) | ms; -1: without limit | -1 (SUB, XSUB: 0) | all | all | **live**. "
    )
    assert LINES["ROUTING_ID"].startswith(
        "| ROUTING_ID (5) | bytes: 1 to 255 octets | empty | all | all | "
    )
    assert LINES["REQ_RELAXED"].startswith(
        "| REQ_RELAXED (53) | 0; any positive number for 1 | 0 | - | REQ | **live**. "
    )
    assert LINES["EVENTS"].startswith("| EVENTS (15) |  |  | all | - | ")
    assert "**idle**. " in LINES["AFFINITY"]
