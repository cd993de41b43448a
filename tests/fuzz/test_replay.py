"""The corpus, what is near it, and whatever once broke a target: replayed as ordinary tests."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.corpus import entries
from tests.fuzz.targets import TARGETS

ENTRIES = [
    pytest.param(TARGETS[target], octets, id=f"{target}-{name}")
    for target in TARGETS
    for name, octets in entries(target).items()
]


@pytest.mark.parametrize(("target", "octets"), ENTRIES)
def test_the_promise_holds_for_the_corpus(target, octets):
    target(octets)


@pytest.mark.parametrize(("target", "octets"), ENTRIES)
def test_and_for_every_beginning_of_it(target, octets):
    for end in range(len(octets)):
        target(octets[:end])


@pytest.mark.parametrize("value", [0x04, 0xFF])
@pytest.mark.parametrize(("target", "octets"), ENTRIES)
def test_and_with_any_octet_of_it_changed(target, octets, value):
    for place in range(len(octets)):
        target(octets[:place] + bytes((value,)) + octets[place + 1 :])


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_and_for_any_octets(target):
    given(st.binary(max_size=400))(target)()


def test_every_target_has_a_corpus():
    assert {target for target in TARGETS if entries(target)} == set(TARGETS)
