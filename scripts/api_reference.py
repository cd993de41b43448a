"""Write the pages of docs/reference that come from docstrings: every public name, and all it says.

A page has the public names of one module, or those that are defined in some parts of it (`PAGES`).
What their signatures speak of besides, types that are no public names themselves, stands at its
end. Signatures are those of the source, sentences those of the docstrings: no page can lag behind.
With `--check` it writes nothing and fails if a page is not what it would write.

    python -m scripts.api_reference [--check]
"""

from __future__ import annotations

import ast
import enum
import importlib
import inspect
import re
import sys
import textwrap
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scripts import docstrings, signatures

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

REFERENCE = Path(__file__).parent.parent / "docs" / "reference"
SPECIAL = {f"__{name}__" for name in ("iter", "aiter", "next", "anext", "enter", "aenter")}
SPECIAL |= {"__len__", "__contains__"}


@dataclass(frozen=True, slots=True)
class Page:
    """One page.

    Attributes:
        file: its name below docs/reference.
        title: its heading.
        module: whose public names it has.
        homes: prefixes of the modules that these are defined in.
        about: what goes before them.
    """

    file: str
    title: str
    module: str
    homes: tuple[str, ...]
    about: str


PAGES = (
    Page(
        "api.md",
        "The blocking API",
        "zerohop",
        ("zerohop",),
        "`import zerohop as zmq`: the blocking API, and what both APIs share. Names, numbers and "
        "errors are pyzmq's; [compatibility](../compatibility.md) lists what differs and what is "
        "added, [options](options.md) the socket options. Each member of a constant is also a name "
        "of the module: `zmq.PUSH is zmq.SocketType.PUSH`.",
    ),
    Page(
        "asyncio.md",
        "The asyncio API",
        "zerohop.asyncio",
        ("zerohop",),
        "`import zerohop.asyncio`: the same sockets on the running loop; what waits is awaited. "
        "Constants, errors and `Frame` are those of [the blocking API](api.md).",
    ),
    Page(
        "serving-engine.md",
        "Serving: the engine channel",
        "zerohop.serving",
        ("zerohop.serving.engine", "zerohop.serving.addresses"),
        "[Serve an engine](../howto/serve-an-engine.md) shows how it is used, "
        "[the engine channel](../explanation/serving-engine.md) tells how it works.",
    ),
    Page(
        "serving-kv.md",
        "Serving: KV events",
        "zerohop.serving",
        ("zerohop.serving.kv",),
        "[See, keep and replay KV events](../howto/kv-events.md) shows how it is used, "
        "[KV events](../explanation/serving-kv.md) tells how it works.",
    ),
    Page(
        "serving-control.md",
        "Serving: the control channel",
        "zerohop.serving",
        ("zerohop.serving.control",),
        "[Keep a table of workers](../howto/control-channel.md) shows how it is used, "
        "[the control channel](../explanation/serving-control.md) tells how it works.",
    ),
    Page(
        "serving-errors.md",
        "Serving: errors",
        "zerohop.serving",
        ("zerohop.serving.errors",),
        "What the [engine channel](serving-engine.md), [KV events](serving-kv.md) and the "
        "[control channel](serving-control.md) raise. A failure of the sockets themselves is a "
        "[`ZMQError`](api.md#zmqerror), and passes through.",
    ),
)
KINDS = ("Classes", "Values", "Functions", "Errors", "Constants")


def main() -> int:
    """Write or check the pages; return the exit status."""
    pages = write_pages()
    if "--check" not in sys.argv[1:]:
        for file, text in pages.items():
            (REFERENCE / file).write_text(text)
        return 0
    stale = [f for f, text in pages.items() if not _is_written(REFERENCE / f, text)]
    if stale:
        names = ", ".join(stale)
        print(f"not what the docstrings say: {names}; run: make docs", file=sys.stderr)
    return 1 if stale else 0


def _is_written(path: Path, text: str) -> bool:
    return path.exists() and path.read_text() == text


def write_pages() -> dict[str, str]:
    """Return the text of each page, by its file."""
    errors = {
        name: f"{page.file}#{name.lower()}"
        for page in PAGES
        for name, value in public_names(page).items()
        if _kind(value) == "Errors"
    }
    methods: dict[str, dict[Any, str]] = {}  # by module: pages of one module repeat each other's
    pages = {}
    for page in PAGES:
        others = [found for module, found in methods.items() if module != page.module]
        writer = _Writer(page, errors, {k: v for found in others for k, v in found.items()})
        pages[page.file] = re.sub(r"\n+\Z", "\n", "\n".join(writer.lines()))
        linked = {k: v.replace("](#", f"]({page.file}#") for k, v in writer.own.items()}
        methods[page.module] = linked | methods.get(page.module, {})
    return pages


def public_names(page: Page) -> dict[str, Any]:
    """Return the classes and functions of a page; constants stand at their enum."""
    module = importlib.import_module(page.module)
    found = {name: getattr(module, name) for name in sorted(module.__all__)}
    return {
        name: value
        for name, value in found.items()
        if (inspect.isclass(value) or inspect.isroutine(value))
        and f"{value.__module__}.".startswith(tuple(f"{home}." for home in page.homes))
    }


@dataclass(slots=True)
class _Writer:
    """Writes one page, and takes note of the types that its signatures speak of.

    Attributes:
        page: which.
        errors: where each error has its section.
        methods: those that pages of other modules have, and where.
        own: those that this page has, and where.
        mentioned: the types, by module and name.
    """

    page: Page
    errors: dict[str, str]
    methods: dict[Any, str]
    own: dict[Any, str] = field(default_factory=dict)
    mentioned: set[tuple[str, str]] = field(default_factory=set)

    def lines(self) -> Iterator[str]:
        """Return the parts of the page; a line is to be empty between two of them."""
        public = public_names(self.page)
        groups = {k: {n: v for n, v in public.items() if _kind(v) == k} for k in KINDS}
        about = textwrap.fill(self.page.about, 100, break_on_hyphens=False)
        yield f"# {self.page.title}\n\n{about}\n"
        yield "Generated by `make docs` from the docstrings.\n"
        for kind, group in groups.items():
            if group:
                links = ", ".join(f"[`{name}`](#{name.lower()})" for name in group)
                yield f"{kind}: {links}\n"
        for kind, group in groups.items():
            if group:
                yield f"## {kind}\n"
            for name, value in group.items():
                yield from self._section(name, value)
        if types := self._types(public):
            yield "## Types in these signatures\n"
            for _, section in sorted(types.items()):
                yield from section

    def _types(self, public: dict[str, Any]) -> dict[tuple[str, str], list[str]]:
        """What is mentioned, and is neither a public name nor the base of one."""
        modules = {importlib.import_module(page.module) for page in PAGES}
        known = {id(getattr(module, name)) for module in modules for name in module.__all__}
        classes = [value for value in public.values() if inspect.isclass(value)]
        known |= {id(base) for value in classes for base in value.__mro__}
        types: dict[tuple[str, str], list[str]] = {}
        while new := {each for each in self.mentioned if each[::-1] not in types}:
            for home, name in new:
                value = getattr(importlib.import_module(home), name)
                section = types[name, home] = []
                if alias := signatures.alias_of(home, name):
                    section.append(f"### {name}\n\n```text\n{name} = {alias}\n```\n")
                    section += self._words(docstrings.read(signatures.words_of(home, name)))
                elif _is_type(name, value) and id(value) not in known:
                    section += self._section(name, value, f"In `{home}`.\n")
        return {key: section for key, section in types.items() if section}

    def _section(self, name: str, value: Any, where: str = "") -> Iterator[str]:
        yield f"### {name}\n"
        if where:
            yield where
        if not inspect.isclass(value):
            yield from self._function(name, value)
        elif name != value.__name__:
            yield f"Another name of `{value.__name__}`.\n"
        elif issubclass(value, enum.Enum):
            yield from self._enum(value)
        else:
            yield from self._class(name, value, is_made=not where or _kind(value) == "Values")

    def _enum(self, value: type[enum.Enum]) -> Iterator[str]:
        doc = docstrings.read(value.__doc__)
        yield f"{doc.text}\n"
        members = [name for name in value.__members__ if not name.startswith("_")]
        told = doc.sections.get("Attributes", {})
        if told:
            yield docstrings.bullets(told)
        if set(members) - told.keys():
            yield f"Members: {', '.join(f'`{name}`' for name in members)}.\n"

    def _function(self, name: str, function: Any) -> Iterator[str]:
        node = signatures.definition_of(function)
        self._mention(function.__module__, signatures.annotations_of(node))
        given = signatures.parameters(function.__module__, node).values()
        yield f"```text\n{signatures.signature(name, given, node)}\n```\n"
        yield from self._words(docstrings.read(function.__doc__))

    def _class(self, name: str, cls: type, *, is_made: bool) -> Iterator[str]:
        made = signatures.constructor_of(cls)
        doc = _merged(cls)
        told = doc.sections.pop("Args", {})
        attributes = doc.sections.pop("Attributes", {})
        names = {each for key in told | attributes for each in key.split(", ")}
        is_documented = made.is_fields or not made.parameters or made.parameters.keys() & names
        if is_made and is_documented:  # what nobody tells how to make is made by others
            self._mention(made.module, made.annotations)
            yield f"```text\n{signatures.signature(name, made.parameters.values())}\n```\n"
            arguments = [(n, key) for n in made.parameters for key in told if n in key.split(", ")]
            doc.sections = {"Args": {key: told[key] for _, key in arguments}, **doc.sections}
        yield from self._words(doc)
        yield from self._attributes(cls, attributes)
        yield from self._methods(name, cls)

    def _attributes(self, cls: type, told: dict[str, str]) -> Iterator[str]:
        types = signatures.types_of(cls)
        names = {each for key in told for each in key.split(", ")}
        rows = {name: "" for name in signatures.fields_of(cls) if name not in names} | told
        for name, member in _members(cls):
            if isinstance(member, property):
                rows[name] = docstrings.read(member.__doc__).text.replace("\n", " ")
                self._mention(member.fget.__module__, [types.get(name)])
        if rows:
            yield "| attribute | type | |\n|---|---|---|"
            for key, text in rows.items():
                annotation = types.get(key.split(", ")[0])
                kind = "" if annotation is None else f"`{ast.unparse(annotation)}`"
                yield f"| {docstrings.code(key)} | {_cell(kind)} | {_cell(text)} |"
            yield ""

    def _methods(self, name: str, cls: type) -> Iterator[str]:
        here = f"[`{name}`](#{name.lower()})"
        methods = [(n, m) for n, m in _members(cls) if not isinstance(m, property)]
        elsewhere: dict[str, list[str]] = {}
        for method, function in methods:
            of = self.methods.get(function) or self.own.setdefault(function, here)
            if of != here:
                elsewhere.setdefault(of, []).append(method)
        for of, inherited in elsewhere.items():
            yield f"As in {of}: {docstrings.code(', '.join(inherited))}.\n"
        for method, function in methods:
            if self.own.get(function) == here:
                yield f"#### {name}.{method}\n"
                yield from self._function(method, function)

    def _words(self, doc: docstrings.Docstring) -> Iterator[str]:
        if doc.text:
            yield f"{doc.text}\n"
        if arguments := doc.sections.pop("Args", None):
            yield docstrings.bullets(arguments)
        if doc.returns:
            yield f"Returns: {doc.returns}\n"
        for title, items in doc.sections.items():
            yield f"{title}:\n\n{docstrings.bullets(items, self.errors)}"

    def _mention(self, module: str, annotations: Iterable[ast.expr | None]) -> None:
        found = (signatures.origin(module, name) for name in signatures.names_in(annotations))
        self.mentioned |= {each for each in found if each is not None}


def _merged(cls: type) -> docstrings.Docstring:
    """Its own words, with what its bases say of arguments, attributes and errors."""
    merged = docstrings.read(cls.__doc__)
    merged.sections = {}
    for each in reversed(signatures.bases_of(cls)):
        for text in (each.__doc__, getattr(vars(each).get("__init__"), "__doc__", None)):
            for title, items in docstrings.read(text).sections.items():
                merged.sections[title] = merged.sections.get(title, {}) | items
    return merged


def _members(cls: type) -> Iterator[tuple[str, Any]]:
    """Public methods and properties of a class and its bases within this package."""
    names = {name for each in signatures.bases_of(cls) for name in vars(each)}
    for name in sorted(names):
        member = inspect.getattr_static(cls, name)
        if isinstance(member, classmethod | staticmethod):
            member = member.__func__
        documented = inspect.isfunction(member) or isinstance(member, property)
        if documented and member.__doc__ and (name in SPECIAL or not name.startswith("_")):
            yield name, member


def _is_type(name: str, value: Any) -> bool:
    """Whether a name is that of a class for others, and not another name of one."""
    return inspect.isclass(value) and value.__name__ == name and not name.startswith("_")


def _kind(value: Any) -> str:
    if not inspect.isclass(value):
        return "Functions"
    if issubclass(value, enum.Enum):
        return "Constants"
    if issubclass(value, Exception):
        return "Errors"
    return "Values" if signatures.constructor_of(value).is_fields else "Classes"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    sys.exit(main())
