"""The pages of docs/reference: every public name, as the source and its docstring have it."""

import ast
import enum
import importlib
import inspect
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from scripts import api_reference, docstrings, signatures

REPOSITORY = Path(__file__).parent.parent.parent
MODULES = sorted({page.module for page in api_reference.PAGES})


def headings(page: api_reference.Page) -> list[str]:
    text = (api_reference.REFERENCE / page.file).read_text()
    return re.findall("^### (.+)$", text, re.MULTILINE)


def test_the_pages_are_what_the_docstrings_say():
    done = subprocess.run(
        [sys.executable, "-m", "scripts.api_reference", "--check"],
        cwd=REPOSITORY,
        env={"PYTHONPATH": str(REPOSITORY / "src")},
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("module", MODULES)
def test_every_public_class_and_function_is_on_one_page(module):
    pages = [page for page in api_reference.PAGES if page.module == module]
    public = importlib.import_module(module)
    values = {name: getattr(public, name) for name in public.__all__}
    named = {n for n, v in values.items() if inspect.isclass(v) or inspect.isroutine(v)}
    listed = [name for page in pages for name in api_reference.public_names(page)]
    assert sorted(listed) == sorted(named)
    for page in pages:
        assert api_reference.public_names(page).keys() - {*headings(page)} == set()


def test_every_constant_is_a_member_on_the_page():
    import zerohop

    page = (api_reference.REFERENCE / "api.md").read_text()
    members = {v for n in zerohop.__all__ if isinstance(v := getattr(zerohop, n), enum.Enum)}
    assert {member for member in members if f"`{member.name}`" not in page} == set()


def test_every_page_is_in_the_readme():
    readme = (REPOSITORY / "README.md").read_text()
    missing = [p.file for p in api_reference.PAGES if f"docs/reference/{p.file}" not in readme]
    assert missing == []


def test_a_docstring_is_taken_apart_at_its_sections():
    read = docstrings.read(
        """Do it. See :meth:`~zerohop.Socket.send`, ``twice``.

        More of it.

            code(indented)

        Args:
            first: what is
                done with it.
            second, third: likewise: yes.

        Returns:
            What
            came of it.

        Raises (while iterating):
            Again: not yet.

        And after them.
        """
    )
    assert read.text == (
        "Do it. See `send`, `twice`.\n\nMore of it.\n\n    code(indented)\n\nAnd after them."
    )
    assert read.sections == {
        "Args": {"first": "what is done with it.", "second, third": "likewise: yes."},
        "Raises (while iterating)": {"Again": "not yet."},
    }
    assert read.returns == "What came of it."


def test_no_docstring_says_nothing():
    assert docstrings.read(None) == docstrings.Docstring()


def test_names_of_a_section_lead_where_they_stand():
    items = {"Again, TypeError": "not yet."}
    assert docstrings.bullets(items, {"Again": "api.md#again"}) == (
        "* [`Again`](api.md#again), `TypeError`: not yet.\n"
    )


@pytest.fixture
def shapes(tmp_path, monkeypatch):
    """A module of the package with a class of each kind."""
    import zerohop

    monkeypatch.setattr(zerohop, "__path__", [*zerohop.__path__, str(tmp_path)])
    monkeypatch.delitem(sys.modules, "zerohop.shapes", raising=False)
    (tmp_path / "shapes.py").write_text(
        textwrap.dedent(
            """
            from dataclasses import dataclass, field
            from typing import ClassVar, TypeAlias

            LIMIT = 1_000
            Name: TypeAlias = int | str
            "What it is called."


            @dataclass
            class Fields:
                first: "Name"
                second: list[int] = field(default_factory=list)
                shared: ClassVar[int] = 0
                _hidden: int = 0


            class Made:
                def __init__(self, given: int, /, *more: Name, limit: int = LIMIT, **others: str):
                    self.given = given
                    self.found: bytes = b""

                @property
                def size(self) -> float:
                    return 1.0

                @classmethod
                def of(cls, flag=True) -> "Made":
                    return cls(1)

                async def wait(self, *, timeout: float | None = None, name: str = "n") -> None: ...


            class Inherits(Made):
                pass
            """
        )
    )
    return importlib.import_module("zerohop.shapes")


def test_a_class_of_fields_is_made_of_its_public_fields(shapes):
    made = signatures.constructor_of(shapes.Fields)
    assert made.is_fields
    assert [*made.parameters.values()] == ["first: 'Name'", "second: list[int] = ..."]


def test_other_classes_are_made_by_the_nearest_init_and_a_constant_is_its_value(shapes):
    made = signatures.constructor_of(shapes.Inherits)
    assert not made.is_fields
    assert signatures.signature("Inherits", made.parameters.values()) == (
        "Inherits(given: int, /, *more: Name, limit: int = 1000, **others: str)"
    )


def test_a_method_is_shown_as_it_is_called(shapes):
    shown = []
    for method in (shapes.Made.of.__func__, shapes.Made.wait):
        node = signatures.definition_of(method)
        given = signatures.parameters("zerohop.shapes", node).values()
        shown.append(signatures.signature(method.__name__, given, node))
    assert shown == [
        "classmethod of(flag=True) -> 'Made'",
        "async wait(*, timeout: float | None = None, name: str = 'n')",
    ]


def test_a_long_signature_has_a_line_a_parameter():
    given = [f"parameter_{n}: int" for n in range(6)]
    lines = signatures.signature("call", given).splitlines()
    assert lines == ["call(", *(f"    {each}," for each in given), ")"]


def test_an_attribute_has_the_type_that_the_source_gives_it(shapes):
    types = {n: ast.unparse(t) for n, t in signatures.types_of(shapes.Inherits).items()}
    assert types == {
        "given": "int",
        "limit": "int",
        "found": "bytes",
        "size": "float",
    }


def test_a_name_in_a_signature_is_found_where_it_is_defined(shapes):
    assert signatures.origin("zerohop.shapes", "Name") == ("zerohop.shapes", "Name")
    assert signatures.origin("zerohop.serving.control.server", "Protocol") == (
        "zerohop.serving.control.protocol",
        "Protocol",
    )
    assert signatures.origin("zerohop.shapes", "dataclass") is None
    assert signatures.alias_of("zerohop.shapes", "Name") == "int | str"
    assert signatures.alias_of("zerohop.shapes", "LIMIT") is None
    assert signatures.words_of("zerohop.shapes", "Name") == "What it is called."
    assert signatures.words_of("zerohop.shapes", "LIMIT") is None
