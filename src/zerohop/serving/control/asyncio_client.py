"""A worker of a control server, and who asks one for its operations, on an event loop."""

from __future__ import annotations

import asyncio
import contextlib
import inspect

import zerohop as zmq
import zerohop.asyncio
from zerohop.serving.arguments import seconds
from zerohop.serving.asyncio_actor import ActorTask
from zerohop.serving.asyncio_closing import AsyncClosing
from zerohop.serving.closing import closed_error
from zerohop.serving.control.client import Asking, Working
from zerohop.serving.control.frames import encode_call, parse_reply, result_of
from zerohop.serving.errors import Malformed, NoAnswer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from zerohop.serving.control.frames import OperationName, Reply
    from zerohop.serving.control.messages import Command

__all__ = ["ControlClient", "ControlWorker"]


class ControlWorker(Working, ActorTask):
    """Registers with a control server, and keeps its copy of a table right.

        async with ControlWorker(endpoint, "decode-3", offers={"slots": 8}) as worker:
            worker.put("model", "tiny")

    It goes on in tasks of its own, whatever happens to the server. Its commands may be coroutine
    functions; the one that is at work when it is closed is cancelled.
    """

    def _start(self) -> None:
        self._todo: asyncio.Queue[Command] = asyncio.Queue()
        self._spawn(self._carry_out())
        super()._start()

    async def wait_settled(self) -> None:
        """Wait until the server has acknowledged all that there is, or the worker is closed.

        Raises:
            RequestRefused: the server does not want this worker.
        """
        await self._until(self._has_settled)
        self._check_wanted()

    def _give(self, command: Command) -> None:
        self._todo.put_nowait(command)

    async def _carry_out(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        while True:
            command = await self._todo.get()
            try:
                result = self._handler_of(command)(*command.arguments)
                if inspect.isawaitable(result):
                    result = await result
            except KeyboardInterrupt:
                raise  # Ctrl-C, which is not the command's
            except BaseException as failure:
                if task.cancelling():
                    raise
                self._end(command, None, failure)
            else:
                self._end(command, result, None)


class ControlClient(Asking, AsyncClosing):
    """Asks a server for its operations, on the running event loop; any number at a time."""

    _context_type = zerohop.asyncio.Context

    def _start(self) -> None:
        # ``None`` in the place of a reply: the client was closed.
        self._waiting: dict[int, asyncio.Future[Reply | None]] = {}
        self._receiving = asyncio.ensure_future(self._receive())

    async def call(
        self, operation: OperationName, *arguments: Any, timeout: float | None = None
    ) -> Any:
        """Ask for an operation, and wait for its result.

        Args:
            operation: its name, or its number.
            arguments: as the protocol has them.
            timeout: seconds; the client's own unless given.

        Raises:
            RequestRefused: the server says why it does not do it.
            ProtocolMismatch: it did something else.
            NoAnswer: there was none in time. What nobody was there to hear is not said later.
            RuntimeError: the client is closed, or was meanwhile.
            TypeError, ValueError: the timeout is no time.
            Unencodable: an argument has no form on the wire.
        """
        given = self._timeout if timeout is None else seconds("timeout", timeout)
        uid = next(self._uids)
        frames = encode_call(uid, operation, *arguments)
        replied = self._waiting[uid] = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(given):
                await self._dealer.send_multipart(frames)
                reply = await replied
        except TimeoutError:
            raise NoAnswer(self._endpoint, str(operation), given) from None
        except zmq.ZMQError:
            if self._is_closed:
                raise closed_error(self) from None
            raise
        finally:
            del self._waiting[uid]
        if reply is None:
            raise closed_error(self)
        return result_of(reply, operation)

    async def _close(self) -> None:
        self._is_closed = True
        for replied in self._waiting.values():
            if not replied.done():
                replied.set_result(None)
        self._receiving.cancel()
        async with self._context:
            await asyncio.gather(self._receiving, return_exceptions=True)

    async def _receive(self) -> None:
        while True:
            frames = await self._dealer.recv_multipart()
            with contextlib.suppress(Malformed):
                reply = parse_reply(frames)
                waiting = self._waiting.get(reply.uid)
                if waiting is not None and not waiting.done():
                    waiting.set_result(reply)
