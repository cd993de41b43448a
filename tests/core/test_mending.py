"""What an exception may have left half done is put right: nothing waits for what will not come.

Each test leaves a state that a signal handler could have left, by raising between two instructions.
"""

from tests.core.kit import ADDRESS, Network, inproc, make_core, received
from zerohop.core.context import ContextCore
from zerohop.core.link import Link


def mended(net):
    net.links.mend()
    net.core.inproc.mend()
    net.talk()


# -- links


def test_a_message_of_which_nobody_was_told_is_written():
    net = Network("PUSH")
    pull = net.join("PULL")
    net.core.send(b"x")
    net.links.to_flush.clear()
    net.talk()
    assert pull.taken() == []
    mended(net)
    assert pull.taken() == [b"x"]


def test_a_full_pipe_that_was_emptied_has_room_again():
    net = Network("PUSH", sndhwm=2)
    pull = net.join("PULL")
    peer = pull.link.peer
    peer.outbound.full = True
    mended(net)
    assert net.core.pattern.can_send_now()
    net.core.send(b"x")
    net.talk()
    assert pull.taken() == [b"x"]


def test_a_pipe_that_is_full_stays_so():
    net = Network("PUSH", sndhwm=2)
    net.connect()
    net.core.send(b"1")
    net.core.send(b"2")
    mended(net)
    assert not net.core.pattern.can_send_now()


def test_a_connection_that_was_not_read_is_read_again():
    net = Network("PULL", rcvhwm=2)
    push = net.greet("PUSH")
    push.say(b"1", b"2")
    net.talk()
    peer = push.link.peer
    peer.inbound.messages.clear()  # received; and the note that there is room again was lost
    push.say(b"3")
    net.talk()
    assert received(net.core) == []
    mended(net)
    assert received(net.core) == [b"3"]


def test_a_link_that_is_to_be_closed_is_closed():
    net = Network("PUSH")
    pull = net.join("PULL")
    pull.link.closing = True
    mended(net)
    assert not net.links.open_links
    other = net.greet("PULL")
    net.links.cut_source(other.link.source)
    mended(net)  # who is on the list already is not put there again
    assert not net.links.open_links


def test_a_link_that_has_nothing_left_to_send_ends():
    net = Network("PUSH")
    pull = net.join("PULL")
    pull.link.ending = True
    mended(net)
    assert not net.links.open_links


def test_a_subscription_that_one_peer_was_not_told_of_reaches_it():
    net = Network("SUB")
    pub = net.join("PUB")
    stranger = net.open(net.core.listen(ADDRESS))
    net.core.pattern.subscribe(b"a")
    net.core.pattern.announcements = []
    net.talk()
    assert pub.taken() == []
    mended(net)
    (subscription,) = pub.taken()
    assert (subscription.topic, subscription.subscribe) == (b"a", True)
    assert not stranger.handshaken


# -- times


def test_times_that_were_forgotten_are_kept_again():
    net = Network("PUSH")
    net.connect()
    net.refuse()
    (dialer,) = net.links.dialers
    when = dialer.due_at
    net.links.timers.clear()
    assert net.links.next_deadline() is None
    mended(net)
    assert net.links.next_deadline() == when
    net.after(when)
    assert net.links.to_dial == [dialer]


def test_a_handshake_ends_in_time_though_its_time_was_taken_and_not_used():
    net = Network("PUSH", handshake_ivl=5.0)
    net.connect()
    link = net.dial()
    net.links.timers.clear()
    link.due_at = None
    mended(net)
    assert link.due_at is not None
    net.now += 6.0
    net.links.handle_deadline(net.now)
    assert link.closing


# -- diallers


def test_whom_nobody_dials_is_dialled():
    net = Network("PUSH")
    dialer = net.connect()
    net.links.to_dial.clear()
    mended(net)
    mended(net)
    assert net.links.to_dial == [dialer]


def test_who_waits_is_linked_or_has_given_up_is_not_dialled():
    net = Network("PUSH")
    linked = net.join("PULL")
    waiting = net.connect("tcp://127.0.0.1:6666")
    net.refuse()
    stopped = net.connect("tcp://127.0.0.1:7777")
    net.links.to_dial.clear()
    stopped.stopped = True
    mended(net)
    assert net.links.to_dial == []
    assert linked.link in net.links.open_links
    assert waiting.due_at is not None
    assert net.links.dialers.given_up(stopped.address) == [stopped]


def test_who_was_to_leave_and_has_nothing_left_is_forgotten():
    net = Network("PUSH")
    dialer = net.connect()
    net.links.to_dial.clear()
    dialer.leaving = True
    mended(net)
    assert dialer not in net.links.dialers
    assert not net.links.dialers.has(dialer.address)


# -- inproc


def joined(context):
    sub, pub = make_core("SUB", context), make_core("PUB", context)
    pub.inproc.bind(inproc("a"))
    sub.inproc.connect(inproc("a"))
    sub.inproc.connect(inproc("nobody"))
    for core in (sub, pub):
        core.settle()
    context.hand_over()
    return sub, pub


def test_notes_about_shared_pipes_are_left_again():
    context = ContextCore()
    push, pull = make_core("PUSH", context), make_core("PULL", context)
    pull.inproc.bind(inproc("a"))
    push.inproc.connect(inproc("a"))
    context.hand_over()
    push.send(b"x")
    context.readable.clear()
    context.hand_over()
    assert received(pull) == []
    push.inproc.mend()
    context.hand_over()
    assert received(pull) == [b"x"]


def test_an_inproc_peer_hears_of_each_subscription():
    context = ContextCore()
    sub, pub = joined(context)
    sub.pattern.subscribe(b"a")
    sub.pattern.announcements = []
    assert pub.pattern.subscribers(b"a") == 0
    sub.links.mend()
    sub.inproc.mend()
    context.hand_over()
    assert pub.pattern.subscribers(b"a") == 1


def test_network_peers_are_left_to_their_links():
    net = Network("PUSH")
    net.join("PULL")
    net.core.inproc.mend()
    assert not net.core.context.readable
    assert all(isinstance(peer.link, Link) for peer in net.links.peers)
