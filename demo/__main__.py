"""The terminal of the demo: `make demo PROMPT="The capital of France is"`, or a chat loop.

Answers go to standard output as their tokens are made; everything else goes to standard error.
Environment: `PROMPT` (one question, then the end), `ENGINE` (`smollm2` or `toy`).
"""

from __future__ import annotations

import asyncio
import os
import sys

from demo.client import EngineClient, EngineDied, PromptRefused
from demo.messages import CODEC
from demo.models import MODELS, why_no_model


def main() -> int:
    """Run the demo; return the exit status."""
    engine = os.environ.get("ENGINE") or _choose_engine()
    if engine is None:
        return 1
    if engine not in MODELS:
        _say(f"ENGINE={engine} is unknown; it can be {' or '.join(sorted(MODELS))}")
        return 2
    questions = _questions()
    if questions == []:
        _say('no question: give one as  make demo PROMPT="The capital of France is"')
        return 2
    try:
        asyncio.run(_talk(engine, questions))
    except (EngineDied, PromptRefused) as error:
        _say(f"\n{error}")
        return 1
    except KeyboardInterrupt:
        _say("\nstopped")
        return 130
    return 0


def _choose_engine() -> str | None:
    """Take the real model; where it is missing, say so and never replace it unasked."""
    missing = why_no_model()
    if missing is None:
        return "smollm2"
    _say(f"The real model cannot run here: {missing}.")
    if sys.stdin.isatty() and not os.environ.get("PROMPT"):
        _say("The built-in toy engine shows the messaging, but it is no language model.", end=" ")
        _say("Use it? [y/N]", end=" ")
        if sys.stdin.readline().strip().lower() in {"y", "yes"}:
            return "toy"
    _say("To see the messaging with the built-in toy engine instead:  ENGINE=toy make demo")
    return None


def _questions() -> list[str] | None:
    """List the questions to answer before ending; None means to ask the person, again and again."""
    if prompt := os.environ.get("PROMPT", "").strip():
        return [prompt]
    if sys.stdin.isatty():
        return None
    return [line.strip() for line in sys.stdin if line.strip()]


async def _talk(engine: str, questions: list[str] | None) -> None:
    async with EngineClient(engine) as client:
        _say(f"· API process {os.getpid()}, engine process {client.engine_pid}, {CODEC} between")
        first = await client.status_when(lambda _: True)
        if first.state != "ready":
            _say(f"· {first.engine}: {first.state} ...")
        ready = await client.status_when(lambda status: status.state == "ready")
        _say(f"· {ready.engine}: ready, loaded in {ready.load_s:.1f} s")
        if questions is not None:
            for question in questions:
                await _answer(client, question)
        else:
            _say("Type a question; Ctrl-D ends. Each question stands alone.")
            while question := await client.while_alive(_typed("> ")):
                if question.isspace():
                    continue
                try:
                    await _answer(client, question.strip())
                except PromptRefused as error:
                    _say(str(error))


async def _answer(client: EngineClient, question: str) -> None:
    answered = (await client.status_when(lambda _: True)).answered
    async for piece in client.ask(question):
        print(piece, end="", flush=True)
    print(flush=True)
    status = await client.status_when(lambda status: status.answered > answered)
    _say(
        f"· {status.engine}: {status.state}, {status.load} waiting; first token after "
        f"{status.first_token_s * 1000:.0f} ms, then {status.tokens_per_s:.0f} tokens/s"
    )


async def _typed(invitation: str) -> str:
    """Read one line from the terminal while the loop goes on; empty at its end (Ctrl-D)."""
    _say(invitation, end="")
    readable = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(sys.stdin.fileno(), readable.set)
    try:
        await readable.wait()
    finally:
        loop.remove_reader(sys.stdin.fileno())
    return os.read(sys.stdin.fileno(), 65536).decode(errors="replace")


def _say(text: str, end: str = "\n") -> None:
    print(text, end=end, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
