"""A TCP connection of those who are answered ends when what they sent has arrived."""

import socket as plain

import pytest

import zerohop as zmq
from tests.io.hand import HandLoop, Peer, endpoint_of, server
from tests.kit.raw import message
from zerohop.io import parting

BODY = bytes(1_000_000)
ANSWERS = 100 * message(b"an answer")


@pytest.fixture
def talk(world, listening):
    """Makes a socket that has sent a large message to a peer of octets, which reads nothing."""
    peers = []

    def make(kind=zmq.DEALER, peer_type=b"ROUTER", at=listening, **options):
        sock = world.socket(kind, **options)
        sock.connect(endpoint_of(at))
        peers.append(peer := Peer(world, sock, at))
        if at.family == plain.AF_INET:
            peer.raw.setsockopt(plain.IPPROTO_TCP, plain.TCP_NODELAY, 1)
        peer.handshake(peer_type)
        sock.send(BODY)
        world.loop.until(lambda: sock.stats().outgoing.messages == 0)
        return sock, peer

    yield make
    for peer in peers:
        peer.raw.close()


def sent(kind=zmq.DEALER):
    return len(message(b"", BODY) if kind == zmq.REQ else message(BODY))


def test_all_that_was_sent_arrives_though_nobody_reads_the_answers(world, talk):
    dealer, peer = talk()
    peer.raw.sendall(ANSWERS)
    dealer.close(linger=-1)
    peer.raw.sendall(ANSWERS)
    world.loop.until(lambda: not peer.pull())
    peer.raw.sendall(ANSWERS)
    world.loop.settle(3)
    assert len(peer.came) == sent()
    peer.raw.close()
    world.loop.until(lambda: dealer._driver.released)
    assert world.loop.idle


@pytest.mark.parametrize(
    ("kind", "peer_type"),
    [(zmq.REQ, b"ROUTER"), (zmq.DEALER, b"REP"), (zmq.PAIR, b"PAIR")],
)
def test_it_ends_as_soon_as_the_peer_does(world, talk, kind, peer_type):
    sock, peer = talk(kind, peer_type)
    sock.close(linger=-1)
    assert not sock._driver.released
    world.loop.until(lambda: not peer.pull())
    assert len(peer.came) == sent(kind)
    peer.raw.close()
    world.loop.until(lambda: sock._driver.released, seconds=parting._MOMENT / 2)


def test_what_has_arrived_is_waited_for_no_longer_than_somebody_may_be_answering(world, talk):
    dealer, peer = talk()
    dealer.close(linger=-1)
    world.loop.until(lambda: not peer.pull())  # but it does not hang up
    for _ in range(3):
        peer.raw.sendall(ANSWERS)
        world.loop.settle(3)
        world.loop.skip(0.5 * parting._MOMENT)
        world.loop.settle(3)
        assert not dealer._driver.released
    world.loop.skip(1.1 * parting._MOMENT)
    world.loop.settle(3)
    assert dealer._driver.released
    assert world.loop.idle


def test_a_peer_that_takes_nothing_is_waited_for_for_a_second(world, talk):
    dealer, _ = talk()
    dealer.close(linger=-1)
    world.loop.settle()
    world.loop.skip(0.8 * parting._PATIENCE)
    assert not dealer._driver.released
    world.loop.skip(0.3 * parting._PATIENCE)
    assert dealer._driver.released
    assert world.loop.idle


def test_a_peer_that_takes_a_little_now_and_then_is_waited_for(world, talk):
    dealer, peer = talk()
    dealer.close(linger=-1)
    got = 0
    while got < sent():
        world.loop.settle()
        world.loop.skip(0.8 * parting._PATIENCE)
        assert not dealer._driver.released
        got += len(peer.raw.recv(500_000))


def test_linger_bounds_it(world, talk):
    dealer, _ = talk()
    dealer.close(linger=300)
    world.loop.skip(0.25)
    assert not dealer._driver.released
    world.loop.skip(0.1)
    assert dealer._driver.released
    assert world.loop.idle


def test_without_linger_nothing_is_waited_for(world, talk):
    dealer, _ = talk()
    dealer.close(linger=0)
    assert dealer._driver.released
    assert world.loop.idle


@pytest.mark.parametrize("linger", [0, 300])
def test_linger_bounds_disconnect_too(world, talk, listening, linger):
    dealer, _ = talk(linger=linger)
    dealer.disconnect(endpoint_of(listening))
    if linger:
        world.loop.skip(0.25)
        assert dealer._core.links.open_links
        world.loop.skip(0.1)
    assert not dealer._core.links.open_links


def test_what_was_sent_before_disconnect_arrives(world, talk, listening):
    dealer, peer = talk()
    dealer.disconnect(endpoint_of(listening))
    peer.raw.sendall(ANSWERS)
    world.loop.until(lambda: not peer.pull())
    assert len(peer.came) == sent()
    with pytest.raises(zmq.Again):
        dealer.recv(zmq.DONTWAIT)


def test_nobody_answers_a_push(world, join):
    push, peer = join()
    push.send(BODY)
    push.close(linger=-1)
    assert push._driver.released
    world.loop.until(lambda: not peer.pull())
    assert peer.came == message(BODY)


def test_what_was_sent_through_ipc_has_arrived(world, talk):
    with server(plain.AF_UNIX) as listening:
        dealer, peer = talk(at=listening, sndbuf=4_000_000)
        dealer.close(linger=-1)
        assert dealer._driver.released
        assert not peer.pull()
        assert len(peer.came) == sent()


def test_what_has_arrived_is_not_waited_for(world, talk):
    dealer, peer = talk()
    world.loop.until(lambda: peer.pull() and len(peer.came) == sent())
    (link,) = dealer._core.links.open_links
    sock = dealer._driver._streams[link]._sock
    world.loop.until(lambda: parting.unacknowledged(sock) == 0)
    dealer.close(linger=-1)
    assert dealer._driver.released
    assert world.loop.idle


def test_an_answer_that_nobody_has_read_would_reset_what_has_arrived(world, talk):
    dealer, peer = talk()
    world.loop.until(lambda: peer.pull() and len(peer.came) == sent())
    peer.raw.sendall(ANSWERS)
    dealer.close(linger=-1)
    assert not dealer._driver.released
    world.loop.until(lambda: not peer.pull())
    peer.raw.close()
    world.loop.until(lambda: dealer._driver.released, seconds=parting._MOMENT / 2)


def test_a_peer_that_breaks_off_has_ended(world, talk):
    dealer, peer = talk()
    dealer.close(linger=-1)
    peer.reset()
    world.loop.until(lambda: dealer._driver.released, seconds=parting._MOMENT / 2)
    assert world.loop.idle


def test_where_the_system_does_not_tell_the_peer_ends_it_or_a_second(world, talk, monkeypatch):
    monkeypatch.setattr(parting, "fcntl", None)
    first, peer = talk()
    first.close(linger=-1)
    world.loop.until(lambda: not peer.pull())
    peer.raw.close()
    world.loop.until(lambda: first._driver.released, seconds=parting._MOMENT / 2)
    second, _ = talk()
    second.close(linger=-1)
    world.loop.skip(1.1 * parting._PATIENCE)
    assert second._driver.released


def test_it_goes_on_on_another_loop(world, talk):
    dealer, peer = talk()
    dealer.close(linger=-1)
    other = HandLoop()
    dealer._driver.attach(other)
    assert world.loop.idle
    peer.raw.sendall(ANSWERS)
    other.until(lambda: not peer.pull())
    assert len(peer.came) == sent()
    peer.raw.close()
    other.until(lambda: dealer._driver.released, seconds=parting._MOMENT / 2)
    assert other.idle


def test_a_signal_handler_that_raises_leaves_it_as_it_is(world, talk):
    from zerohop.io.mending import mend

    dealer, peer = talk()
    dealer.close(linger=-1)
    mend(dealer._driver)
    assert not dealer._driver.released
    peer.raw.sendall(ANSWERS)
    world.loop.until(lambda: not peer.pull())
    assert len(peer.came) == sent()
    peer.raw.close()
    world.loop.until(lambda: dealer._driver.released, seconds=parting._MOMENT / 2)
    assert world.loop.idle
