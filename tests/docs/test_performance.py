"""The page on performance says what the results say, and names tests that are there."""

import json
import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent.parent
PAGE = (REPOSITORY / "docs" / "explanation" / "performance.md").read_text()
RESULTS = re.compile(r"\]\(\.\./\.\./(bench/results/\S+-(costs|compiled)\.json)\)")
BUDGET = re.compile(r"^\| .+ \| \[`(test_\w+)`\]\(\.\./\.\./(tests/\S+\.py)\) \|$", re.MULTILINE)


def results(kind):
    (path,) = {path for path, of in RESULTS.findall(PAGE) if of == kind}
    return json.loads((REPOSITORY / path).read_text())


def table(heading):
    """The rows of the table under this line of headings."""
    _, _, below = PAGE.partition(heading + "\n")
    assert below, heading
    return [line for line in below.partition("\n\n")[0].splitlines()[1:] if line.startswith("|")]


def cost(name, which="least_ns"):
    return results("costs")["results"][name][which]


def test_the_costs_are_those_that_were_measured():
    assert table("| step | least, ns | median, ns |") == [
        f"| {name} | {row['least_ns']:,.0f} | {row['median_ns']:,.0f} |"
        for name, row in results("costs")["results"].items()
    ]


CALL = "a call of a C function (deque.append)"


@pytest.mark.parametrize(
    ("dear", "cheap", "times"),
    [
        ("send of 64 B over tcp", CALL, (70, 150)),
        ("send of 64 KiB over tcp", "send of 64 B over tcp", (2, 6)),
        ("a lock, taken and given back", CALL, (6, 10)),
        ("a turn of the loop", CALL, (70, 150)),
        ("await of a coroutine that does not wait", CALL, (2, 6)),
        ("the time (monotonic)", CALL, (1, 3)),
    ],
)
def test_the_proportions_are_those_that_the_page_reasons_with(dear, cheap, times):
    assert times[0] < cost(dear) / cost(cheap) < times[1]


def test_asking_is_much_faster_than_sleeping():
    sleeping = cost("round trip of two processes that sleep", "median_ns")
    asking = cost("round trip of two processes that ask", "median_ns")
    assert 3 < sleeping / asking < 5


def test_what_compiling_gave_is_what_was_measured():
    compiled = results("compiled")
    assert table("| path | plain | Cython | mypyc |") == [
        "| {} | {:,.0f} | {:,.0f} ({:.2f}) | {:,.0f} ({:.2f}) |".format(
            name,
            row["plain"],
            row["cython"],
            row["plain"] / row["cython"],
            row["mypyc"],
            row["plain"] / row["mypyc"],
        )
        for name, row in compiled["results"].items()
    ]
    assert f"Commit {compiled['about']['commit']}" in PAGE


def test_every_budget_that_the_page_names_is_a_test():
    named = BUDGET.findall(PAGE)
    assert len(named) == len(table("| path | test |")) > 10
    missing = [
        f"{path}::{name}"
        for name, path in named
        if f"def {name}(" not in (REPOSITORY / path).read_text()
    ]
    assert missing == []


def test_every_test_of_a_budget_is_on_the_page():
    budgets = sorted((REPOSITORY / "tests").glob("*/test_budget.py"))
    assert {
        (name, str(path.relative_to(REPOSITORY)))
        for path in budgets
        for name in re.findall(r"^def (test_\w+)", path.read_text(), re.MULTILINE)
    } <= set(BUDGET.findall(PAGE))


def test_the_words_to_measure_with_are_there():
    modules = re.findall(r"python -m (bench\.micro\.\w+)", PAGE)
    assert len(set(modules)) == 4
    for module in modules:
        assert (REPOSITORY / (module.replace(".", "/") + ".py")).exists()
