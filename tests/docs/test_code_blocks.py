"""Every Python block in the README and the docs runs, and prints what the page says it prints.

    ```python          a program of its own, run as one
    ```text            right after a Python block: its output ("..." stands for anything)
    <!-- continues --> before a Python block: it goes on where the previous one of the page stopped;
                       what the blocks before it print is not its output

Other blocks have to say what they are (`shell`, `text`, `toml`, `make`), so that no program hides
from this test behind a fence without a name.
"""

import doctest
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent.parent
PAGES = sorted([REPOSITORY / "README.md", *(REPOSITORY / "docs").rglob("*.md")])
NOT_PROGRAMS = {"shell", "text", "toml", "make"}
FENCE = re.compile(r"^```(?P<language>\S*)[^\n]*\n(?P<body>.*?)^```\s*$", re.MULTILINE | re.DOTALL)
CONTINUES = re.compile(r"<!-- continues -->\s*\Z")
FROM_HERE = "-- from here on it is the continued block's --"


@dataclass
class Block:
    """One fenced block; `body` of a continued program has the earlier blocks before it."""

    page: str
    line: int
    language: str
    body: str
    output: str | None = None


def read_blocks(page: str, text: str) -> list[Block]:
    blocks: list[Block] = []
    end = 0
    for fence in FENCE.finditer(text):
        between, end = text[end : fence.start()], fence.end()
        first_line = text.count("\n", 0, fence.start()) + 2
        block = Block(page, first_line, fence["language"], fence["body"])
        programs = [b for b in blocks if b.language == "python"]
        if block.language == "python":
            earlier = programs[-1].body if CONTINUES.search(between) else ""
            # Empty lines keep the line numbers of a traceback those of the page.
            gap = first_line - 1 - earlier.count("\n")
            mark = f"print({FROM_HERE!r})" if earlier else ""
            block.body = earlier + mark + "\n" * gap + block.body
        elif block.language == "text" and not between.strip() and blocks[-1:] == programs[-1:]:
            blocks[-1].output = block.body
        blocks.append(block)
    return blocks


BLOCKS = [b for p in PAGES for b in read_blocks(str(p.relative_to(REPOSITORY)), p.read_text())]
PROGRAMS = [block for block in BLOCKS if block.language == "python"]


@pytest.mark.parametrize("block", PROGRAMS, ids=lambda b: f"{b.page}:{b.line}")
def test_a_block_runs_and_prints_what_the_page_says(block, tmp_path):
    program = tmp_path / "block.py"
    program.write_text(block.body)
    done = subprocess.run(
        [sys.executable, "-W", "error", str(program)],
        capture_output=True,
        text=True,
        timeout=30,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(REPOSITORY / "src")},
    )
    assert done.returncode == 0, f"{block.page}, lines as there:\n{done.stderr}"
    if block.output is not None:
        printed = done.stdout.rpartition(FROM_HERE + "\n")[2]
        same = doctest.OutputChecker().check_output(block.output, printed, doctest.ELLIPSIS)
        assert same, f"the page says:\n{block.output}\nit prints:\n{printed}"


def test_every_other_block_says_what_it_is():
    unnamed = [
        f"{block.page}:{block.line}"
        for block in BLOCKS
        if block.language not in NOT_PROGRAMS | {"python"}
    ]
    assert unnamed == []


def test_the_readme_has_programs():
    assert [block for block in PROGRAMS if block.page == "README.md"]


def test_a_continued_block_has_the_earlier_one_before_it_on_its_own_lines():
    page = "a\n```python\nx = 1\n```\nb\n<!-- continues -->\n```python\nprint(x)\n```\n"
    first, second = read_blocks("page", page)
    assert (first.body, first.line) == ("\n\nx = 1\n", 3)
    mark = f"print({FROM_HERE!r})"
    assert second.body.splitlines() == ["", "", "x = 1", mark, "", "", "", "print(x)"]


def test_a_text_block_right_after_a_program_is_its_output():
    page = "```python\nprint(1)\n```\n\n```text\n1\n```\n\nwords\n\n```text\nno output\n```\n"
    program, *_ = read_blocks("page", page)
    assert program.output == "1\n"
