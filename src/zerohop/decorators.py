"""Functions that are given a Context or a Socket which ends with the call: ``zmq.decorators``.

    @context()
    @socket(zmq.PUSH)
    def work(ctx, push):
        push.connect("tcp://127.0.0.1:5555")
        push.send(b"done")

What was made is the last positional argument or, with a name, a keyword argument. The outermost
decorator comes first. A coroutine function keeps both until it is done.
"""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any, TypeVar, cast

import zerohop
from zerohop.api.context import ContextBase

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., Any]")

__all__ = ["context", "socket"]


def context(*args: Any, **kwargs: Any) -> Callable[[F], F]:
    """Give a function a new blocking Context, which is destroyed when the function returns.

    Args:
        args: first, if it is a ``str``, the name of the argument; the rest is the Context's.
        kwargs: ``name=`` likewise; the rest is the Context's.
    """
    name, args = _name_among(args, kwargs)

    def make(*_: Any) -> zerohop.Context:
        return zerohop.Context(*args, **kwargs)

    return _giving(name, make)


def socket(*args: Any, **kwargs: Any) -> Callable[[F], F]:
    """Give a function a new Socket, which is closed when the function returns.

    It belongs to the Context that the function is called with: the argument that is named
    ``context_name``, or the first that is a Context, of either kind; else to
    ``Context.instance()``.

    Args:
        args: first, if it is a ``str``, the name of the argument; then the type, and what else
            ``Context.socket`` takes.
        kwargs: ``name=`` likewise; ``context_name="context"``; the rest is for ``Context.socket``.
    """
    name, args = _name_among(args, kwargs)
    context_name = kwargs.pop("context_name", "context")

    def make(given: tuple[Any, ...], named: dict[str, Any]) -> Any:
        offered = (named.get(context_name), *given)
        owner = next((one for one in offered if isinstance(one, ContextBase)), None)
        return (owner or zerohop.Context.instance()).socket(*args, **kwargs)

    return _giving(name, make)


def _name_among(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[str | None, Any]:
    """The name of the argument, and the positional arguments without it."""
    if isinstance(kwargs.get("name"), str):
        return kwargs.pop("name"), args
    if args and isinstance(args[0], str):
        return args[0], args[1:]
    return None, args


def _giving(name: str | None, make: Callable[..., Any]) -> Callable[[F], F]:
    """A decorator that calls its function with what ``make(args, kwargs)`` returns."""

    def decorate(function: F) -> F:
        def extended(
            made: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
        ) -> tuple[tuple[Any, ...], dict[str, Any]]:
            if name is None:
                return (*args, made), kwargs
            if name in kwargs:
                raise TypeError(f"{function.__name__}() got multiple values for argument {name!r}")
            return args, {**kwargs, name: made}

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with make(args, kwargs) as made:
                args, kwargs = extended(made, args, kwargs)
                return function(*args, **kwargs)

        @functools.wraps(function)
        async def call_later(*args: Any, **kwargs: Any) -> Any:
            with make(args, kwargs) as made:
                args, kwargs = extended(made, args, kwargs)
                return await function(*args, **kwargs)

        return cast("F", call_later if inspect.iscoroutinefunction(function) else call)

    return decorate
