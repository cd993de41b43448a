"""The protocol of an MP server, release by release."""

import pytest

from zerohop.serving.control.lmcache.operations import lmcache_protocol
from zerohop.serving.control.lmcache.releases import OPERATIONS


def operation(name, release="0.5.6"):
    protocol = lmcache_protocol([name], release)
    return next(each for each in protocol.operations if each.name == name)


def test_a_ping_is_in_it_with_the_number_and_the_argument_of_the_release():
    assert (operation("ping").number, len(operation("ping").arguments)) == (22, 1)
    assert (operation("ping", "0.4.7").number, operation("ping", "0.4.7").arguments) == (18, ())
    assert [each.name for each in lmcache_protocol([]).operations] == ["ping"]


def test_what_has_no_number_goes_by_its_name():
    assert operation("cb_reorder_plan").number is None


def test_every_numbered_operation_of_the_latest_release_can_be_served():
    protocol = lmcache_protocol(OPERATIONS["0.5.6"])
    assert {each.name for each in protocol.operations} == OPERATIONS["0.5.6"].keys()


def test_clear_may_be_asked_for_without_its_argument():
    assert operation("clear").optional == 1


def test_what_an_older_release_takes_is_not_known_but_for_a_few():
    assert operation("store", "0.5.3").arguments is None
    assert operation("noop", "0.5.3").arguments == ()


@pytest.mark.parametrize(
    ("name", "release"),
    [("nonsense", "0.5.6"), ("subscribe_kv_events", "0.5.6"), ("cb_reorder_plan", "0.5.3")],
)
def test_what_the_release_does_not_have_cannot_be_served(name, release):
    with pytest.raises(ValueError, match="could be served"):
        lmcache_protocol([name], release)


def test_a_release_without_a_ping_cannot_be_served():
    with pytest.raises(ValueError, match=r"0\.4\.1 has no operation 'ping'"):
        lmcache_protocol([], "0.4.1")
