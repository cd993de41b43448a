"""The engine process: takes prompts, streams tokens back, tells everyone how it is doing.

It runs one prompt at a time on the blocking API. Its standard input is its lease: when that
closes (the API process has finished, or has died) the engine stops, in the middle of an answer
if need be. Nothing else has to be agreed upon for a clean end.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections import deque

import zerohop as zmq
from demo.messages import Failed, Finished, Prompt, Status, Token, pack, unpack
from demo.models import MODELS, Model

_STATUS_PERIOD_S = 0.5


class Engine:
    """One model between a PULL of prompts, a PUSH of tokens and a PUB of status."""

    def __init__(
        self,
        model: Model,
        load_s: float,
        prompts: zmq.Socket,
        tokens: zmq.Socket,
        status: zmq.Socket,
    ) -> None:
        self._model = model
        self._load_s = load_s
        self._prompts = prompts
        self._tokens = tokens
        self._status = status
        self._held: deque[Prompt] = deque()
        self._answered = 0
        self._first_token_s = self._tokens_per_s = 0.0
        self._next_status = 0.0
        self._stopped = False
        self._poller = zmq.Poller()
        self._poller.register(prompts, zmq.POLLIN)
        self._poller.register(sys.stdin.fileno(), zmq.POLLIN)

    def run(self) -> None:
        """Answer prompts, in order, until standard input closes."""
        self._publish("ready")
        while not self._stopped:
            self._look(wait_s=_STATUS_PERIOD_S)
            self._publish_if_due("ready")
            while self._held and not self._stopped:
                self._answer(self._held[0])
                self._held.popleft()
                self._publish("ready")

    def _look(self, wait_s: float = 0.0) -> None:
        """Take what has arrived: prompts, and the end of standard input."""
        ready = dict(self._poller.poll(wait_s * 1000))
        if sys.stdin.fileno() in ready:
            self._stopped = True
        while self._prompts.poll(0):
            message = unpack(self._prompts.recv())
            if isinstance(message, Prompt):
                self._held.append(message)

    def _answer(self, prompt: Prompt) -> None:
        started = time.monotonic()
        count = 0

        def emit(piece: str) -> bool:
            nonlocal count
            count += 1
            now = time.monotonic()
            if count == 1:
                self._first_token_s = now - started
            else:
                self._tokens_per_s = (count - 1) / (now - started - self._first_token_s)
            self._tokens.send(pack(Token(prompt.request, piece)))
            self._look()
            self._publish_if_due("answering")
            return not self._stopped

        self._publish("answering")
        try:
            reason = self._model.generate(prompt.text, prompt.max_tokens, emit)
        except ValueError as error:
            self._tokens.send(pack(Failed(prompt.request, str(error))))
        else:
            self._answered += 1
            self._tokens.send(pack(Finished(prompt.request, reason)))

    def _publish_if_due(self, state: str) -> None:
        if time.monotonic() >= self._next_status:
            self._publish(state)

    def _publish(self, state: str) -> None:
        self._next_status = time.monotonic() + _STATUS_PERIOD_S
        status = Status(
            engine=self._model.name,
            state=state,
            load=len(self._held),
            answered=self._answered,
            load_s=self._load_s,
            first_token_s=self._first_token_s,
            tokens_per_s=self._tokens_per_s,
        )
        self._status.send(pack(status))


def main() -> None:
    """Connect, load the model, and serve."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--model", choices=sorted(MODELS), required=True)
    arguments.add_argument("--prompts", required=True, help="endpoint to PULL prompts from")
    arguments.add_argument("--tokens", required=True, help="endpoint to PUSH tokens to")
    arguments.add_argument("--status", required=True, help="endpoint to PUBlish status to")
    options = arguments.parse_args()
    # Ctrl-C reaches every process of the terminal; the API process decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with zmq.Context() as context:
        context.linger = 1000  # ms; an API process that has died must not hold the engine
        prompts, tokens, status = map(context.socket, (zmq.PULL, zmq.PUSH, zmq.PUB))
        prompts.connect(options.prompts)
        tokens.connect(options.tokens)
        status.connect(options.status)
        status.wait_for_subscribers(timeout=5)
        model_type = MODELS[options.model]
        status.send(pack(Status(model_type.name, "loading", 0, 0, 0.0, 0.0, 0.0)))
        started = time.monotonic()
        model = model_type()
        load_s = time.monotonic() - started
        Engine(model, load_s, prompts, tokens, status).run()
        context.destroy()


if __name__ == "__main__":
    main()
