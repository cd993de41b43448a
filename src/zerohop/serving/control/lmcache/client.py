"""Asks an LMCache MP server: is it alive, what is its chunk size, and what else a release has.

The release has to be known. A number that means one thing in one release means another in the
next, and a server does not say which it is; so nothing is tried to find out.
"""

from __future__ import annotations

from typing import Any, ClassVar

from zerohop.serving.asyncio_closing import AsyncClosing
from zerohop.serving.closing import Closing
from zerohop.serving.control.asyncio_client import ControlClient
from zerohop.serving.control.client import SyncControlClient
from zerohop.serving.control.lmcache.frames import operation_in, ping_arguments
from zerohop.serving.control.lmcache.releases import LATEST, check_release
from zerohop.serving.errors import ProtocolMismatch

__all__ = ["LmcacheClient", "SyncLmcacheClient"]


def _is_well(result: Any, release: str) -> bool:
    """Whether a PING was answered so; of the latest release, an integer is a boot token."""
    if not isinstance(result, int if release == LATEST else bool):
        raise ProtocolMismatch(f"what a PING of {release} is answered with", "bool", result)
    return result is not False


class _AskingARelease:
    """What both clients are: somebody who asks, and knows the server's release."""

    _client_type: ClassVar[Any]

    def __init__(self, endpoint: str, *, release: str = LATEST, timeout: float = 5.0) -> None:
        """Connect.

        Args:
            endpoint: of the server.
            release: of the server.
            timeout: seconds for each reply.

        Raises:
            TypeError: an argument is of another kind.
            ValueError: the release is not known, or the timeout is no time.
            ZMQError: the endpoint can't be connected.
        """
        self._release = check_release(release)
        self._client = self._client_type(endpoint, timeout=timeout)


class SyncLmcacheClient(_AskingARelease, Closing):
    """Asks an MP server, one question at a time; several threads may."""

    _client_type = SyncControlClient

    def call(self, name: str, *arguments: Any, timeout: float | None = None) -> Any:
        """Ask for an operation.

        Args:
            name: LMCache's, in small letters.
            arguments: as the release has them.
            timeout: seconds; the client's own unless given.

        Returns:
            What msgpack makes of the result.

        Raises:
            ValueError: the release does not have it.
            NoAnswer: there was none in time; LMCache's way of saying that something is wrong.
            RequestRefused: the server, one of Zerohop, says why it does not do it.
            ProtocolMismatch: it did something else: it is of another release.
        """
        return self._client.call(operation_in(self._release, name), *arguments, timeout=timeout)

    def ping(self, instance_id: int | None = None) -> bool:
        """Ask whether it is well; tell it that an instance is alive.

        Args:
            instance_id: of the instance; ``None``: nobody's.

        Returns:
            Whether it says that it is well.

        Raises:
            ValueError: the release has no PING.
            NoAnswer: there was none in time.
            ProtocolMismatch: what came is no answer to a PING: it is of another release.
        """
        arguments = ping_arguments(self._release, instance_id)
        return _is_well(self.call("ping", *arguments), self._release)

    def close(self) -> None:
        """Ask no more."""
        self._is_closed = True
        self._client.close()


class LmcacheClient(_AskingARelease, AsyncClosing):
    """Asks an MP server, on the running event loop; any number of questions at a time."""

    _client_type = ControlClient

    async def call(self, name: str, *arguments: Any, timeout: float | None = None) -> Any:
        """Ask for an operation.

        Args:
            name: LMCache's, in small letters.
            arguments: as the release has them.
            timeout: seconds; the client's own unless given.

        Returns:
            What msgpack makes of the result.

        Raises:
            ValueError: the release does not have it.
            NoAnswer: there was none in time; LMCache's way of saying that something is wrong.
            RequestRefused: the server, one of Zerohop, says why it does not do it.
            ProtocolMismatch: it did something else: it is of another release.
        """
        operation = operation_in(self._release, name)
        return await self._client.call(operation, *arguments, timeout=timeout)

    async def ping(self, instance_id: int | None = None) -> bool:
        """Ask whether it is well; tell it that an instance is alive.

        Args:
            instance_id: of the instance; ``None``: nobody's.

        Returns:
            Whether it says that it is well.

        Raises:
            ValueError: the release has no PING.
            NoAnswer: there was none in time.
            ProtocolMismatch: what came is no answer to a PING: it is of another release.
        """
        arguments = ping_arguments(self._release, instance_id)
        return _is_well(await self.call("ping", *arguments), self._release)

    async def _close(self) -> None:
        await self._client.aclose()
