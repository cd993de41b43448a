"""Who may import whom. Change a line here only with a line in docs/explanation/design.md."""

import ast
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent
SOURCE = REPOSITORY / "src" / "zerohop"

FOUNDATION = {"constants", "errors", "value"}
PATTERNS = FOUNDATION | {"patterns"}
CORE = PATTERNS | {"wire", "mechanisms", "core"}
API = CORE | {"io", "api"}
# What the public names come from; these two name whom an outer layer may ask for.
PUBLIC = {"zerohop", "asyncio"}

MAY_IMPORT = {  # layer: the layers it may use, besides itself
    "_version": set(),
    "constants": set(),
    "value": set(),
    "errors": {"constants"},
    "error": {"errors"},
    "wire": FOUNDATION,
    "mechanisms": FOUNDATION | {"wire"},
    "patterns": FOUNDATION,
    "core": CORE,
    "io": CORE,
    "api": API,
    "asyncio": API,
    "sync": API,
    "utils": API,
    "devices": PUBLIC,
    "decorators": PUBLIC | {"api"},
    "sugar": PUBLIC,
    "auth": PUBLIC,
    "compat": PUBLIC | {"devices", "auth"},
    "serving": PUBLIC | {"devices", "auth"},
    "cli": PUBLIC | {"devices", "auth", "serving"},
    "__main__": {"cli"},
}
PURE = {"constants", "errors", "value", "wire", "mechanisms", "patterns", "core"}
# Of serving, every file is pure but these, which act; and no pure file of it knows a socket.
SERVING_ACTS = {
    *(f"{name}.py" for name in ("actor", "asyncio_actor", "asyncio_closing", "addresses")),
    *(f"engine/{name}.py" for name in ("client", "channel", "server", "pulse", "waking")),
    *(
        f"engine/{name}.py"
        for name in ("asyncio_client", "asyncio_channel", "channel_thread", "readers")
    ),
    *(f"kv/{name}.py" for name in ("publisher", "answering", "snapshots", "recording")),
    *(f"kv/{name}.py" for name in ("subscriber", "asyncio_subscriber")),
    *(f"control/{name}.py" for name in ("server", "client", "asyncio_server", "asyncio_client")),
    *(f"control/{name}.py" for name in ("hands", "probe")),
    *(f"control/lmcache/{name}.py" for name in ("controller", "client", "server")),
    "control/lmcache/asyncio_controller.py",
}
IMPURE_MODULES = {
    *("asyncio", "socket", "selectors", "select", "ssl", "threading", "subprocess"),
    *("time", "datetime", "random", "secrets", "uuid", "logging", "os"),
}
TABLES_OF_OS = {"strerror", "fsencode"}  # of os, these only look something up
PURE_TESTS = ["core", "mechanisms", "model", "patterns", "wire"]

FRONT_DOOR = SOURCE / "__init__.py"
FILES = sorted(set(SOURCE.rglob("*.py")) - {FRONT_DOOR})
SERVING = SOURCE / "serving"
PURE_SERVING = [
    path
    for path in sorted(SERVING.rglob("*.py"))
    if path.relative_to(SERVING).as_posix() not in SERVING_ACTS
]


def layer_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports(tree: ast.AST) -> list[ast.Import | ast.ImportFrom]:
    return [n for n in ast.walk(tree) if isinstance(n, ast.Import | ast.ImportFrom)]


def modules(tree: ast.AST) -> set[str]:
    """The full name of each module that is imported, `from package import module` included."""
    names = set()
    for node in imports(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif node.module == SOURCE.name:
            names |= {f"{SOURCE.name}.{alias.name}" for alias in node.names}
        else:
            names.add(node.module)
    return names


def layers_used(path: Path) -> set[str]:
    """The layers of zerohop that a file imports, for types or at run time.

    A bare `import zerohop`, or a public name out of it, counts as the layer "zerohop".
    """
    parts = [name.split(".") for name in modules(ast.parse(path.read_text()))]
    used = {name[1] if len(name) > 1 else name[0] for name in parts if name[0] == SOURCE.name}
    return {name if name in MAY_IMPORT else SOURCE.name for name in used}


def named(path: Path) -> str:
    return str(path.relative_to(SOURCE))


@pytest.mark.parametrize("path", FILES, ids=named)
def test_every_file_belongs_to_a_layer(path):
    assert layer_of(path) in MAY_IMPORT


@pytest.mark.parametrize("path", FILES, ids=named)
def test_imports_point_downwards(path):
    assert layers_used(path) - {layer_of(path)} <= MAY_IMPORT[layer_of(path)]


@pytest.mark.parametrize("path", [FRONT_DOOR, *FILES], ids=named)
def test_imports_are_written_in_full(path):
    assert not [n.lineno for n in imports(ast.parse(path.read_text())) if getattr(n, "level", 0)]


@pytest.mark.parametrize(
    "path", [p for p in FILES if layer_of(p) in PURE or p in PURE_SERVING], ids=named
)
def test_the_pure_layers_do_not_touch_the_world(path):
    """No socket, clock, thread, randomness, log, or operating system."""
    tree = ast.parse(path.read_text())
    used = {name.split(".")[0] for name in modules(tree)}
    of_os = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "os"
    }
    of_os |= {n.names[0].name for n in imports(tree) if getattr(n, "module", None) == "os"}
    assert used & IMPURE_MODULES <= {"os"}
    assert of_os <= TABLES_OF_OS


@pytest.mark.parametrize("path", PURE_SERVING, ids=named)
def test_the_pure_files_of_serving_know_no_socket(path):
    assert layers_used(path) <= {"serving"}


def test_the_front_door_stays_closed_to_asyncio():
    """`import zerohop` is the blocking API: it must not pay for the asyncio one."""
    assert layers_used(FRONT_DOOR) <= set(MAY_IMPORT) - {"asyncio", "serving", "cli", "compat"}


def test_only_serving_needs_msgspec():
    """The sockets need the standard library alone; so does who imports serving and uses nothing."""
    users = {layer_of(p) for p in FILES if "msgspec" in modules(ast.parse(p.read_text()))}
    assert users <= {"serving", "cli"}
    assert not {"msgspec", "xxhash"} & modules(ast.parse((SERVING / "__init__.py").read_text()))


def test_the_layers_have_no_cycle():
    order = list(MAY_IMPORT)
    upward = {
        (layer, used)
        for layer, may_use in MAY_IMPORT.items()
        for used in may_use & MAY_IMPORT.keys()
        if order.index(used) > order.index(layer)
    }
    assert upward == set()


@pytest.mark.parametrize("layer", PURE_TESTS)
def test_pure_tests_never_sleep(layer):
    """Of the clock's: a Pipe has a `sleep` of its own, which takes no time."""
    assert sleeps(sorted((REPOSITORY / "tests" / layer).rglob("*.py"))) == []


def test_tests_of_the_pure_files_of_serving_never_sleep():
    tests = REPOSITORY / "tests" / "serving"
    mirrored = [path.relative_to(SERVING) for path in PURE_SERVING]
    paths = [tests / path.parent / f"test_{path.name}" for path in mirrored]
    assert sleeps([path for path in paths if path.exists()]) == []


def sleeps(paths: list[Path]) -> list[str]:
    return [
        f"{path.relative_to(REPOSITORY)}:{node.lineno}"
        for path in paths
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in {"sleep", "time.sleep", "asyncio.sleep"}
    ]
