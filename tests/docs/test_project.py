"""What a newcomer meets first: short, whole, and pointing at things that exist."""

import ast
import importlib.util
import json
import re
import tomllib
from pathlib import Path

import pytest
import zmq
import zmq.asyncio

import zerohop
import zerohop.asyncio

REPOSITORY = Path(__file__).parent.parent.parent
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
PAGES = sorted([REPOSITORY / "README.md", *(REPOSITORY / "docs").rglob("*.md")])
LINK = re.compile(r"\]\((?!https?:)(?P<path>[^)#\s]*)(?:#(?P<heading>[^)]*))?\)")
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
TEST = re.compile(r'^\[[\w-]+\]: \.\./(tests/\S+\.py) "(test_\w+)"$', re.MULTILINE)
LABEL = re.compile(r"\[test\]\[([\w-]+)\]")


def test_the_readme_fits_on_150_lines_and_shows_the_two_commands():
    text = (REPOSITORY / "README.md").read_text()
    assert len(text.splitlines()) <= 150
    assert "make demo" in text
    assert "make test" in text


def test_the_sockets_need_nothing_but_python():
    assert PROJECT["project"]["dependencies"] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(REPOSITORY)))
def test_links_lead_somewhere(page):
    dead = [
        link.group()
        for link in LINK.finditer(page.read_text())
        if not leads_somewhere(page.parent / (link["path"] or page.name), link["heading"])
    ]
    assert dead == []


def leads_somewhere(path: Path, heading: str | None) -> bool:
    return path.exists() and (heading is None or heading in anchors(path.read_text()))


def anchors(text: str) -> set[str]:
    """What a page's headings are linked by, as GitHub makes it of them."""
    found: dict[str, int] = {}
    for line in FENCED.sub("", text).splitlines():
        if line.startswith("#"):
            words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", line.lstrip("#").strip())
            anchor = re.sub(r"[^\w -]", "", words.lower()).replace(" ", "-")
            found[anchor] = found.get(anchor, 0) + 1
    again = {f"{anchor}-{n}" for anchor, count in found.items() for n in range(1, count)}
    return again | found.keys()


def test_an_anchor_is_the_heading_in_small_letters_without_its_marks():
    page = "# A `Name`: one, two\n```text\n# code\n```\n## Twice\n## Twice\n### [The](#x) x_y-z\n"
    assert anchors(page) == {"a-name-one-two", "twice", "twice-1", "the-x_y-z"}


def test_a_run_with_a_red_cell_makes_no_interop_table(tmp_path, monkeypatch, capsys):
    script = REPOSITORY / "scripts" / "interop_table.py"
    spec = importlib.util.spec_from_file_location("interop_table", script)
    interop_table = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(interop_table)
    page, results = tmp_path / "interop.md", tmp_path / "results"
    monkeypatch.setattr(interop_table, "PAGE", page)
    monkeypatch.setattr(interop_table, "RESULTS", results)
    versions = dict.fromkeys(("zerohop", "libzmq", "pyzmq", "python", "platform"), "1")
    run = {"pairs": ["REQ - REP"], "date": "today", "versions": versions, "cells": {}}
    run["cells"] = dict.fromkeys(interop_table.expected(run), True)
    old = f"Intro\n\n{interop_table.BEGIN}\nold\n{interop_table.END}\n"
    page.write_text(old)
    results.write_text(
        json.dumps(run | {"cells": run["cells"] | {"uvloop|ipc|REQ - REP|ours": False}})
    )
    assert interop_table.main() == 1
    assert page.read_text() == old
    assert "not green: uvloop|ipc|REQ - REP|ours" in capsys.readouterr().err
    results.write_text(json.dumps(run))
    assert interop_table.main() == 0
    assert "12 of 12 cells green" in page.read_text()


def test_every_dependency_has_its_reason():
    reasons = (REPOSITORY / "docs" / "explanation" / "dependencies.md").read_text().lower()
    extras = PROJECT["project"]["optional-dependencies"].values()
    names = {re.split(r"[\[<>=;! ]", wanted)[0] for extra in extras for wanted in extra}
    assert {name for name in names - {"zerohop"} if f"`{name.lower()}`" not in reasons} == set()


def test_the_version_stands_in_one_place():
    assert PROJECT["project"]["dynamic"] == ["version"]
    assert zerohop.__version__ == zerohop._version.__version__


def test_every_test_that_the_compatibility_page_names_exists():
    page = (REPOSITORY / "docs" / "compatibility.md").read_text()
    missing = [
        f"{path}::{name}"
        for path, name in TEST.findall(page)
        if f"def {name}(" not in (REPOSITORY / path).read_text()
    ]
    assert missing == []
    assert set(LABEL.findall(page)) == set(re.findall(r"^\[([\w-]+)\]:", page, re.MULTILINE))


def test_every_difference_from_pyzmq_that_a_contract_test_marks_is_on_the_page():
    page = (REPOSITORY / "docs" / "compatibility.md").read_text()
    named = {name for _, name in TEST.findall(page)}
    assert contract_tests_of_zerohop_alone() - named == set()


@pytest.mark.parametrize("name", ["Context", "Socket", "Poller"])
@pytest.mark.parametrize(("ours", "theirs"), [(zerohop, zmq), (zerohop.asyncio, zmq.asyncio)])
def test_every_attribute_that_pyzmq_does_not_have_is_on_the_page(ours, theirs, name):
    kind = getattr(theirs, name)
    known = {
        *dir(kind),
        *(n for base in kind.__mro__ for n in vars(base).get("__annotations__", ())),
    }
    # Options are looked up in theirs, and are attributes of the class in ours.
    known |= {each for option in dir(zmq) for each in (option, option.lower())}
    assert not_on_the_compatibility_page(set(dir(getattr(ours, name))) - known) == set()


def test_every_name_that_pyzmq_does_not_have_is_on_the_page():
    assert not_on_the_compatibility_page(set(zerohop.__all__) - set(dir(zmq))) == set()


def not_on_the_compatibility_page(names: set[str]) -> set[str]:
    page = (REPOSITORY / "docs" / "compatibility.md").read_text()
    return {name for name in names if not name.startswith("_") and name not in page}


def contract_tests_of_zerohop_alone() -> set[str]:
    """Names of the contract tests with the mark `zerohop`, their own or their file's."""
    marked = set()
    for path in (REPOSITORY / "tests" / "contract").glob("*.py"):
        module = ast.parse(path.read_text())
        tests = [n for n in module.body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
        marks = [ast.unparse(n) for n in module.body if isinstance(n, ast.Assign)]
        whole = any("pytestmark" in mark and "mark.zerohop" in mark for mark in marks)
        marked |= {
            test.name
            for test in tests
            if test.name.startswith("test_")
            and (whole or any("mark.zerohop" in ast.unparse(d) for d in test.decorator_list))
        }
    return marked
