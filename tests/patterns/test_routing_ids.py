"""The table of peers and ids."""

import pytest

from tests.patterns.world import new_peer
from zerohop.patterns.routing_ids import RoutingIds


@pytest.fixture
def ids():
    return RoutingIds(seed=7)


def test_an_invented_id_is_a_zero_and_a_counter_in_network_order(ids):
    assert ids.invent() == b"\x00\x00\x00\x00\x07"
    assert ids.invent() == b"\x00\x00\x00\x00\x08"


def test_the_counter_wraps_after_32_bits():
    ids = RoutingIds(seed=0x1_FFFF_FFFF)
    assert ids.invent() == b"\x00\xff\xff\xff\xff"
    assert ids.invent() == b"\x00\x00\x00\x00\x00"


def test_an_invented_id_that_a_peer_has_claimed_is_passed_over(ids):
    ids.give(new_peer(), b"\x00\x00\x00\x00\x07")
    assert ids.invent() == b"\x00\x00\x00\x00\x08"


def test_a_peer_is_found_by_its_id_and_knows_it(ids):
    peer = new_peer()
    ids.give(peer, b"name")
    assert ids.peer(b"name") is peer
    assert ids.peer(memoryview(b"name")) is peer
    assert ids.routing_id(peer) == peer.routing_id == b"name"
    assert b"name" in ids
    assert list(ids.peers) == [peer]


def test_a_peer_has_one_id_at_a_time(ids):
    peer = new_peer()
    ids.give(peer, b"old")
    ids.give(peer, b"new")
    assert ids.peer(b"old") is None
    assert ids.peer(b"new") is peer


def test_a_released_id_is_free_and_the_peer_remembers_it(ids):
    peer = new_peer()
    ids.give(peer, b"name")
    assert ids.release(peer) == b"name"
    assert b"name" not in ids
    assert ids.routing_id(peer) is None
    assert peer.routing_id == b"name"


def test_a_peer_without_id_releases_none(ids):
    assert ids.release(new_peer()) is None
