"""A TCP connection of those who are answered ends when what they sent has arrived."""

import contextlib
import os
import socket as plain

import pytest

import zerohop as zmq
from tests.io.hand import HandLoop, Peer, endpoint_of, server
from tests.kit.raw import greeting, message
from zerohop.io import parting
from zerohop.io.mending import mend

BODY = bytes(1_000_000)
ANSWERS = 100 * message(b"an answer")


@pytest.fixture(autouse=True)
def long_times(monkeypatch):
    """The clock is put forward by hand: beside these times a test's own are nothing."""
    for name in ("_MOMENT", "_PATIENCE", "_TALK", "_LONG"):
        monkeypatch.setattr(parting, name, 20 * getattr(parting, name))


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


def read_to_the_end(world, peer, kind=zmq.DEALER):
    """The peer takes what the socket has sent, and what follows: that no more comes."""
    world.loop.until(lambda: not peer.pull())
    assert len(peer.came) == sent(kind)


def test_all_that_was_sent_arrives_though_nobody_reads_the_answers(world, talk):
    dealer, peer = talk()
    peer.raw.sendall(ANSWERS)
    dealer.close(linger=-1)
    peer.raw.sendall(ANSWERS)
    read_to_the_end(world, peer)
    peer.raw.sendall(ANSWERS)
    world.loop.settle(3)
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
    read_to_the_end(world, peer, kind)
    peer.raw.close()
    world.loop.until(lambda: sock._driver.released)


# -- how long it lasts


def acknowledged(world, sock):
    """Wait for the peer's system, which may take 40 ms to say so."""
    (it,) = sock._driver.partings._partings.values()
    world.loop.until(lambda: parting.unacknowledged(it.sock) == 0)


def test_a_peer_that_takes_nothing_is_given_ten_seconds(world, talk):
    dealer, _ = talk()
    dealer.close(linger=-1)
    world.loop.settle()
    for _ in range(7):
        world.loop.skip(parting._LONG / 8)
    assert not dealer._driver.released
    give_up(world, dealer, parting._LONG)


def give_up(world, sock, seconds):
    """So long the peer takes nothing, unless its system has found room for something meanwhile."""
    for _ in range(3):
        if not sock._driver.released:
            world.loop.skip(1.1 * seconds)
    assert sock._driver.released
    assert world.loop.idle


def test_where_somebody_waits_for_the_end_it_is_a_second(world, talk):
    dealer, _ = talk()
    dealer.close(linger=-1)
    dealer._driver.awaited = True
    world.loop.settle()
    world.loop.skip(0.8 * parting._PATIENCE)
    assert not dealer._driver.released
    give_up(world, dealer, parting._PATIENCE)


def test_a_peer_that_takes_a_little_now_and_then_is_waited_for(world, talk, listening):
    listening.setsockopt(plain.SOL_SOCKET, plain.SO_RCVBUF, 32_000)
    dealer, peer = talk()
    dealer.close(linger=-1)
    dealer._driver.awaited = True
    (it,) = dealer._driver.partings._partings.values()
    for _ in range(5):
        before = parting.unacknowledged(it.sock)

        def takes(before=before):
            with contextlib.suppress(BlockingIOError):
                peer.raw.recv(10_000)
            return parting.unacknowledged(it.sock) < before

        world.loop.until(takes)  # its system says so when it has room for much
        world.loop.skip(0.8 * parting._PATIENCE)
        assert not dealer._driver.released


def test_where_all_has_arrived_and_no_answer_came_nobody_waits(world, talk):
    dealer, peer = talk()
    dealer.close(linger=-1)
    dealer._driver.awaited = True
    read_to_the_end(world, peer)  # but it does not hang up
    world.loop.until(lambda: dealer._driver.released)


def test_a_peer_that_has_answered_before_may_be_at_the_next_answer(world, talk):
    dealer, peer = talk()
    peer.raw.sendall(ANSWERS)
    world.loop.until(lambda: dealer.stats().incoming.messages)
    dealer.close(linger=-1)
    dealer._driver.awaited = True
    read_to_the_end(world, peer)
    acknowledged(world, dealer)
    world.loop.skip(0.1 * parting._MOMENT)
    assert not dealer._driver.released
    world.loop.skip(parting._MOMENT)
    assert dealer._driver.released


def test_where_all_has_arrived_nobody_waits_longer_than_the_peer_goes_on_answering(world, talk):
    dealer, peer = talk()
    dealer.close(linger=-1)
    dealer._driver.awaited = True
    peer.raw.sendall(ANSWERS)
    read_to_the_end(world, peer)
    acknowledged(world, dealer)
    for _ in range(3):
        peer.raw.sendall(ANSWERS)
        world.loop.settle(3)
        world.loop.skip(0.5 * parting._MOMENT)
        world.loop.settle(3)
        assert not dealer._driver.released
    world.loop.skip(1.1 * parting._MOMENT)
    world.loop.settle(3)
    assert dealer._driver.released


@pytest.mark.parametrize("reads", [True, False])
def test_a_peer_that_talks_for_ever_is_not_waited_for_for_ever(world, talk, reads):
    dealer, peer = talk()
    dealer.close(linger=-1)
    dealer._driver.awaited = True
    peer.raw.sendall(ANSWERS)
    if reads:
        read_to_the_end(world, peer)
    world.loop.settle()
    step = 0.5 * parting._MOMENT
    for _ in range(int(0.9 * parting._TALK / step)):
        peer.raw.sendall(ANSWERS)
        world.loop.turn(0.001)
        world.loop.skip(step)
        assert not dealer._driver.released
    for _ in range(int(0.2 * parting._TALK / step)):
        if not dealer._driver.released:
            peer.raw.sendall(ANSWERS)
        world.loop.turn(0.001)
        world.loop.skip(step)
    assert dealer._driver.released


def test_linger_bounds_it(world, talk):
    dealer, _ = talk()
    dealer.close(linger=6000)
    world.loop.skip(5)
    assert not dealer._driver.released
    world.loop.skip(2)
    assert dealer._driver.released
    assert world.loop.idle


def test_a_second_close_bounds_it_too(world, talk):
    dealer, _ = talk()
    dealer.close(linger=-1)
    dealer.close(linger=0)
    assert dealer._driver.released
    assert world.loop.idle


def test_without_linger_nothing_is_waited_for(world, talk):
    dealer, _ = talk()
    dealer.close(linger=0)
    assert dealer._driver.released
    assert world.loop.idle


@pytest.mark.parametrize("linger", [0, 6000])
def test_linger_bounds_disconnect_too(world, talk, listening, linger):
    dealer, _ = talk(linger=linger)
    dealer.disconnect(endpoint_of(listening))
    if linger:
        world.loop.skip(5)
        assert dealer._core.links.open_links
        world.loop.skip(2)
    assert not dealer._core.links.open_links


def test_what_was_sent_before_disconnect_arrives(world, talk, listening):
    dealer, peer = talk()
    dealer.disconnect(endpoint_of(listening))
    peer.raw.sendall(ANSWERS)
    read_to_the_end(world, peer)
    with pytest.raises(zmq.Again):
        dealer.recv(zmq.DONTWAIT)
    driver = dealer._driver
    driver._timer.cancel()  # of the handshake
    driver._timer = None
    assert driver.watches
    peer.raw.close()
    world.loop.until(lambda: not driver.watches)


# -- where there is no need


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


def arrived(world, sock, peer):
    """Wait until the peer's system has acknowledged all."""
    world.loop.until(lambda: peer.pull() and len(peer.came) == sent())
    (stream,) = sock._driver._streams.values()
    world.loop.until(lambda: parting.unacknowledged(stream._sock) == 0)


def test_what_has_arrived_is_not_waited_for(world, talk):
    dealer, peer = talk()
    arrived(world, dealer, peer)
    dealer.close(linger=-1)
    assert dealer._driver.released
    assert world.loop.idle


def test_an_answer_that_nobody_has_read_would_reset_what_has_arrived(world, talk):
    dealer, peer = talk()
    arrived(world, dealer, peer)
    peer.raw.sendall(ANSWERS)
    dealer.close(linger=-1)
    assert not dealer._driver.released
    assert not peer.pull()
    peer.raw.close()
    world.loop.until(lambda: dealer._driver.released)


def test_a_stranger_is_not_waited_for(world, listening):
    dealer = world.socket(zmq.DEALER)
    dealer.connect(endpoint_of(listening))
    peer = Peer(world, dealer, listening)
    world.loop.settle(3)
    peer.raw.sendall(greeting())  # unread
    dealer.close(linger=-1)
    assert dealer._driver.released
    peer.raw.close()


def test_who_breaks_the_protocol_is_not_waited_for(world, talk):
    dealer, peer = talk(reconnect_ivl=-1)
    peer.raw.sendall(b"\xff" * 1000)
    world.loop.until(lambda: not dealer._core.links.open_links)


# -- what else may happen meanwhile


def test_a_peer_that_breaks_off_has_ended(world, talk):
    dealer, peer = talk()
    dealer.close(linger=-1)
    peer.reset()
    world.loop.until(lambda: dealer._driver.released)
    assert world.loop.idle


def test_a_peer_that_has_broken_off_before_has_ended(world, talk):
    dealer, peer = talk()
    peer.reset()
    dealer.close(linger=-1)
    world.loop.until(lambda: dealer._driver.released)
    assert world.loop.idle


def test_where_the_system_does_not_tell_the_peer_ends_it_or_a_second(world, talk, monkeypatch):
    monkeypatch.setattr(parting, "fcntl", None)
    first, peer = talk()
    first.close(linger=-1)
    read_to_the_end(world, peer)
    peer.raw.close()
    world.loop.until(lambda: first._driver.released)
    second, _ = talk()
    second.close(linger=-1)
    second._driver.awaited = True
    give_up(world, second, parting._PATIENCE)


def test_it_goes_on_on_another_loop(world, talk):
    dealer, peer = talk()
    dealer.close(linger=-1)
    other = HandLoop()
    dealer._driver.attach(other)
    assert world.loop.idle
    assert other.pending
    peer.raw.sendall(ANSWERS)
    other.until(lambda: not peer.pull())
    assert len(peer.came) == sent()
    peer.raw.close()
    other.until(lambda: dealer._driver.released)
    assert other.idle


@pytest.mark.parametrize("stage", ["taken over", "not let go", "closed", "ended"])
def test_a_signal_handler_that_raises_anywhere_leaves_it_to_be_mended(world, talk, stage):
    dealer, peer = talk()
    (link,) = dealer._core.links.open_links
    stream = dealer._driver._streams[link]
    dealer.close(linger=-1)
    for handle in world.loop.pending:
        handle.cancel()
    world.loop.readers.clear()
    match stage:
        case "not let go":
            stream.closed = False
            dealer._driver._streams[link] = stream
        case "closed":
            stream._sock.close()
        case "ended":
            dealer._core.links.lost(link, None, 0.0)
    mend(dealer._driver)
    assert link not in dealer._driver._streams
    if stage not in ("closed", "ended"):
        assert not dealer._driver.released
        peer.raw.sendall(ANSWERS)
        read_to_the_end(world, peer)
        peer.raw.close()
    world.loop.until(lambda: dealer._driver.released)
    assert world.loop.idle
    assert not dealer._driver._streams


def test_what_a_loop_calls_back_too_late_is_nothing(world, talk):
    dealer, peer = talk()
    (link,) = dealer._core.links.open_links
    stream = dealer._driver._streams[link]
    dealer.close(linger=-1)
    assert stream.closed
    assert not stream.write()
    reader = world.loop.readers[stream._fd]
    read_to_the_end(world, peer)
    peer.raw.close()
    world.loop.until(lambda: dealer._driver.released)
    reader.run()


def test_in_a_forked_child_our_copies_are_closed(world, talk):
    dealer, _ = talk()
    dealer.close(linger=-1)
    (fd,) = world.loop.readers
    assert dealer._driver.watches
    for handle in world.loop.pending:
        handle.cancel()
    world.loop.readers.clear()
    dealer._driver.abandon()
    dealer._driver.context.drivers.clear()
    with pytest.raises(OSError, match="Bad file"):
        os.fstat(fd)
    assert not dealer._driver.partings


def test_who_waits_to_send_answers_does_not_keep_the_rest_of_the_requests_from_going(world, talk):
    dealer, peer = talk(rcvhwm=2)
    for _ in range(20):
        dealer.send(BODY)
    answers = memoryview(8_000 * ANSWERS)  # more than the systems hold

    def converse():  # it takes no more while it has an answer to send
        nonlocal answers
        try:
            while answers:
                answers = answers[peer.raw.send(answers) :]
        except BlockingIOError:
            return False
        return not peer.pull()

    for _ in range(5):
        converse()
        world.loop.settle(5)
    (link,) = dealer._core.links.open_links
    assert link.peer.inbound.full
    dealer.close(linger=-1)
    world.loop.until(converse)
    assert len(peer.came) == 21 * sent()
    peer.raw.close()
    world.loop.until(lambda: dealer._driver.released)
