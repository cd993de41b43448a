"""Peers, the notes of their pipes, and what is counted when they leave."""

import gc
import weakref

from tests.core.kit import Network
from tests.patterns.world import EmptiedWhenFull
from zerohop.constants import SocketType
from zerohop.core.options import SocketOptions
from zerohop.core.peers import PEER_GONE, Peers, let_go, put_back
from zerohop.patterns import make_pattern
from zerohop.patterns.pipe import Pipe


class Core:
    """Whose peers they are."""


CORE = Core()


def make(socket_type="PUSH", **options):
    its_own = SocketOptions(**options)
    pattern = make_pattern(SocketType[socket_type], its_own, seed=0)
    return Peers(pattern, its_own, CORE), pattern


def test_a_new_peer_has_pipes_of_the_sockets_own_limits_and_is_not_yet_known():
    peers, pattern = make("DEALER", sndhwm=3, rcvhwm=5)
    peer = peers.new(conflate=False)
    assert (peer.outbound.hwm, peer.inbound.hwm, peer.owner) == (3, 5, CORE)
    assert peer not in peers
    assert len(peers) == 0
    assert not pattern.can_send_now()


def test_an_attached_peer_is_the_patterns():
    peers, pattern = make()
    peer = peers.new(conflate=False)
    peers.attach(peer)
    assert list(peers) == [peer]
    assert peer in peers
    assert pattern.can_send_now()


def test_peers_are_listed_in_the_order_they_came():
    peers, _ = make()
    several = [peers.new(conflate=False) for _ in range(4)]
    for peer in several:
        peers.attach(peer)
    peers.detach(several[1])
    assert list(peers) == [several[0], several[2], several[3]]


def test_a_detached_peer_is_nobodys():
    peers, pattern = make()
    peer = peers.new(conflate=False)
    peers.attach(peer)
    peer.connected = True
    peers.detach(peer)
    assert len(peers) == 0
    assert not peer.connected
    assert peer.inbound.closed
    assert not pattern.can_send_now()


def test_detaching_a_peer_twice_changes_nothing():
    peers, pattern = make()
    peer = peers.new(conflate=False)
    peers.attach(peer)
    peer.dropped["some reason"] = 2
    peers.detach(peer)
    peers.detach(peer)
    assert pattern.dropped == {"some reason": 2}


def test_messages_for_the_peer_are_noted_to_the_driver_once_a_batch():
    peers, _ = make("DEALER")
    peer = peers.new(conflate=False)
    for n in range(3):
        peer.outbound.push(b"%d" % n)
    assert peers.to_flush == [peer]


def test_room_for_more_messages_is_noted_when_a_full_pipe_was_drained():
    peers, _ = make("DEALER", sndhwm=2, rcvhwm=2)
    peer = peers.new(conflate=False)
    for pipe in (peer.outbound, peer.inbound):
        pipe.extend([b"1", b"2"])
        pipe.pop()
    assert peers.room == [peer]
    assert peers.to_resume == [peer]
    assert not peer.inbound.reader_signals, "nobody would read them"


def test_a_conflating_peer_keeps_the_last_message_each_way():
    peers, _ = make("DEALER", sndhwm=5)
    peer = peers.new(conflate=True)
    for pipe in (peer.outbound, peer.inbound):
        pipe.extend([b"1", b"2"])
        assert list(pipe.messages) == [b"2"]


def test_a_high_water_mark_that_changes_counts_for_peers_that_are_there():
    peers, pattern = make("DEALER", sndhwm=1, rcvhwm=1)
    peer = peers.new(conflate=False)
    peers.attach(peer)
    pattern.send(b"1")
    assert not pattern.can_send_now()
    pattern.options.sndhwm, pattern.options.rcvhwm = 2, 7
    peers.set_hwms()
    assert (peer.outbound.hwm, peer.inbound.hwm) == (2, 7)
    assert peers.room == [peer]


def test_an_inproc_peer_that_still_waits_for_its_name_follows_the_high_water_mark():
    peers, pattern = make("DEALER")
    peer = peers.new(conflate=False)
    peer.inproc = True
    peers.attach(peer)
    pattern.options.sndhwm = 2
    peers.set_hwms()
    assert peer.outbound.hwm == 2


def test_pipes_that_are_shared_are_left_alone():
    peers, pattern = make("DEALER")
    peer = peers.new(conflate=False)
    peer.inproc, peer.link = True, "the other end"
    peers.attach(peer)
    pattern.options.sndhwm = 2
    peers.set_hwms()
    assert peer.outbound.hwm == 1000


def test_the_queue_of_a_peer_that_will_not_come_back_is_counted():
    peers, pattern = make()
    peer = peers.new(conflate=False)
    peers.attach(peer)
    for _ in range(3):
        pattern.send(b"x")
    peers.drop_queue(peer)
    assert peer.dropped == {PEER_GONE: 3}
    assert pattern.dropped == {}  # the peer is there to be asked
    assert len(peer.outbound) == 0
    peers.detach(peer)
    assert pattern.dropped == {PEER_GONE: 3}


def test_what_is_dropped_after_a_peer_has_left_is_counted_at_once():
    peers, pattern = make()
    peer = peers.new(conflate=False)
    peers.attach(peer)
    pattern.send(b"x")
    peers.detach(peer)
    peers.drop_queue(peer, "another reason")
    assert pattern.dropped == {"another reason": 1}


def test_an_empty_queue_is_nothing_to_count():
    peers, pattern = make()
    peer = peers.new(conflate=False)
    peers.drop_queue(peer)
    assert peer.dropped == {}
    assert pattern.dropped == {}


def test_what_a_peer_did_not_get_stays_counted_when_it_has_left():
    net = Network("PUB", sndhwm=1)
    sub = net.greet("SUB")
    sub.subscribe(b"")
    net.talk()
    sub.reads = False
    for _ in range(5):
        net.core.send(b"x")
    (peer,) = net.links.peers
    assert peer.dropped == {"high-water mark": 4}
    net.cut(sub)
    assert net.core.pattern.dropped == {"high-water mark": 4, PEER_GONE: 1}


# -- what a broken connection gives back


def test_messages_that_come_back_stand_before_those_that_wait():
    pipe = Pipe(0)
    pipe.extend([b"3", b"4"])
    put_back(pipe, [b"1", b"2"])
    assert list(pipe.messages) == [b"1", b"2", b"3", b"4"]
    assert not pipe.asleep


def test_a_full_pipe_takes_back_what_it_gave():
    pipe = Pipe(2)
    pipe.extend([b"3", b"4"])
    put_back(pipe, [b"1", b"2"])
    assert len(pipe) == 4
    assert pipe.full


def test_a_pipe_that_is_filled_by_what_comes_back_is_full():
    pipe = Pipe(3)
    put_back(pipe, [b"1", b"2"])
    assert not pipe.full
    put_back(pipe, [b"0"])
    assert pipe.full


def test_a_pipe_that_a_reader_empties_before_it_is_marked_full_is_not_full():
    pipe = Pipe(2)
    pipe.messages = EmptiedWhenFull(hwm=2)
    put_back(pipe, [b"1", b"2"])
    assert not pipe.full


def test_nothing_that_comes_back_changes_nothing():
    pipe = Pipe(1)
    put_back(pipe, [])
    assert pipe.asleep
    assert not pipe.full


def test_where_only_the_last_message_counts_an_older_one_does_not_come_back():
    pipe = Pipe(0, conflate=True)
    pipe.push(b"new")
    put_back(pipe, [b"old"])
    assert list(pipe.messages) == [b"new"]


def test_where_only_the_last_message_counts_the_last_one_comes_back():
    pipe = Pipe(0, conflate=True)
    put_back(pipe, [b"last"])
    assert list(pipe.messages) == [b"last"]


def test_what_a_peer_that_is_gone_has_sent_is_received_without_a_note_to_anybody():
    peers, _ = make("PULL", rcvhwm=2)
    peer = peers.new(conflate=False)
    peers.attach(peer)
    peer.inbound.extend([b"1", b"2"])
    assert peer.inbound.full
    peers.detach(peer)
    let_go(peer)
    assert [peer.inbound.pop(), peer.inbound.pop()] == [b"1", b"2"]
    assert peers.to_resume == []


def test_a_peer_that_is_gone_needs_no_garbage_collector():
    peers, _ = make()
    peer = peers.new(conflate=False)
    peers.attach(peer)
    peers.detach(peer)
    pipe = weakref.ref(peer.outbound.messages)
    let_go(peer)
    gc.disable()
    try:
        del peer
        assert pipe() is None
    finally:
        gc.enable()
