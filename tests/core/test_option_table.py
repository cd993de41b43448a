"""The table itself: complete, without contradiction, and each row points at something real."""

import pytest

from zerohop.constants import SocketOption, SocketType
from zerohop.core.option_table import ALL_TYPES, REFUSED, TABLE
from zerohop.core.options import SocketOptions

ROWS = list(TABLE.values())


def name_of(row):
    return row.number.name


def test_every_option_is_in_the_table_or_refused_and_none_in_both():
    refused = [number for numbers in REFUSED.values() for number in numbers]
    assert {*TABLE, *refused} == {int(option) for option in SocketOption}
    assert not set(TABLE) & set(refused)
    assert len(refused) == len(set(refused))


def test_all_types_are_the_twelve_that_are_not_draft():
    assert len(ALL_TYPES) == 12
    assert SocketType.STREAM in ALL_TYPES
    assert SocketType.SERVER not in ALL_TYPES


@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_a_row_can_be_carried_out(row):
    assert TABLE[row.number] is row
    assert row.readers or row.writers
    assert row.about.endswith(".")
    assert not row.readers or row.dynamic or row.attribute is not None
    assert row.attribute is None or hasattr(SocketOptions(), row.attribute)
    subscribes = row.number in (SocketOption.SUBSCRIBE, SocketOption.UNSUBSCRIBE)
    kept = row.attribute is not None or row.write is not None
    assert not row.writers or kept or subscribes


@pytest.mark.parametrize("row", [r for r in ROWS if r.readers and not r.dynamic], ids=name_of)
def test_a_default_can_be_shown(row):
    shown = row.shape.show(getattr(SocketOptions(), row.attribute))
    assert type(shown) is (bytes if row.number.kind.value == "bytes" else int)


@pytest.mark.parametrize(
    ("sets", "expected"),
    [
        ([(SocketOption.XPUB_VERBOSER, True)], {"xpub_verbose": True, "xpub_verboser": True}),
        ([(SocketOption.XPUB_VERBOSE, True)], {"xpub_verbose": True, "xpub_verboser": False}),
        ([(SocketOption.XPUB_MANUAL_LAST_VALUE, True)], {"xpub_manual": True}),
        ([(SocketOption.PLAIN_SERVER, True)], {"as_server": True, "mechanism": 1}),
        ([(SocketOption.CURVE_SERVER, True)], {"as_server": True, "mechanism": 2}),
        ([(SocketOption.CURVE_SERVER, False)], {"as_server": False, "mechanism": 0}),
        (
            [(SocketOption.CURVE_SERVER, True), (SocketOption.CURVE_SECRETKEY, b"k")],
            {"as_server": True, "curve_secretkey": b"k"},
        ),
        (
            [(SocketOption.CURVE_SERVER, True), (SocketOption.CURVE_SERVERKEY, b"k")],
            {"as_server": False, "curve_serverkey": b"k"},
        ),
        (
            [(SocketOption.IPC_FILTER_UID, 1), (SocketOption.IPC_FILTER_UID, 2)],
            {"ipc_filter_uids": {1, 2}},
        ),
        (
            [(SocketOption.METADATA, b"X-a:b:c"), (SocketOption.METADATA, b"X-d:e")],
            {"metadata": {"X-a": b"b:c", "X-d": b"e"}},
        ),
    ],
)
def test_an_option_that_is_more_than_one_attribute(sets, expected):
    options = SocketOptions()
    for number, value in sets:
        TABLE[number].write(options, value, SocketType.XPUB)
    assert {name: getattr(options, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("socket_type", "acts"), [(SocketType.PUSH, True), (SocketType.REQ, False)]
)
def test_conflate_acts_on_some_types_only(socket_type, acts):
    options = SocketOptions()
    TABLE[SocketOption.CONFLATE].write(options, True, socket_type)
    assert options.conflate_asked
    assert options.conflate is acts
