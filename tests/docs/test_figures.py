"""The figures of speed on the pages are those of the result that the pages name."""

import importlib.util
import json
import re
import shutil
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent.parent
PAGES = [REPOSITORY / "README.md", REPOSITORY / "docs" / "explanation" / "benchmarks.md"]
SCRIPT = REPOSITORY / "scripts" / "bench_pages.py"


@pytest.fixture
def script():
    spec = importlib.util.spec_from_file_location("bench_pages", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def copy(script, tmp_path, monkeypatch):
    """The script over a copy of the pages and of their result."""
    pages = {}
    for page, block in script.PAGES.items():
        place = tmp_path / page.relative_to(script.ROOT)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(page, place)
        pages[place] = block
    result = script.named(PAGES[0])
    place = tmp_path / result.relative_to(script.ROOT)
    place.parent.mkdir(parents=True)
    shutil.copy(result, place)
    monkeypatch.setattr(script, "ROOT", tmp_path)
    monkeypatch.setattr(script, "PAGES", pages)
    return script


def test_the_pages_say_what_their_result_says(script, capsys):
    assert script.main(["--check"]) == 0, capsys.readouterr().err


def test_both_pages_name_the_same_result(script):
    assert len({script.named(page) for page in PAGES}) == 1


def test_a_figure_that_is_not_the_result_s_is_found(copy, capsys):
    readme = next(page for page in copy.PAGES if page.name == "README.md")
    text = readme.read_text()
    changed = re.sub(r"\*\*(\d)", r"**9\1", text, count=1)
    assert changed != text
    readme.write_text(changed)
    assert copy.main(["--check"]) == 1
    assert capsys.readouterr().err == "not what its result says: README.md\n"


def test_one_command_writes_the_figures_of_another_result(copy):
    document = json.loads(copy.named(next(iter(copy.PAGES))).read_text())
    another = copy.ROOT / "bench" / "results" / "2026-01-02-another.json"
    another.write_text(json.dumps(document | {"date": "2026-01-02"}))
    assert copy.main([str(another)]) == 0
    assert copy.main(["--check"]) == 0
    for page in copy.PAGES:
        assert copy.named(page) == another
        assert "rounds on 2026-01-02" in page.read_text()


@pytest.mark.parametrize("arguments", [[], ["--what"], ["a", "b"]])
def test_without_a_result_the_script_says_what_it_wants(script, capsys, arguments):
    assert script.main(arguments) == 2
    assert "python scripts/bench_pages.py bench/results/" in capsys.readouterr().err


SERVING = sorted((REPOSITORY / "docs" / "explanation").glob("serving-*.md"))
MEASURED = [page for page in SERVING if "## What it costs" in page.read_text()]


def figures_of(value) -> set[float]:
    """All numbers of a JSON document."""
    if isinstance(value, dict):
        return figures_of([*value.values()])
    if isinstance(value, list):
        return set().union(*map(figures_of, value))
    return {float(value)} if isinstance(value, int | float) else set()


def cells_of(text: str) -> list[str]:
    """What a page's table of costs has measured: not what, in the first column, nor its aim."""
    table = re.search(r"^\|.*(?:\n\|.*)+", text.partition("## What it costs")[2], re.MULTILINE)
    rows = [line.split("|")[2:-2] for line in table.group().splitlines()[2:]]
    return [cell for row in rows for cell in row]


@pytest.mark.parametrize("page", MEASURED, ids=lambda page: page.name)
def test_the_costs_of_serving_are_those_of_the_result_that_the_page_names(page):
    text = page.read_text()
    (result,) = re.findall(r"\[figures\]\(\.\./\.\./(bench/results/\S+\.json)\)", text)
    measured = figures_of(json.loads((REPOSITORY / result).read_text())["results"])
    shown = [
        n.replace(",", "") for cell in cells_of(text) for n in re.findall(r"\d[\d,.]*\d|\d", cell)
    ]
    assert len(shown) > 10
    assert [n for n in shown if not any(is_rounded(n, figure) for figure in measured)] == []


def is_rounded(shown: str, figure: float) -> bool:
    """Whether a figure was rounded to this: to its decimals, or to the places before its zeros."""
    decimals = len(shown.partition(".")[2])
    zeros = len(shown) - len(shown.rstrip("0")) if "." not in shown else 0
    return round(figure, decimals - zeros) == float(shown)


def test_a_figure_is_rounded_to_the_places_that_are_shown():
    assert is_rounded("955000", 955_497.2)
    assert is_rounded("0.08", 0.0836)
    assert is_rounded("212", 211.6)
    assert not is_rounded("956000", 955_497.2)
    assert not is_rounded("0.09", 0.0836)
