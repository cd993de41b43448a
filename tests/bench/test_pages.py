"""The figures of the README and of the page on benchmarks, from a run's rounds."""

from dataclasses import asdict

import pytest

from bench.pages import MOST, Run, benchmarks_block, readme_block, rewritten
from bench.rounds import Round

RESULT = "bench/results/2026-01-02-test.json"
PAGE = f"""\
Before

<!-- figures: {RESULT}, by scripts/bench_pages.py -->
old
<!-- end of the figures -->

After
"""


def run_of(*figures):
    """A run with one round of each case, contender and value, and perhaps details."""
    rounds = [
        Round(
            case,
            "tcp",
            contender,
            1,
            value,
            {"receiver": {"cpu_s": 1.0, "messages": 1, "detail": dict(detail)}},
        )
        for case, contender, value, *detail in figures
    ]
    machine = {"cpu": "Z80", "cores": 1, "python": "CPython 3.99", "commit": "abc1234"}
    return Run.of(
        {
            "date": "2026-01-02",
            "machine": machine,
            "versions": {"zerohop": "9.9"},
            "settings": {"rounds": 1},
            "rounds": [asdict(played) for played in rounds],
        }
    )


def test_a_block_is_replaced_between_its_marks_and_names_its_result():
    page = rewritten(PAGE, lambda run: f"made on {run.document['date']}", run_of(), "other.json")
    assert page == PAGE.replace(RESULT, "other.json").replace(
        "\nold\n", "\n\nmade on 2026-01-02\n\n"
    )


@pytest.mark.parametrize("page", ["no block", PAGE + PAGE])
def test_a_page_has_one_block(page):
    with pytest.raises(ValueError, match="one block of figures"):
        rewritten(page, readme_block, run_of(), RESULT)


def test_the_readme_has_the_best_in_bold_and_no_more_digits_than_there_are():
    text = readme_block(
        run_of(
            ("pushpull-64", "zerohop", 1_234_567.0),
            ("pushpull-64", "pyzmq", 99.96),
            ("reqrep-64", "zerohop", 120.0),
            ("reqrep-64", "pyomq", 60.0),
        )
    )
    assert "| PUSH/PULL, blocking, msg/s | **1,230,000** | 100 | - |" in text
    assert "| REQ/REP round trip, blocking, µs | 120 | - | **60** |" in text
    assert "asyncio" not in text
    assert "1 rounds on 2026-01-02, Z80, 1 cores, CPython 3.99; zerohop 9.9." in text


def test_where_we_lose_stands_with_both_figures_the_worst_first_to_the_best_rival():
    text = readme_block(
        run_of(
            ("pushpull-64", "zerohop", 100.0),
            ("pushpull-64", "pyzmq", 150.0),
            ("pushpull-64", "pyomq", 200.0),
            ("reqrep-64", "zerohop", 90.0, ("p99 µs", 200.0)),
            ("reqrep-64", "pyzmq", 30.0, ("p99 µs", 190.0)),
        )
    )
    lost = text.partition("Where we lose")[2].splitlines()[4:]
    assert [line for line in lost if line] == [
        "| REQ and REP, round trip of 64 B, median (p50) (tcp), µs "
        "| zerohop 90 | pyzmq 30 | 3.00 |",
        "| PUSH to PULL, 64 B (tcp), msg/s | zerohop 100 | pyomq 200 | 2.00 |",
    ]


def test_the_readme_says_how_many_losses_it_leaves_out():
    sizes = ("16", "64", "128", "1k", "16k", "256k", "4m")
    figures = [
        (f"pushpull-{size}", name, value)
        for size in sizes
        for name, value in (
            ("zerohop", 1.0),
            ("pyzmq", 2.0),
            ("zerohop.asyncio", 1.0),
            ("zmq.asyncio", 2.0),
        )
    ]
    text = readme_block(run_of(*figures))
    assert f"And in {2 * len(sizes) - MOST} more figures" in text
    assert text.count("| 2.00 |") == MOST


def test_the_page_on_benchmarks_has_every_loss_and_what_was_not_reached():
    text = benchmarks_block(
        run_of(
            ("pushpull-64", "zerohop", 100.0),
            ("pushpull-64", "pyzmq", 101.0),
            ("pushpull-64", "pyomq", 102.0),
        )
    )
    assert "0 of 1 required figures were reached. Not reached:" in text
    assert "* blocking PUSH/PULL 64 B over tcp: 0.99 where >= 1.2 x pyzmq is asked" in text
    assert "| zerohop 100 | pyzmq 101 | 1.01 |" in text
    assert "| zerohop 100 | pyomq 102 | 1.02 |" in text
    assert "commit abc1234" in text
