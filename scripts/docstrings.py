"""Google docstrings, read: what goes before the sections, and the sections, as Markdown."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, field

__all__ = ["Docstring", "bullets", "code", "read"]

_SECTION = re.compile(r"(Args|Attributes|Returns|Yields|Raises)(?: \([^)]*\))?:")
_ROLE = re.compile(r":\w+:`(?:~[\w.]+\.)?([^`]+)`")


@dataclass(slots=True)
class Docstring:
    """A docstring, taken apart.

    Attributes:
        text: its paragraphs; code in them is indented, as Markdown has it.
        sections: by title, such as ``Args``: what each name in it is, in one line.
        returns: the text of ``Returns`` or ``Yields``, in one line.
    """

    text: str = ""
    sections: dict[str, dict[str, str]] = field(default_factory=dict)
    returns: str = ""


def read(text: str | None) -> Docstring:
    """Read a docstring as it stands in the source; ``None``: there is none."""
    found = Docstring()
    title = ""
    lines: dict[str, list[str]] = {"": []}
    for line in _markdown(inspect.cleandoc(text or "")).splitlines():
        if _SECTION.fullmatch(line):
            title = line.removesuffix(":")
        elif line and not line.startswith(" "):
            title = ""
        lines.setdefault(title, [])
        if not _SECTION.fullmatch(line):
            lines[title].append(line)
    for name, body in lines.items():
        if not name:
            found.text = re.sub(r"\n{3,}", "\n\n", "\n".join(body)).strip()
        elif name.startswith(("Returns", "Yields")):
            found.returns = " ".join(" ".join(body).split())
        else:
            found.sections[name] = _items(inspect.cleandoc("\n" + "\n".join(body)).splitlines())
    return found


def bullets(items: dict[str, str], links: dict[str, str] | None = None) -> str:
    """Return a section as a list.

    Args:
        items: what each name is.
        links: where some of the names lead to.
    """
    return "".join(f"* {code(name, links)}: {text}\n" for name, text in items.items())


def code(names: str, links: dict[str, str] | None = None) -> str:
    """Return names, with a comma and a blank between two of them, as code."""
    linked = links or {}
    each = names.split(", ")
    return ", ".join(f"[`{n}`]({linked[n]})" if n in linked else f"`{n}`" for n in each)


def _items(lines: list[str]) -> dict[str, str]:
    """``name: text`` each; what is indented below it goes on with it."""
    items: dict[str, str] = {}
    name = ""
    for line in lines:
        if line and not line.startswith(" "):
            name, _, text = line.partition(": ")
            items[name] = text
        elif line:
            items[name] += f" {line.strip()}"
    return items


def _markdown(text: str) -> str:
    """Roles and literals as Markdown writes them."""
    text = re.sub(r":pep:`(\d+)`", r"PEP \1", text)
    return _ROLE.sub(r"`\1`", text).replace("``", "`")
