"""The terminal of the demo: `make demo PROMPT="The capital of France is"`, or a chat loop.

Answers go to standard output as their tokens are made; everything else goes to standard error.
Ctrl-C ends an answer in the chat loop, and else the demo.
Environment: `PROMPT` (one question, then the end), `ENGINE` (`smollm2` or `toy`).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
import time
from importlib.util import find_spec
from typing import TYPE_CHECKING

from demo.models import MODELS, why_no_model

if TYPE_CHECKING:
    from collections.abc import Iterator

    from demo.client import EngineProcess


def main() -> int:
    """Run the demo; return the exit status."""
    if find_spec("msgspec") is None:
        _say("The messages between the processes need msgspec, which is not installed.")
        _say("With a network, once:  make demo  (or  pip install msgspec)")
        return 1
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
    return _run(engine, questions)


def _run(engine: str, questions: list[str] | None) -> int:
    from zerohop.serving import ServingError  # not before it is known that msgspec is there

    logging.getLogger("zerohop.serving").setLevel(
        logging.ERROR
    )  # we say what becomes of the engine
    try:
        asyncio.run(_talk(engine, questions))
    except ServingError as error:
        _say("\n" + "\n".join([str(error), *getattr(error, "__notes__", ())]))
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


async def _talk(model: str, questions: list[str] | None) -> None:
    from demo.client import EngineProcess
    from zerohop.serving import EngineDead

    async with EngineProcess(model) as engine:
        _say(f"· API process {os.getpid()}, engine process {engine.pid}")
        _say(f"· {MODELS[model].name}: loading ...")
        await engine.wait_ready()
        _say(
            f"· {engine.info['model']}: ready, loaded in {(await engine.status())['load_s']:.1f} s"
        )
        try:
            if questions is None:
                await _chat(engine)
            for question in questions or ():
                await _answer(engine, question)
        except EngineDead as error:
            error.add_note(f"its process {await engine.how_it_ended()}")
            raise


async def _chat(engine: EngineProcess) -> None:
    from zerohop.serving import RequestRefused

    _say("Type a question; Ctrl-C ends an answer, Ctrl-D the demo. Each question stands alone.")
    while question := await engine.while_running(_typed("> ")):
        if question.isspace():
            continue
        answering = asyncio.ensure_future(_answer(engine, question.strip()))
        try:
            with _ctrl_c_cancels(answering):
                await asyncio.wait([answering])
            await answering
        except RequestRefused as error:
            _say(str(error))
        except asyncio.CancelledError:
            if not answering.cancelled():
                raise
            _say("")


async def _answer(engine: EngineProcess, question: str) -> None:
    asked, times = time.monotonic(), []
    async for delta in engine.ask(question):
        if delta.extra is not None:
            times.append(time.monotonic())
            print(delta.extra, end="", flush=True)
    print(flush=True)
    if times:
        rate = (len(times) - 1) / max(times[-1] - times[0], 1e-3)
        _say(f"· first token after {(times[0] - asked) * 1000:.0f} ms, then {rate:.0f} tokens/s")
    health, blocks = await engine.blocks()
    shown = " ".join(f"{each:016x}" for each in blocks[:3]) + (" ..." if len(blocks) > 3 else "")
    size = engine.info["block_size"]
    _say(f"· KV blocks of {size} tokens, by its events ({health.value}): {len(blocks)} {shown}")


@contextlib.contextmanager
def _ctrl_c_cancels(task: asyncio.Future[None]) -> Iterator[None]:
    """Let Ctrl-C mean this task, and not the program."""
    loop = asyncio.get_running_loop()

    def cancel(*_: object) -> None:
        loop.call_soon_threadsafe(task.cancel)

    before = signal.signal(signal.SIGINT, cancel)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


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
