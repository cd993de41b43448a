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
