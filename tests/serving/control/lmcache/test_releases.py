"""The numbers of LMCache's operations, by release."""

import pytest

from zerohop.serving.control.lmcache.releases import (
    OPERATIONS,
    RELEASES,
    check_release,
    operation_name,
    operation_number,
)


@pytest.mark.parametrize(
    ("release", "number"),
    [
        ("0.3.15", None),
        ("0.4.2", 11),
        ("0.4.3", 12),
        ("0.4.4", 12),
        ("0.4.5", 12),
        ("0.4.6", 17),
        ("0.4.7", 18),
        ("0.5.0", 19),
        ("0.5.3", 22),
        ("0.5.6", 22),
    ],
)
def test_a_ping_has_another_number_in_another_release(release, number):
    assert operation_number("ping", release) == number


def test_the_ping_of_0_4_6_runs_clear_on_0_5_0():
    assert operation_name(operation_number("ping", "0.4.6"), "0.5.0") == "clear"


def test_the_store_of_0_5_0_registers_a_query_cache_on_0_5_3():
    assert operation_name(operation_number("store", "0.5.0"), "0.5.3") == "register_q_cache"


@pytest.mark.parametrize("release", RELEASES[:-1])
def test_up_to_0_5_3_the_numbers_are_counted_without_a_gap(release):
    numbers = sorted(OPERATIONS[release].values())
    assert numbers == list(range(1, len(numbers) + 1))


def test_from_0_5_6_on_a_number_that_was_retired_is_nobodys():
    assert sorted(OPERATIONS["0.5.6"].values()) == [*range(1, 11), *range(12, 34)]
    assert operation_name(11) is None


def test_an_operation_that_goes_by_its_name_has_no_number():
    assert operation_number("subscribe_kv_events") is None


def test_a_release_that_is_not_known_is_told_with_those_that_are():
    assert check_release("0.5.3") == "0.5.3"
    with pytest.raises(ValueError, match=r"no release '0\.4\.8' of LMCache is known: 0\.3\.9"):
        check_release("0.4.8")


def test_no_release_is_made_up():
    with pytest.raises(KeyError):
        operation_number("ping", "0.4.8")
