"""The engine process: answers prompts with a model, token by token, and tells of its KV blocks.

It answers one prompt at a time. Between two tokens it looks at the channel: at new prompts, at
calls, and at those that nobody wants any more. It ends when no API server is left.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import deque
from typing import TYPE_CHECKING

from demo.blocks import BLOCK_SIZE, PromptBlocks
from demo.messages import Prompt
from demo.models import MODELS, Model
from zerohop.serving import Delta, EngineServer, KvEventPublisher

if TYPE_CHECKING:
    from zerohop.serving import Request

_LOOK_EVERY_S = 0.2
_UNWANTED_AFTER_S = 10.0  # without any API server from the start: it has died while we loaded


class Engine:
    """One model behind an engine channel."""

    def __init__(
        self, model: Model, load_s: float, server: EngineServer, publisher: KvEventPublisher
    ) -> None:
        self._model = model
        self._load_s = load_s
        self._server = server
        self._publisher = publisher
        self._blocks = PromptBlocks()
        self._waiting: deque[Request[Prompt]] = deque()
        self._unwanted: set[int] = set()
        self._answered = 0
        self._joined = False
        server.utility("status", self._status)

    def run(self) -> None:
        """Answer prompts, in order, until no API server is left."""
        give_up = time.monotonic() + _UNWANTED_AFTER_S
        while self._server.servers or not (self._joined or time.monotonic() > give_up):
            self._look(_LOOK_EVERY_S)
            while self._waiting:
                self._answer(self._waiting.popleft())

    def _look(self, timeout: float = 0.0) -> None:
        """Take what has come."""
        news = self._server.receive(timeout)
        self._joined |= self._server.servers > 0
        self._waiting.extend(news.requests)
        self._unwanted.update(news.aborted)

    def _answer(self, request: Request[Prompt]) -> None:
        number, prompt, count = request.number, request.payload, 0

        def emit(token_ids: list[int], text: str) -> bool:
            nonlocal count
            if count == 0:  # the prompt has just been read
                events = self._blocks.replace(self._model.tokens_of(prompt.text))
                if events:
                    self._publisher.publish(events)
            count += 1
            delta = Delta(number, token_ids, extra=text)
            self._unwanted.update(self._server.send_step([delta]))
            self._look()
            return number not in self._unwanted

        if number not in self._unwanted:
            try:
                reason = self._model.generate(prompt.text, prompt.max_tokens, emit)
            except ValueError as error:
                self._server.refuse(number, str(error))
                return
            if number not in self._unwanted:
                self._answered += 1
                self._server.send_step([Delta(number, [], reason)])
                return
        self._unwanted.discard(number)
        print(f"· the engine aborted a request after {count} tokens", file=sys.stderr, flush=True)

    def _status(self) -> dict[str, float]:
        return {
            "load_s": self._load_s,
            "answered": self._answered,
            "next_seq": self._publisher.next_seq,
        }


def main() -> None:
    """Join the API server, load the model, and serve."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--model", choices=sorted(MODELS), required=True)
    arguments.add_argument("--server", required=True, help="endpoint of the API server's requests")
    options = arguments.parse_args()
    model_type = MODELS[options.model]
    with KvEventPublisher(replay="tcp://127.0.0.1:*") as publisher:
        info = {
            "model": model_type.name,
            "block_size": BLOCK_SIZE,
            "kv_events": publisher.endpoint,
            "kv_replay": publisher.replay_endpoint,
        }
        with EngineServer(options.server, engine="engine-0", info=info, payload=Prompt) as server:
            started = time.monotonic()
            model = model_type()
            Engine(model, time.monotonic() - started, server, publisher).run()


if __name__ == "__main__":
    main()
