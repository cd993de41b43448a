"""What the person sees: answers as their tokens are made, and what becomes of the engine.

Ctrl-C ends an answer in the chat loop, and else the demo.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
import time
from typing import TYPE_CHECKING

from demo.client import EngineProcess
from demo.models import MODELS
from demo.say import say
from zerohop.serving import EngineDead, RequestRefused, ServingError

if TYPE_CHECKING:
    from collections.abc import Iterator


def run(engine: str, questions: list[str] | None) -> int:
    """Answer the questions, or those that a person types (`None`); return the exit status."""
    # What the channel tells the log of an engine that is gone is said here.
    logging.getLogger("zerohop.serving").setLevel(logging.ERROR)
    try:
        asyncio.run(_talk(engine, questions))
    except ServingError as error:
        say("\n" + "\n".join([str(error), *getattr(error, "__notes__", ())]))
        return 1
    except KeyboardInterrupt:
        say("\nstopped")
        return 130
    return 0


async def _talk(model: str, questions: list[str] | None) -> None:
    async with EngineProcess(model) as engine:
        say(f"· API process {os.getpid()}, engine process {engine.pid}")
        say(f"· {MODELS[model].name}: loading ...")
        try:
            await engine.wait_ready()
            load_s = (await engine.status())["load_s"]
            say(f"· {engine.info['model']}: ready, loaded in {load_s:.1f} s")
            if questions is None:
                await _chat(engine)
            for question in questions or ():
                await _answer(engine, question)
        except EngineDead as error:
            error.add_note(f"its process {await engine.how_it_ended()}")
            raise


async def _chat(engine: EngineProcess) -> None:
    say("Type a question; Ctrl-C ends an answer, Ctrl-D the demo. Each question stands alone.")
    while question := await engine.while_running(_typed("> ")):
        if question.isspace():
            continue
        answering = asyncio.ensure_future(_answer(engine, question.strip()))
        try:
            with _ctrl_c_cancels(answering):
                await asyncio.wait([answering])
            await answering
        except RequestRefused as error:
            say(str(error))
        except asyncio.CancelledError:
            if not answering.cancelled():
                raise
            say("")


async def _answer(engine: EngineProcess, question: str) -> None:
    asked, times = time.monotonic(), []
    async for delta in engine.ask(question):
        if delta.extra is not None:
            times.append(time.monotonic())
            print(delta.extra, end="", flush=True)
    print(flush=True)
    if times:
        rate = (len(times) - 1) / max(times[-1] - times[0], 1e-3)
        say(f"· first token after {(times[0] - asked) * 1000:.0f} ms, then {rate:.0f} tokens/s")
    health, blocks = await engine.blocks()
    shown = " ".join(f"{each:016x}" for each in blocks[:3]) + (" ..." if len(blocks) > 3 else "")
    size = engine.info["block_size"]
    say(f"· KV blocks of {size} tokens, by its events ({health.value}): {len(blocks)} {shown}")


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
    say(invitation, end="")
    readable = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(sys.stdin.fileno(), readable.set)
    try:
        await readable.wait()
    finally:
        loop.remove_reader(sys.stdin.fileno())
    return os.read(sys.stdin.fileno(), 65536).decode(errors="replace")
