"""Write the figures of a benchmark's result into the README and the page on benchmarks.

    python scripts/bench_pages.py bench/results/DATE-NAME.json

Both pages have a block between two marks, made from the result that the first mark names. With
`--check` it writes nothing and fails if a page is not what its result says.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.pages import BLOCK, Run, benchmarks_block, readme_block, rewritten  # noqa: E402

PAGES: dict[Path, Callable[[Run], str]] = {
    ROOT / "README.md": readme_block,
    ROOT / "docs" / "explanation" / "benchmarks.md": benchmarks_block,
}


def main(arguments: list[str]) -> int:
    """Write or check the pages; return the exit status."""
    match arguments:
        case ["--check"]:
            wrong = [
                page for page in PAGES if page.read_text() != rewritten_page(page, named(page))
            ]
            for page in wrong:
                print(f"not what its result says: {page.relative_to(ROOT)}", file=sys.stderr)
            return int(bool(wrong))
        case [result] if not result.startswith("-"):
            made = {page: rewritten_page(page, Path(result).resolve()) for page in PAGES}
            for page, text in made.items():
                page.write_text(text)
            return 0
        case _:
            print(__doc__, file=sys.stderr)
            return 2


def named(page: Path) -> Path:
    """The result that a page names."""
    found = BLOCK.search(page.read_text())
    if found is None:
        raise ValueError(f"{page} has no block of figures")
    return ROOT / found["result"]


def rewritten_page(page: Path, result: Path) -> str:
    """A page with the figures of a result that is in this repository."""
    run = Run.of(json.loads(result.read_text()))
    return rewritten(page.read_text(), PAGES[page], run, str(result.relative_to(ROOT)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
