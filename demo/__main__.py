"""`make demo PROMPT="The capital of France is"`, or a chat loop: what is run, and with what.

Answers go to standard output as their tokens are made; everything else goes to standard error.
Environment: `PROMPT` (one question, then the end), `ENGINE` (`smollm2` or `toy`).
"""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec

from demo.models import MODELS, why_no_model
from demo.say import say

_QUESTION = "The capital of France is"


def main() -> int:
    """Run the demo; return the exit status."""
    if find_spec("msgspec") is None:
        say("The messages between the processes need msgspec, which is not installed.")
        say("With a network, once:  make demo  (or  pip install msgspec)")
        return 1
    engine = os.environ.get("ENGINE") or _choose_engine()
    if engine is None:
        return 1
    if engine not in MODELS:
        say(f"ENGINE={engine} is unknown; it can be {' or '.join(sorted(MODELS))}")
        return 2
    questions = _questions()
    from demo.terminal import run  # not before it is known that msgspec is there

    return run(engine, questions)


def _choose_engine() -> str | None:
    """Take the real model; where it is missing, say so and never replace it unasked."""
    missing = why_no_model()
    if missing is None:
        return "smollm2"
    say(f"The real model cannot run here: {missing}.")
    if sys.stdin.isatty() and not os.environ.get("PROMPT"):
        say("The built-in toy engine shows the messaging, but it is no language model.", end=" ")
        say("Use it? [y/N]", end=" ")
        if sys.stdin.readline().strip().lower() in {"y", "yes"}:
            return "toy"
    say("To see the messaging with the built-in toy engine instead:  ENGINE=toy make demo")
    return None


def _questions() -> list[str] | None:
    """List the questions to answer before ending; None means to ask the person, again and again."""
    if prompt := os.environ.get("PROMPT", "").strip():
        return [prompt]
    if sys.stdin.isatty():
        return None
    piped = [line.strip() for line in sys.stdin if line.strip()]
    if not piped:  # as in a script: nobody is there to ask, and it shall show something
        say(f'no question was given, as with  make demo PROMPT="{_QUESTION}", so it is that one')
    return piped or [_QUESTION]


if __name__ == "__main__":
    sys.exit(main())
