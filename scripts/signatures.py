"""Signatures and fields as they stand in the source: the same text on every version of Python."""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import textwrap
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = [
    "Constructor",
    "Definition",
    "alias_of",
    "annotations_of",
    "bases_of",
    "constructor_of",
    "definition_of",
    "fields_of",
    "names_in",
    "origin",
    "parameters",
    "signature",
    "types_of",
    "words_of",
]

Definition = ast.FunctionDef | ast.AsyncFunctionDef
_WIDTH = 96  # columns of a signature on one line


@functools.cache
def module_node(module: str) -> ast.Module:
    """Return a module's source, parsed."""
    return ast.parse(inspect.getsource(importlib.import_module(module)))


@functools.cache
def class_node(cls: type) -> ast.ClassDef:
    """Return the definition of a class that stands at the top of its module."""
    nodes = module_node(cls.__module__).body
    return next(n for n in nodes if isinstance(n, ast.ClassDef) and n.name == cls.__name__)


def definition_of(function: Any) -> Definition:
    """Return the definition of a function or method."""
    node = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    assert isinstance(node, Definition)
    return node


def bases_of(cls: type) -> list[type]:
    """Return a class and its bases within this package, nearest first."""
    return [each for each in cls.__mro__ if each.__module__.startswith("zerohop")]


def fields_of(cls: type) -> dict[str, ast.AnnAssign]:
    """Return the public fields that a class annotates in its body."""
    return {
        node.target.id: node
        for node in class_node(cls).body
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Name)
        and not node.target.id.startswith("_")
        and "ClassVar" not in ast.unparse(node.annotation)
    }


def types_of(cls: type) -> dict[str, ast.expr]:
    """Return the annotations of its attributes: properties, fields, what methods annotate.

    An attribute without an annotation has that of the parameter that it is named after.
    """
    found: dict[str, ast.expr] = {}
    for each in reversed(bases_of(cls)):
        init = vars(each).get("__init__")
        if _is_written(init):
            arguments = definition_of(init).args
            for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
                if argument.annotation is not None:
                    found[argument.arg] = argument.annotation
        for node in ast.walk(class_node(each)):
            match node:
                case ast.AnnAssign(target=ast.Name(id=name) | ast.Attribute(attr=name)):
                    found[name] = node.annotation
                case ast.FunctionDef(name=name, returns=ast.expr() as returns):
                    if any(ast.unparse(d) == "property" for d in node.decorator_list):
                        found[name] = returns
    return found


@dataclass(frozen=True, slots=True)
class Constructor:
    """What an instance is made of.

    Attributes:
        module: where that stands.
        parameters: as they are written.
        annotations: of the parameters.
        is_fields: whether the class is its fields, and nobody wrote an ``__init__``.
    """

    module: str
    parameters: dict[str, str]
    annotations: list[ast.expr | None]
    is_fields: bool


def constructor_of(cls: type) -> Constructor:
    """Return the nearest ``__init__`` of a class and its bases, or the nearest fields."""
    for each in bases_of(cls):
        module, init = each.__module__, vars(each).get("__init__")
        if _is_written(init):
            node = definition_of(init)
            return Constructor(module, parameters(module, node), [*annotations_of(node)], False)
        if fields := fields_of(each):
            given = {name: _field(module, node) for name, node in fields.items()}
            return Constructor(module, given, [n.annotation for n in fields.values()], True)
    return Constructor(cls.__module__, {}, [], False)


def _is_written(function: Any) -> bool:
    """Whether somebody wrote it: others are C's, or made by ``dataclasses``."""
    return inspect.isfunction(function) and not function.__code__.co_filename.startswith("<")


def _field(module: str, node: ast.AnnAssign) -> str:
    default = "" if node.value is None else f" = {_default(module, node.value)}"
    return f"{ast.unparse(node.target)}: {ast.unparse(node.annotation)}{default}"


def _default(module: str, node: ast.expr) -> str:
    """A default as it is written, a constant as its value is; ``...``: it has to be computed."""
    if isinstance(node, ast.Name):
        found = origin(module, node.id)
        value = None if found is None else _assigned(*found)
        return "..." if value is None else _default(module, value)
    return "..." if isinstance(node, ast.Call) else ast.unparse(node)


def _assigned(module: str, name: str) -> ast.expr | None:
    for node in module_node(module).body:
        match node:
            case (
                ast.Assign(targets=[ast.Name(id=found)]) | ast.AnnAssign(target=ast.Name(id=found))
            ):
                if found == name:
                    return node.value
    return None


def parameters(module: str, node: Definition) -> dict[str, str]:
    """Return the parameters of a function as they are written, without ``self``."""
    arguments = node.args
    plain = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(plain) - len(arguments.defaults)) + arguments.defaults
    shown: dict[str, str] = {}
    for index, (argument, default) in enumerate(zip(plain, defaults, strict=True)):
        if argument.arg not in {"self", "cls"}:
            shown[argument.arg] = _parameter(module, argument, default)
        if index + 1 == len(arguments.posonlyargs):
            shown["/"] = "/"
    if arguments.vararg:
        shown[arguments.vararg.arg] = f"*{_parameter(module, arguments.vararg, None)}"
    elif arguments.kwonlyargs:
        shown["*"] = "*"
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        shown[argument.arg] = _parameter(module, argument, default)
    if arguments.kwarg:
        shown[arguments.kwarg.arg] = f"**{_parameter(module, arguments.kwarg, None)}"
    return shown


def _parameter(module: str, argument: ast.arg, default: ast.expr | None) -> str:
    annotation = argument.annotation
    shown = argument.arg if annotation is None else f"{argument.arg}: {ast.unparse(annotation)}"
    if default is None:
        return shown
    equals = "=" if annotation is None else " = "
    return f"{shown}{equals}{_default(module, default)}"


def signature(name: str, given: Iterable[str], node: Definition | None = None) -> str:
    """Return a call as it is written: on one line, or a line a parameter."""
    head = "async " if isinstance(node, ast.AsyncFunctionDef) else ""
    if node is not None and any(ast.unparse(d) == "classmethod" for d in node.decorator_list):
        head = "classmethod "
    returns = None if node is None else node.returns
    arrow = "" if returns is None or ast.unparse(returns) == "None" else ast.unparse(returns)
    tail = f" -> {arrow}" if arrow else ""
    line = f"{head}{name}({', '.join(given)}){tail}"
    if len(line) <= _WIDTH:
        return line
    return f"{head}{name}(\n" + "".join(f"    {each},\n" for each in given) + f"){tail}"


def names_in(annotations: Iterable[ast.expr | None]) -> Iterator[str]:
    """Return the names in annotations, those in quotes, too."""
    for annotation in annotations:
        if annotation is None:
            continue
        for node in ast.walk(annotation):
            if isinstance(node, ast.Name):
                yield node.id
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


def annotations_of(node: Definition) -> Iterator[ast.expr | None]:
    """Return the annotations of a function."""
    arguments = node.args
    for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        yield each.annotation
    for catch_all in (arguments.vararg, arguments.kwarg):
        yield None if catch_all is None else catch_all.annotation
    yield node.returns


def origin(module: str, name: str) -> tuple[str, str] | None:
    """Return the module of this package where a name comes from, and its name there."""
    for node in ast.walk(module_node(module)):
        match node:
            case ast.ImportFrom(module=str(source)) if source.startswith("zerohop"):
                for each in node.names:
                    if (each.asname or each.name) == name:
                        return origin(source, each.name)
    for node in module_node(module).body:
        match node:
            case (
                ast.ClassDef(name=found)
                | ast.AnnAssign(target=ast.Name(id=found))
                | ast.Assign(targets=[ast.Name(id=found)])
            ):
                if found == name:
                    return module, name
    return None


def alias_of(module: str, name: str) -> str | None:
    """Return the type that a name stands for; ``None``: it is no alias."""
    value = _assigned(module, name)
    if (text := _text(value)) is not None:
        return text  # of what only a type checker imports
    return ast.unparse(value) if isinstance(value, ast.BinOp | ast.Subscript) else None


def words_of(module: str, name: str) -> str | None:
    """Return the text that stands below an assignment, as a docstring does below a ``def``."""
    value = _assigned(module, name)
    for node, following in pairwise(module_node(module).body):
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is value:
            return _text(following.value) if isinstance(following, ast.Expr) else None
    return None


def _text(node: ast.expr | None) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return None
