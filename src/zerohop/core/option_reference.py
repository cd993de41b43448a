"""The reference page of the socket options, made from their table."""

from __future__ import annotations

from zerohop.constants import OptionKind, SocketType
from zerohop.constants import SocketOption as Number
from zerohop.core.option_table import ALL_TYPES, REFUSED, TABLE
from zerohop.core.options import SocketOptions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from zerohop.core.option_table import Option

__all__ = ["markdown"]

_HEAD = """\
# Socket options

This page is made from the table that the sockets themselves go by, `zerohop/core/option_table.py`;
a test fails when the two differ. `make docs` makes it again.

`socket.set(option, value)` and `socket.get(option)` take and return libzmq's numbers and units.
Every option is also an attribute: `socket.linger = 0`. A value that an option does not take, an
option that the type does not have, and a number that is no option raise `ZMQError` EINVAL; a value
of the wrong Python type raises `TypeError`. Behaviour is libzmq 4.3.5's as pyzmq 27.3 shows it.

* **live**: acts on connections and endpoints that exist already. Other options act on what is bound
  or connected after they were set.
* **idle**: accepted and read back, for programs that set it; nothing follows from it.
* **refused**: accepted and read back, but what it asks for is not there yet: a socket that has set
  it can neither `bind` nor `connect` (SOCKS: cannot `connect` over tcp), ENOTSUP, and nothing goes
  out unprotected.

| option | takes | default | get | set | |
|---|---|---|---|---|---|
"""

_REFUSED_HEAD = """
## Options that no type has

`get` and `set` raise EINVAL, as they do in pyzmq.

"""

_NOT_YET = {
    Number.SOCKS_PROXY,
    Number.ZAP_DOMAIN,
    Number.ZAP_ENFORCE_DOMAIN,
    Number.PLAIN_SERVER,
    Number.PLAIN_USERNAME,
    Number.PLAIN_PASSWORD,
    Number.CURVE_SERVER,
    Number.CURVE_PUBLICKEY,
    Number.CURVE_SECRETKEY,
    Number.CURVE_SERVERKEY,
}


def _types(types: frozenset[SocketType]) -> str:
    if types == ALL_TYPES:
        return "all"
    return " ".join(t.name for t in sorted(types)) or "-"


def _default(row: Option) -> str:
    if row.attribute is None:
        return ""
    value = row.shape.show(getattr(SocketOptions(), row.attribute))
    shown = str(int(value)) if isinstance(value, int) else "empty" if not value else str(value)
    return f"{shown} (SUB, XSUB: 0)" if row.attribute == "linger" else shown


def _line(row: Option) -> str:
    takes = row.shape.words if row.writers else ""
    if row.number.kind is OptionKind.BYTES and row.writers:
        takes = f"bytes: {takes}"
    marks = "".join(f"**{mark}**. " for mark in ("live", "idle") if getattr(row, mark))
    if row.number in _NOT_YET:
        marks += "**refused**. "
    return (
        f"| {row.number.name} ({int(row.number)}) | {takes} | {_default(row)} "
        f"| {_types(row.readers)} | {_types(row.writers)} | {marks}{row.about} |\n"
    )


def markdown() -> str:
    """Return the page ``docs/reference/options.md``."""
    rows = "".join(_line(row) for row in TABLE.values())
    refused = "".join(
        f"* {', '.join(f'{number.name} ({int(number)})' for number in numbers)}: {reason}\n"
        for reason, numbers in REFUSED.items()
    )
    return _HEAD + rows + _REFUSED_HEAD + refused
