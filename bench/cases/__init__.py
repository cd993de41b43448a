"""Every case: each module here has a ``CASES`` tuple. Add a case by adding a module.

A case imports no contender: it gets sockets from ``Role.library`` and calls them by pyzmq's names.
"""

import pkgutil
from functools import cache
from importlib import import_module

from bench.case import Case

# The order of the report; a module that is not named here comes after these.
ORDER = (
    "pushpull",
    "reqrep",
    "pubsub",
    "topics",
    "router",
    "forward",
    "lowrate",
    "inproc",
    "connections",
    "reconnect",
    "imports",
    "ticker",
    "crossed",
)


@cache
def all_cases() -> dict[str, Case]:
    """Name -> case, in the order of the report."""
    found = {module.name for module in pkgutil.iter_modules(__path__)}
    ordered = [*ORDER, *sorted(found - set(ORDER))]
    modules = [import_module(f"{__name__}.{name}") for name in ordered]
    return {case.name: case for module in modules for case in module.CASES}


def find_case(name: str) -> Case:
    """A case by its name.

    Raises:
        ValueError: there is none of that name.
    """
    try:
        return all_cases()[name]
    except KeyError:
        known = ", ".join(all_cases())
        raise ValueError(f"no case is called {name!r}; there are: {known}") from None
