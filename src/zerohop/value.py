"""A class that is its fields: what a frozen dataclass is, at a price that an import can pay.

``dataclasses`` takes 6 ms to import, because it brings ``inspect``, and up to a millisecond for
each class, whose methods it writes as text and compiles. With some twenty such classes that was
more than half of ``import zerohop``. What they need of it is little, and stands here; only of
which there are many get an ``__init__`` of their own in that way, when the first is made.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, ClassVar, NoReturn, dataclass_transform
else:

    def dataclass_transform(*, frozen_default: bool) -> Callable[[type], type]:
        return lambda decorated: decorated  # it tells something to type checkers, and does nothing


__all__ = ["NOTHING", "Value"]

NOTHING: Any = ()
"""Stands for a list that seldom has anything in it, and is made when it has: whatever a thousand
sockets or connections have each, the garbage collector looks at a thousand times. (A tuple, so that
nobody can put anything into it.)"""


@dataclass_transform(frozen_default=True)
class Value:
    """Made of its fields, compared and shown by them, and never changed.

    A subclass annotates its fields, in the order in which they are given and matched. What it
    assigns to one is the default, which all instances share: nothing that could be changed. An
    ``__init__`` of its own it has not.

    Attributes:
        not_compared: fields without regard to which two values are equal.
        not_shown: fields that stay out of ``repr``.
        many: there may be a hundred thousand instances: they are made in a fifth of the time, once
            the first has taken 0.1 ms.

    Raises:
        TypeError: a field is missing, unknown, or given twice; or a subclass has an ``__init__``.
    """

    not_compared: ClassVar[frozenset[str]] = frozenset()
    not_shown: ClassVar[frozenset[str]] = frozenset()
    many: ClassVar[bool] = False
    _names: ClassVar[tuple[str, ...]]
    _needed: ClassVar[frozenset[str]]
    _known: ClassVar[frozenset[str]]

    def __init_subclass__(cls) -> None:
        if "__init__" in vars(cls):
            raise TypeError(f"{cls.__name__} has an __init__ of its own, which a Value has not")
        cls._names = tuple(cls.__annotations__)
        cls._known = frozenset(cls._names)
        cls._needed = cls._known - vars(cls).keys()
        cls.__match_args__ = cls._names  # type: ignore[attr-defined, misc]
        cls.__init__ = Value.__init__  # type: ignore[method-assign] # not one of other fields

    def __init__(self, *values: Any, **named: Any) -> None:
        if len(values) == len(self._names) and not named:  # all of them, in order
            vars(self).update(zip(self._names, values, strict=True))
        else:
            fields = dict(zip(self._names, values, strict=False), **named)
            counted = len(fields) == len(values) + len(named)
            if not (counted and self._needed <= fields.keys() <= self._known):
                names = ", ".join(self._names)
                raise TypeError(
                    f"{type(self).__name__} is made of {names}; got {values!r}, {named!r}"
                )
            vars(self).update(fields)
        if self.many:
            type(self).__init__ = _written_for(type(self))  # type: ignore[method-assign]

    def __setattr__(self, name: str, value: object) -> NoReturn:
        _refuse(f"cannot assign to field {name!r} of {self!r}")

    def __delattr__(self, name: str) -> NoReturn:
        _refuse(f"cannot delete field {name!r} of {self!r}")

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self._compared() == other._compared()

    def __hash__(self) -> int:
        return hash((type(self), self._compared()))

    def __repr__(self) -> str:
        shown = [name for name in self._names if name not in self.not_shown]
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
        return f"{type(self).__name__}({fields})"

    def _compared(self) -> tuple[object, ...]:
        return tuple(getattr(self, name) for name in self._names if name not in self.not_compared)


def _written_for(cls: type[Value]) -> Any:
    """Return an ``__init__`` that takes the fields of a class and puts each in its place."""
    taken = [name if name in cls._needed else f"{name}=cls.{name}" for name in cls._names]
    put = [f"fields[{name!r}] = {name}" for name in cls._names]
    scope: dict[str, Any] = {"cls": cls}
    text = f"def __init__(self, {', '.join(taken)}): fields = self.__dict__; {'; '.join(put)}"
    exec(text, scope)  # noqa: S102 - the names are those of a class of ours
    return scope["__init__"]


def _refuse(text: str) -> NoReturn:
    from dataclasses import FrozenInstanceError  # what programs expect; imported when it is needed

    raise FrozenInstanceError(text)
