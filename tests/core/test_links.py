"""Handshakes, traffic, heartbeats and the end of connections."""

import tracemalloc

import pytest

from tests.core.kit import ADDRESS, EVERYTHING, Network, Remote, received
from zerohop.constants import Errno, Event
from zerohop.core.peers import PEER_GONE
from zerohop.errors import Again, HandshakeError, ProtocolError
from zerohop.wire.commands import encode_ping
from zerohop.wire.events import ErrorReceived, SubscriptionReceived
from zerohop.wire.frames import Command, encode


def only_link(net):
    (link,) = net.links.open_links
    return link


def only_dialer(net):
    (dialer,) = net.links.dialers
    return dialer


def only_peer(net):
    (peer,) = net.links.peers
    return peer


def wire_of(*messages):
    return b"".join(encode(list(messages)))


# -- handshakes


@pytest.mark.parametrize("minor", [0, 1])
@pytest.mark.parametrize("way", ["join", "greet"])
def test_after_the_handshake_messages_flow_both_ways(way, minor):
    net = Network("DEALER", routing_id=b"me")
    remote = getattr(net, way)("ROUTER", minor=minor)
    assert remote.handshaken.properties == {"socket-type": b"DEALER", "identity": b"me"}
    net.core.send(b"there")
    net.talk()
    remote.say(b"and", [b"back", b""])
    net.talk()
    assert remote.taken() == [b"there"]
    assert received(net.core) == [b"and", [b"back", b""]]


def test_a_stranger_who_only_connects_has_no_queue():
    net = Network("PUSH")
    link = net.open(net.core.listen(ADDRESS))
    assert link.peer is None
    assert list(net.links.peers) == []
    with pytest.raises(Again):
        net.core.send(b"x")


def test_a_dialled_peer_is_connected_only_after_its_handshake():
    net = Network("PUSH")
    net.connect()
    link = net.dial()
    assert only_peer(net) is link.peer
    assert not link.peer.connected
    assert not link.handshaken


def test_what_the_peer_is_and_what_it_is_called_is_known_after_the_handshake():
    net = Network("ROUTER")
    net.greet("DEALER", identity=b"name")
    peer = only_peer(net)
    assert (peer.socket_type, peer.routing_id, peer.connected) == ("DEALER", b"name", True)


def test_what_is_queued_goes_out_when_the_handshake_is_done_whoever_is_first():
    """Our READY may be written long before the peer's comes: then nothing else is to be said."""
    net = Network("PUSH")
    net.connect()
    net.core.send(b"queued")
    link = net.dial()
    said = handshake_of("PULL")
    net.takes(link)
    net.links.receive_data(link, said[:64], 0.0)
    net.takes(link)
    net.core.settle()
    net.links.to_flush.clear()
    net.links.to_write.clear()
    net.links.receive_data(link, said[64:], 0.0)
    assert net.links.to_flush == [link.peer]
    assert net.takes(link) == wire_of(b"queued")


def test_with_immediate_each_connection_has_a_peer_of_its_own():
    net = Network("ROUTER", immediate=True, connect_routing_id=b"it", router_mandatory=True)
    first = net.join("DEALER")
    peer, dialer = only_peer(net), only_dialer(net)
    assert dialer.peer is peer
    net.cut(first)
    assert (dialer.peer, dialer.link) == (None, None)
    net.after(1.0)
    second = net.meet(dialer, "DEALER")
    assert only_peer(net) is not peer
    net.core.send([b"it", b"hello"])
    net.talk()
    assert second.taken() == [b"hello"]


def test_messages_before_the_handshake_are_an_offence():
    net = Network("PULL")
    remote = net.greet("")  # shakes hands, and has said no Socket-Type: that is allowed
    assert only_peer(net).socket_type == ""
    link = net.open(net.links.listeners[0])
    net.links.receive_data(link, bytes(Remote("PUSH").said[:64]) + wire_of(b"early"), 0.0)
    assert isinstance(link.failure, ProtocolError)
    remote.say(b"in time")
    net.talk()
    assert received(net.core) == [b"in time"]


def test_what_comes_right_behind_the_handshake_is_received():
    net = Network("PULL")
    remote = Remote("PUSH")
    net.open(net.core.listen(ADDRESS), remote)
    remote.say(b"right behind")
    net.talk()
    assert received(net.core) == [b"right behind"]


def test_what_was_whole_before_an_offence_is_received():
    net = Network("PULL")
    remote = net.greet("PUSH")
    remote.said += wire_of(b"whole") + b"\xff" + wire_of(b"behind")
    net.talk()
    assert received(net.core) == [b"whole"]
    assert list(net.links.open_links) == []


@pytest.mark.parametrize("way", ["join", "greet"])
def test_a_wrong_socket_type_is_told_to_everybody(way):
    net = Network("PUSH")
    remote = getattr(net, way)("SUB")
    source = only_dialer(net) if way == "join" else net.links.listeners[0]
    assert isinstance(source.last_error, HandshakeError)
    assert "is a SUB socket; PUSH talks to PULL" in str(source.last_error)
    assert Event.HANDSHAKE_FAILED_PROTOCOL in net.events()
    (report,) = net.reports()
    assert report.startswith(f"PUSH {ADDRESS}: ")
    (refusal,) = remote.taken()
    assert isinstance(refusal, ErrorReceived)
    assert list(net.links.open_links) == []


def test_a_wrong_socket_type_is_dialled_again_slowly_and_the_right_one_is_found():
    net = Network("PUSH", reconnect_ivl=0.1, jitter=1.0)
    net.join("SUB")
    net.core.send(b"for whom it may concern")
    dialer = only_dialer(net)
    assert dialer.due_at - net.now == pytest.approx(1.0)
    net.after(1.0)
    remote = net.meet(dialer, "PULL")
    assert remote.taken() == [b"for whom it may concern"]
    assert dialer.last_error is None


def test_a_mismatch_at_each_attempt_is_logged_once_until_a_handshake():
    net = Network("PUSH")
    net.join("SUB")
    dialer = only_dialer(net)
    for _ in range(3):
        net.after(60.0)
        net.meet(dialer, "SUB")
    assert len(net.reports()) == 1
    net.after(60.0)
    net.cut(net.meet(dialer, "PULL"))
    net.after(60.0)
    net.meet(dialer, "SUB")
    assert len(net.reports()) == 1


def test_a_mechanism_that_does_not_fit_is_told():
    net = Network("PUSH")
    dialer = net.connect()
    remote = Remote("PULL")
    remote.said[12:16] = b"CURV"
    remote.said[16:17] = b"E"
    net.dial(remote)
    net.talk()
    assert "CURVE" in str(dialer.last_error)
    failed = next(r for r in net.records() if r.event == Event.HANDSHAKE_FAILED_PROTOCOL)
    assert failed.value == Event.PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH
    assert dialer.due_at - net.now > 0.4


def test_another_program_on_the_port_is_dialled_again_at_the_usual_pace():
    net = Network("PUSH", reconnect_ivl=0.1)
    dialer = net.connect()
    link = net.dial()
    net.links.receive_data(link, b"HTTP/1.1 400 Bad Request\r\n", 0.0)
    net.talk()
    assert "HTTP" in str(dialer.last_error)
    assert dialer.due_at - net.now == pytest.approx(0.1)


def test_a_peer_that_refuses_us_says_why():
    net = Network("PUSH")
    remote = net.join("PULL")
    remote.connection.refuse("go away")
    remote.said += remote.connection.data_to_send()
    net.talk()
    assert "refused this socket: 'go away'" in str(only_dialer(net).last_error)
    assert list(net.links.open_links) == []


def test_nothing_that_a_peer_says_after_its_refusal_is_heard():
    net = Network("PULL")
    remote = net.greet("PUSH")
    remote.say(b"before")
    remote.connection.refuse("go away")
    remote.said += remote.connection.data_to_send() + wire_of(b"after")
    net.talk()
    assert received(net.core) == [b"before"]


def test_a_handshake_has_its_time_limit():
    net = Network("PULL", handshake_ivl=3.0)
    link = net.open(net.core.listen(ADDRESS))
    assert net.links.next_deadline() == 3.0
    net.after(2.9)
    assert not link.closing
    net.after(0.2)
    assert link.lost
    assert link.failure.errno == Errno.ETIMEDOUT


def test_a_handshake_that_was_in_time_is_not_held_against_its_peer_later():
    net = Network("PULL", handshake_ivl=3.0)
    remote = net.greet("PUSH")
    net.after(3.1)
    assert list(net.links.open_links) == [remote.link]
    assert net.links.next_deadline() is None


def test_a_dialled_peer_that_says_nothing_is_dialled_again_at_the_usual_pace():
    net = Network("PUSH", handshake_ivl=3.0, reconnect_ivl=0.1)
    net.connect()
    net.dial()
    net.after(3.1)
    assert only_dialer(net).due_at - net.now == pytest.approx(0.1)


# -- the connection is cut at every octet


def handshake_of(socket_type):
    """All that a peer says until its handshake is done."""
    said = Remote(socket_type)
    said.hear(bytes(Remote("PUSH").said), 0.0)  # the greeting it answers
    return bytes(said.said)


@pytest.mark.parametrize("way", ["dialled", "accepted"])
def test_a_handshake_may_be_cut_after_any_octet_said(way):
    whole = handshake_of("PULL")
    for octets in range(len(whole)):
        net = Network("PUSH")
        if way == "dialled":
            net.connect()
            net.core.send(b"kept")
            link = net.dial()
        else:
            link = net.open(net.core.listen(ADDRESS))
        net.links.receive_data(link, whole[:octets], 0.0)
        assert not link.handshaken
        net.links.lost(link, None, 0.0)
        net.core.settle()
        assert list(net.links.open_links) == []
        if way == "dialled":
            net.after(1.0)
            assert net.meet(only_dialer(net), "PULL").taken() == [b"kept"]
        else:
            assert list(net.links.peers) == []
            assert net.greet("PULL").handshaken


def test_a_handshake_may_be_cut_after_any_octet_written():
    whole = len(handshake_of("PUSH"))
    for octets in range(whole):
        net = Network("PUSH")
        dialer = net.connect()
        net.core.send(b"kept")
        link = net.dial()
        net.takes(link, octets)
        if octets >= 64:
            net.links.receive_data(link, handshake_of("PULL")[:64], 0.0)
            net.takes(link, octets - 64)
        net.links.lost(link, None, 0.0)
        net.after(1.0)
        assert net.meet(dialer, "PULL").taken() == [b"kept"]


MESSAGES = [b"", b"one", [b"two", b"", b"parts"], b"x" * 300, b"last"]


@pytest.mark.parametrize("with_control", [False, True])
def test_a_dialled_connection_may_be_cut_after_any_octet_sent(with_control):
    """What is wholly written is gone, the rest comes with the next connection: none twice."""
    total = len(wire_of(*MESSAGES)) + (9 if with_control else 0)
    for octets in range(total + 1):
        net = Network("DEALER")
        first = net.join("DEALER")
        first.reads = False
        if with_control:  # a PONG goes out before the messages
            first.said += wire_of(Command(encode_ping(0, b"")))
            net.read(first.link)
        for message in MESSAGES:
            net.core.send(message)
        net.core.settle()
        first.hear(net.takes(first.link, octets), 0.0)
        before = [item for item in first.taken() if not isinstance(item, Command)]
        net.cut(first)
        net.after(1.0)
        second = net.meet(only_dialer(net), "DEALER")
        assert before + second.taken() == MESSAGES


def test_an_accepted_connection_may_be_cut_after_any_octet_sent():
    """What was not wholly written is lost, and counted."""
    for octets in range(len(wire_of(*MESSAGES)) + 1):
        net = Network("PUSH")
        remote = net.greet("PULL")
        remote.reads = False
        for message in MESSAGES:
            net.core.send(message)
        net.core.settle()
        remote.hear(net.takes(remote.link, octets), 0.0)
        net.cut(remote)
        lost = len(MESSAGES) - len(remote.taken())
        assert net.core.pattern.dropped == ({PEER_GONE: lost} if lost else {})
        assert list(net.links.peers) == []


@pytest.mark.parametrize("way", ["join", "greet"])
def test_a_connection_may_be_cut_after_any_octet_received(way):
    """Whole messages are received, the rest of one that was cut never."""
    said = wire_of(*MESSAGES)
    for octets in range(len(said) + 1):
        net = Network("DEALER")
        remote = getattr(net, way)("DEALER")
        net.links.receive_data(remote.link, said[:octets], 0.0)
        net.cut(remote)
        whole = received(net.core)
        assert whole == MESSAGES[: len(whole)]
        assert len(wire_of(*whole)) <= octets
        if whole != MESSAGES:
            assert len(wire_of(*MESSAGES[: len(whole) + 1])) > octets
        if way == "join":
            net.after(1.0)
            other = net.meet(only_dialer(net), "DEALER")
        else:
            other = net.greet("DEALER")
        other.say(b"whole")
        net.talk()
        assert received(net.core) == [b"whole"]


# -- reconnecting


def test_a_dialled_peer_keeps_its_queue_and_its_place_over_reconnections():
    net = Network("PUSH", sndhwm=10)
    first = net.join("PULL")
    peer = only_peer(net)
    net.cut(first, OSError(104, "reset"))
    assert not peer.connected
    assert isinstance(only_dialer(net).last_error, OSError)
    for n in range(10):
        net.core.send(b"%d" % n)
    with pytest.raises(Again):
        net.core.send(b"one too many")
    net.after(1.0)
    second = net.meet(only_dialer(net), "PULL")
    assert second.taken() == [b"%d" % n for n in range(10)]
    assert only_peer(net) is peer
    assert peer.connected
    assert (only_dialer(net).reconnects, only_dialer(net).attempt) == (1, 0)
    net.cut(second)
    assert (only_dialer(net).link, only_dialer(net).attempt) == (None, 1)


def test_a_full_queue_that_goes_back_and_forth_never_stops_for_good():
    net = Network("PUSH", sndhwm=4)
    remote = net.join("PULL")
    sent = 0
    arrived = []
    for _ in range(5):
        remote.reads = False
        while net.core.pattern.can_send_now():
            net.core.send(b"%d" % sent)
            sent += 1
        net.takes(remote.link, 4)
        net.core.settle()
        while net.core.pattern.can_send_now():
            net.core.send(b"%d" % sent)
            sent += 1
        arrived += remote.taken()
        net.cut(remote)
        assert len(only_peer(net).outbound) <= 8
        net.after(1.0)
        remote = net.meet(only_dialer(net), "PULL")
        arrived += remote.taken()
    assert sent > 20
    assert net.core.pattern.can_send_now()
    numbers = [int(message) for message in arrived]
    # The kernel had four octets of each first connection: one message of two octets and a header.
    assert numbers == sorted(set(numbers))


def test_an_accepted_peer_that_left_leaves_what_it_had_sent():
    net = Network("PULL")
    remote = net.greet("PUSH")
    remote.say(b"1", b"2")
    net.talk()
    net.cut(remote)
    assert list(net.links.peers) == []
    assert received(net.core) == [b"1", b"2"]


def test_a_lost_link_is_lost_once():
    net = Network("PUSH")
    remote = net.join("PULL")
    net.links.lost(remote.link, None, 0.0)
    net.events()
    net.links.lost(remote.link, OSError(104, "reset"), 0.0)
    assert net.events() == []
    assert only_dialer(net).attempt == 1


def test_a_lost_link_holds_nothing_of_what_came_in_part():
    net = Network("PULL", handshake_ivl=30.0)
    link = net.greet("PUSH").link
    half = bytes([2, 0, 0, 0, 0, 0, 0x80, 0, 0]) + bytes(4_000_000)
    tracemalloc.start()
    net.links.receive_data(link, half, 1.0)
    assert tracemalloc.get_traced_memory()[0] > 4_000_000
    net.links.lost(link, None, 2.0)
    assert tracemalloc.get_traced_memory()[0] < 100_000
    tracemalloc.stop()
    assert len(net.links.timers) == 1, "the link is still known to a timer"


def test_a_link_that_is_ending_hears_nothing_more():
    net = Network("PULL")
    remote = net.greet("PUSH")
    net.links.fail(remote.link, ProtocolError("something", source="a test"))
    net.links.receive_data(remote.link, wire_of(b"x"), 0.0)
    assert received(net.core) == []


def test_the_first_failure_of_a_link_is_the_one_that_counts():
    net = Network("PULL")
    remote = net.greet("PUSH")
    first, second = (ProtocolError(text, source="a test") for text in ("first", "second"))
    net.links.fail(remote.link, first)
    net.links.fail(remote.link, second)
    assert remote.link.failure is first
    assert net.links.to_close == [remote.link]


@pytest.mark.parametrize("option", ["maxmsgsize", "routing_id", "handshake_ivl"])
def test_options_are_as_they_were_at_bind_and_connect(option):
    net = Network("DEALER", maxmsgsize=100, routing_id=b"old", handshake_ivl=30.0)
    net.core.listen(ADDRESS)
    dialer = net.connect("tcp://127.0.0.1:6666")
    setattr(net.core.options, option, {"maxmsgsize": 1, "routing_id": b"new"}.get(option, 1.0))
    for remote in (net.greet("DEALER"), net.meet(dialer, "DEALER")):
        assert remote.handshaken.properties["identity"] == b"old"
        remote.say(b"x" * 100)
        net.talk()
        assert received(net.core) == [b"x" * 100]
    net.after(2.0)
    assert len(net.links.open_links) == 2


def test_a_message_over_the_limit_ends_its_connection_only():
    net = Network("PULL", maxmsgsize=10)
    hostile, good = net.greet("PUSH"), net.greet("PUSH")
    hostile.say(b"x" * 11)
    good.say(b"y" * 10)
    net.talk()
    assert received(net.core) == [b"y" * 10]
    assert list(net.links.open_links) == [good.link]


# -- subscriptions


def wanted(remote):
    """The subscriptions that a publisher has heard of, in order."""
    return [(item.topic, item.subscribe) for item in remote.taken()]


def test_what_is_wanted_is_said_at_the_handshake_and_as_it_changes():
    net = Network("SUB")
    net.core.pattern.subscribe(b"before")
    pub = net.join("PUB")
    assert wanted(pub) == [(b"before", True)]
    net.core.pattern.subscribe(b"after")
    net.core.pattern.unsubscribe(b"before")
    net.talk()
    assert wanted(pub) == [(b"after", True), (b"before", False)]


def test_a_3_0_publisher_gets_subscriptions_as_messages():
    net = Network("SUB")
    net.core.pattern.subscribe(b"a")
    pub = net.join("PUB", minor=0)
    net.core.pattern.unsubscribe(b"a")
    net.talk()
    assert pub.taken() == [b"\1a", b"\0a"]


@pytest.mark.parametrize("way", ["dialled", "accepted"])
def test_subscriptions_are_said_again_to_whoever_comes(way):
    net = Network("SUB")
    net.core.pattern.subscribe(b"a")
    pub = net.join("PUB") if way == "dialled" else net.greet("PUB")
    net.cut(pub)
    net.core.pattern.subscribe(b"b")
    net.core.settle()  # nobody is there to be told
    net.after(1.0)
    back = net.meet(only_dialer(net), "PUB") if way == "dialled" else net.greet("PUB")
    assert wanted(back) == [(b"a", True), (b"b", True)]


def test_subscriptions_never_count_against_a_high_water_mark():
    net = Network("SUB", sndhwm=1, rcvhwm=1)
    topics = [b"%d" % n for n in range(5000)]
    for topic in topics[:2500]:
        net.core.pattern.subscribe(topic)
    pub = net.join("PUB")
    for topic in topics[2500:]:
        net.core.pattern.subscribe(topic)
    net.talk()
    assert wanted(pub) == [(topic, True) for topic in topics]
    net.cut(pub)
    net.after(1.0)
    assert wanted(net.meet(only_dialer(net), "PUB")) == [(topic, True) for topic in topics]


def test_who_has_not_shaken_hands_is_not_told_of_subscriptions_yet():
    net = Network("SUB")
    net.connect()
    pub = Remote("PUB")
    net.dial(pub)
    net.core.pattern.subscribe(b"a")
    net.core.settle()
    assert net.links.to_write == []
    net.talk()
    assert wanted(pub) == [(b"a", True)]


def test_a_subscription_between_messages_keeps_its_place():
    net = Network("XPUB")
    remote = net.greet("XSUB")
    remote.say(b"first")
    remote.subscribe(b"a")
    remote.say(b"second")
    net.talk()
    assert sorted(received(net.core)) == [b"\1a", b"first", b"second"]
    assert remote.link.messages_in == 2


def test_what_a_failed_handshake_asks_for_is_not_given():
    net = Network("PUB")
    remote = Remote("PULL")
    net.open(net.core.listen(ADDRESS), remote)
    remote.subscribe(b"")
    net.talk()
    assert net.core.pattern.subscribers(b"x") == 0


def test_a_publisher_encodes_once_for_all_and_lets_go_of_it():
    net = Network("PUB")
    subs = [net.greet("SUB") for _ in range(3)]
    for sub in subs:
        sub.subscribe(b"")
    net.talk()
    body = memoryview(bytes(100_000))
    net.core.send(body)
    net.core.settle()
    first, *others = [net.links.output(sub.link)[1] for sub in subs]
    assert all(other is first for other in others)
    assert net.links.encoder.messages == [body]
    net.talk()
    assert net.links.encoder.messages == []
    assert [len(sub.taken()[0]) for sub in subs] == [100_000] * 3


# -- heartbeats


def test_pings_are_sent_and_an_answer_keeps_the_connection():
    net = Network("PUSH", heartbeat_ivl=1.0, heartbeat_timeout=2.0)
    remote = net.join("PULL")
    for _ in range(10):
        net.after(1.0)  # the remote answers by itself
    assert list(net.links.open_links) == [remote.link]
    assert remote.link.octets_in > 10 * 7


def test_a_silent_peer_is_given_up_and_dialled_again_at_the_usual_pace():
    net = Network("PUSH", heartbeat_ivl=1.0, heartbeat_timeout=2.0, reconnect_ivl=0.1)
    remote = net.join("PULL")
    remote.reads = False
    net.events()
    for _ in range(3):
        net.after(1.0)
    dialer = only_dialer(net)
    assert "silent" in str(dialer.last_error)
    assert dialer.due_at - net.now == pytest.approx(0.1)
    assert net.events() == [Event.DISCONNECTED, Event.CONNECT_RETRIED]


def test_octets_of_a_long_message_are_a_sign_of_life():
    net = Network("PULL", heartbeat_ivl=1.0, heartbeat_timeout=1.0)
    remote = net.greet("PUSH")
    body = bytes(10_000)
    said = wire_of(body)
    remote.reads = False  # it is so busy that it answers nothing
    for at in range(0, len(said), 500):
        net.links.receive_data(remote.link, said[at : at + 500], net.now)
        net.after(0.9)
    assert received(net.core) == [body]


def test_that_a_long_message_is_taken_is_a_sign_of_life():
    net = Network("PUSH", heartbeat_ivl=1.0, heartbeat_timeout=1.0)
    remote = net.join("PULL")
    remote.reads = False
    net.core.send(bytes(10_000))
    net.core.settle()
    for _ in range(20):
        net.takes(remote.link, 500)
        net.after(0.9)
    assert list(net.links.open_links) == [remote.link]


def test_a_peer_that_is_not_read_because_our_queue_is_full_is_not_given_up():
    net = Network("PULL", heartbeat_ivl=1.0, heartbeat_timeout=2.0, rcvhwm=1)
    remote = net.greet("PUSH")
    remote.say(b"1")
    net.talk()
    remote.say(b"2")  # its answers to our pings come behind this
    for _ in range(20):
        net.after(1.0)
    assert list(net.links.open_links) == [remote.link]
    assert received(net.core) == [b"1"]
    net.talk()
    assert received(net.core) == [b"2"]


def test_a_peer_that_is_silent_after_our_queue_was_full_is_given_up():
    net = Network("PULL", heartbeat_ivl=1.0, heartbeat_timeout=2.0, rcvhwm=1)
    remote = net.greet("PUSH")
    remote.say(b"1")
    net.talk()
    remote.reads = False
    for _ in range(5):
        net.after(1.0)
    assert list(net.links.open_links) == [remote.link]
    assert received(net.core) == [b"1"]
    net.talk()
    for _ in range(3):
        net.after(1.0)
    assert list(net.links.open_links) == []


def test_who_is_not_read_from_because_we_are_full_is_not_silent():
    net = Network("PULL", rcvhwm=1, heartbeat_ivl=1.0, heartbeat_timeout=1.0)
    remote = net.greet("PUSH")
    remote.say(b"1", b"2")
    net.read(remote.link)
    for _ in range(10):
        net.now += 1.0
        net.links.handle_deadline(net.now)  # its PONGs wait behind what is not read
    assert not remote.link.closing
    assert received(net.core) == [b"1", b"2"]


def test_the_time_limit_of_a_peers_ping_holds():
    """RFC 37: a TTL says how long to wait for more; it must be armed when it arrives."""
    net = Network("PULL")
    remote = net.greet("PUSH")
    net.after(60.0)  # the handshake's own timer has gone
    assert net.links.next_deadline() is None
    remote.said += wire_of(Command(encode_ping(20, b"context")))
    net.talk()
    assert net.links.next_deadline() == net.now + 2.0
    net.after(2.1)
    assert list(net.links.open_links) == []


def test_a_ping_is_answered_even_if_messages_come_with_it():
    net = Network("PULL")
    remote = net.greet("PUSH")
    remote.said += wire_of(b"1", Command(encode_ping(0, b"")), b"2")
    net.links.receive_data(remote.link, bytes(remote.said), 0.0)
    assert net.links.to_write == [remote.link]
    assert received(net.core) == [b"1", b"2"]


def test_a_peer_that_pings_and_never_reads_costs_bounded_memory():
    net = Network("PULL")
    remote = net.greet("PUSH")
    remote.reads = False
    for ttl in range(60_000, 0, -10):
        remote.said += wire_of(Command(encode_ping(ttl, b"0123456789abcdef")))
        net.read(remote.link)
        net.links.to_write.clear()
    assert len(net.links.timers) < 200
    assert len(net.takes(remote.link)) < 1000


def test_strangers_who_come_and_go_leave_nothing_behind():
    net = Network("PULL")
    listener = net.core.listen(ADDRESS)
    for _ in range(1000):
        link = net.open(listener)
        net.links.lost(link, None, 0.0)
    assert len(net.links.timers) < 200
    assert net.links.open_links == {}
    assert len(net.reports()) == 0


# -- back-pressure


def test_a_full_inbound_pipe_is_noted_when_it_has_room():
    net = Network("PULL", rcvhwm=2)
    remote = net.greet("PUSH")
    remote.say(*[b"%d" % n for n in range(5)])
    net.read(remote.link)
    assert only_peer(net).inbound.full
    for _ in range(4):
        net.core.receive()
    assert net.links.to_resume == [only_peer(net)]


def test_whoever_delivers_leaves_no_notes():
    net = Network("PULL")
    remote = net.greet("PUSH")
    for n in range(3):
        remote.say(b"%d" % n)
        net.talk()
        net.core.receive()
        with pytest.raises(Again):
            net.core.receive()  # the pattern wants a note again
    [peer] = net.links.peers
    assert not peer.inbound.reader_signals


def test_messages_that_are_held_up_arrive_in_the_end():
    net = Network("PULL", rcvhwm=2)
    remote = net.greet("PUSH")
    arrived = []
    for n in range(50):
        remote.say(b"%d" % n)
        net.talk()
        if n % 5 == 0:
            arrived += received(net.core)
    while messages := received(net.core):
        arrived += messages
        net.talk()
    assert arrived == [b"%d" % n for n in range(50)]


# -- disconnecting


def test_a_disconnected_peer_gets_what_is_queued_and_no_more():
    net = Network("PUSH")
    remote = net.join("PULL")
    remote.reads = False
    net.core.send(b"queued")
    net.links.hang_up(only_dialer(net))
    with pytest.raises(Again):
        net.core.send(b"too late")
    remote.reads = True
    net.talk()
    assert remote.taken() == [b"queued"]
    assert len(net.links.dialers) == len(net.links.open_links) == 0


def test_an_idle_connection_ends_at_once():
    net = Network("PUSH")
    net.join("PULL")
    net.links.hang_up(only_dialer(net))
    assert len(net.links.dialers) == 0
    net.talk()
    assert len(net.links.open_links) == 0
    assert net.events()[-1] == Event.DISCONNECTED


@pytest.mark.parametrize("way", ["join", "greet"])
def test_what_was_put_into_the_lane_without_a_note_goes_out_before_the_end(way):
    """A driver may gather messages and write them together a little later."""
    net = Network("PUSH")
    remote = getattr(net, way)("PULL")
    lane = net.core.send_lane
    lane.asleep = False
    lane.messages.append(b"gathered")
    if way == "join":
        net.links.hang_up(only_dialer(net))
    else:
        net.links.hang_up_accepted(net.links.listeners[0])
    net.talk()
    assert remote.taken() == [b"gathered"]
    assert len(net.links.open_links) == 0


def test_one_who_was_never_connected_and_has_nothing_queued_is_gone_at_once():
    net = Network("PUSH")
    net.links.hang_up(net.connect())
    assert len(net.links.dialers) == 0
    assert net.links.to_dial == []


def test_one_who_was_never_connected_still_tries_to_deliver():
    net = Network("PUSH")
    dialer = net.connect()
    net.core.send(b"x")
    net.links.hang_up(dialer)
    assert net.meet(dialer, "PULL").taken() == [b"x"]
    assert len(net.links.dialers) == 0


def test_one_who_waits_to_dial_again_still_tries_to_deliver():
    net = Network("PUSH")
    dialer = net.connect()
    net.core.send(b"x")
    net.refuse()
    net.links.hang_up(dialer)
    net.after(1.0)
    assert net.meet(dialer, "PULL").taken() == [b"x"]


def test_one_who_was_given_up_is_gone_at_once():
    net = Network("PUSH", reconnect_ivl=None)
    dialer = net.connect()
    net.refuse()
    net.links.hang_up(dialer)
    assert len(net.links.dialers) == 0


def test_with_immediate_a_handshake_that_is_under_way_is_broken_off():
    net = Network("PUSH", immediate=True)
    dialer = net.connect()
    link = net.dial()
    net.links.hang_up(dialer)
    assert net.links.to_close == [link]
    net.talk()
    assert Event.HANDSHAKE_FAILED_NO_DETAIL not in net.events()  # it was we who broke it off


def test_a_disconnected_peer_is_not_heard_any_more():
    net = Network("DEALER")
    remote = net.join("DEALER")
    remote.say(b"heard")
    net.talk()
    remote.reads = False
    net.core.send(b"queued")
    net.links.hang_up(only_dialer(net))
    remote.say(b"not heard")
    net.talk()
    assert received(net.core) == [b"heard"]


def test_a_disconnected_publisher_is_not_subscribed_to_any_more():
    net = Network("XPUB")
    sub = net.join("SUB")
    sub.subscribe(b"a")
    net.talk()
    sub.reads = False
    net.core.send(b"a")
    net.links.hang_up(only_dialer(net))
    sub.subscribe(b"b")
    net.talk()
    assert received(net.core) == [b"\1a", b"\0a"]


def test_a_connection_that_was_cut_drops_what_was_queued():
    net = Network("PUSH")
    remote = net.join("PULL")
    remote.reads = False
    net.core.send(b"1")
    net.core.send(b"2")
    net.links.drop(only_dialer(net))
    remote.reads = True
    net.talk()
    assert remote.taken() == []
    assert net.core.pattern.dropped == {PEER_GONE: 2}
    assert len(net.links.open_links) == 0


def test_a_connection_that_was_cut_in_mid_message_sends_nothing_else_for_it():
    net = Network("PUSH")
    remote = net.join("PULL")
    remote.reads = False
    for message in (b"a" * 100, b"b" * 100):
        net.core.send(message)
    net.core.settle()
    remote.hear(net.takes(remote.link, 50), 0.0)
    net.links.drop(only_dialer(net))
    remote.hear(net.takes(remote.link), 0.0)
    assert remote.taken() in ([], [b"a" * 100], [b"a" * 100, b"b" * 100])


# -- unbinding


def test_unbind_ends_accepted_connections_when_their_queues_are_out():
    net = Network("PUSH")
    remote, other = net.greet("PULL"), net.greet("PULL", address="tcp://127.0.0.1:6666")
    remote.reads = False
    for n in range(2):
        net.core.send(b"%d" % n)
    net.links.hang_up_accepted(net.links.listeners[0])
    assert not remote.link.closing
    remote.reads = True
    net.talk()
    assert remote.taken() == [b"0"]
    assert list(net.links.open_links) == [other.link]


def test_unbind_ends_a_stranger_at_once():
    net = Network("PUSH")
    link = net.open(net.core.listen(ADDRESS))
    net.links.hang_up_accepted(net.links.listeners[0])
    assert net.links.to_close == [link]


def test_when_the_time_of_unbind_is_over_what_is_left_is_dropped():
    net = Network("PUSH")
    remote, other = net.greet("PULL"), net.greet("PULL", address="tcp://127.0.0.1:6666")
    remote.reads = False
    for n in range(4):
        net.core.send(b"%d" % n)
    listener = net.links.listeners[0]
    net.links.hang_up_accepted(listener)
    net.links.cut_source(listener)
    remote.reads = True
    net.talk()
    assert remote.taken() == []
    assert net.core.pattern.dropped == {PEER_GONE: 2}
    assert list(net.links.open_links) == [other.link]


def test_when_the_time_of_disconnect_is_over_what_is_left_is_dropped():
    net = Network("PUSH")
    remote = net.join("PULL")
    dialer = only_dialer(net)
    remote.reads = False
    net.core.send(b"x")
    net.links.hang_up(dialer)
    net.links.cut_source(dialer)
    net.links.cut_source(dialer)  # and again, when it has gone
    remote.reads = True
    net.talk()
    assert remote.taken() == []
    assert net.core.pattern.dropped == {PEER_GONE: 1}
    assert len(net.links.dialers) == len(net.links.open_links) == 0


# -- closing


def test_close_lets_queues_run_out():
    net = Network("PUSH")
    dialled, accepted = net.join("PULL"), net.greet("PULL")
    for remote in (dialled, accepted):
        remote.reads = False
    for n in range(4):
        net.core.send(b"%d" % n)
    net.core.close()
    assert not net.links.finished
    for remote in (dialled, accepted):
        remote.reads = True
    net.talk()
    assert sorted(dialled.taken() + accepted.taken()) == [b"0", b"1", b"2", b"3"]
    assert net.links.finished


def test_close_ends_what_has_nothing_left_at_once():
    net = Network("DEALER")
    net.join("DEALER")
    net.greet("DEALER")
    stranger = net.open(net.links.listeners[0])
    net.connect("tcp://127.0.0.1:6666")
    net.core.close()
    assert stranger in net.links.to_close
    assert not [*net.links.peers, *net.links.listeners]
    net.talk()
    assert net.links.finished


def test_close_waits_for_one_who_never_was_connected():
    net = Network("PUSH")
    dialer = net.connect()
    net.core.send(b"patient")
    net.core.close()
    assert not net.links.finished
    net.refuse()
    net.after(1.0)
    assert net.meet(dialer, "PULL").taken() == [b"patient"]
    assert net.links.finished


def test_close_waits_for_a_handshake_that_is_under_way():
    net = Network("PUSH")
    net.connect()
    net.core.send(b"patient")
    remote = Remote("PULL")
    net.dial(remote)
    net.core.close()
    net.talk()
    assert remote.taken() == [b"patient"]
    assert net.links.finished


def test_close_has_no_patience_with_one_who_was_given_up():
    net = Network("PUSH", reconnect_ivl=None)
    net.connect()
    net.refuse()
    net.core.close()
    assert net.links.finished


def test_nothing_is_received_while_a_closed_socket_lingers():
    net = Network("DEALER")
    remote = net.join("DEALER")
    remote.reads = False
    net.core.send(b"x")
    net.core.close()
    remote.say(b"too late")
    net.talk()
    assert len(only_link(net).peer.inbound) == 0
    assert remote.link.messages_in == 1


def test_the_end_of_lingering_drops_what_is_left():
    net = Network("PUSH")
    dialled, accepted = net.join("PULL"), net.greet("PULL")
    for remote in (dialled, accepted):
        remote.reads = False
    net.connect("tcp://127.0.0.1:6666")
    net.open(net.links.listeners[0])  # a stranger
    for n in range(6):
        net.core.send(b"%d" % n)
    net.core.close()
    net.links.end_close()
    for remote in (dialled, accepted):
        remote.reads = True
    net.talk()
    assert dialled.taken() == accepted.taken() == []
    assert net.links.finished
    assert net.core.pattern.dropped == {PEER_GONE: 6}


@pytest.mark.parametrize("way", ["join", "greet"])
def test_the_end_of_lingering_leaves_no_half_message_with_the_octets_of_another(way):
    for octets in range(1, 100):
        net = Network("PUSH", heartbeat_ivl=1.0)
        remote = getattr(net, way)("PULL")
        remote.reads = False
        messages = [b"a" * 30, b"b" * 30, b"c" * 30]
        for message in messages[:2]:
            net.core.send(message)
        net.core.settle()
        remote.hear(net.takes(remote.link, octets), 0.0)
        net.core.send(messages[2])
        net.after(1.0)  # a PING is due
        net.core.close()
        net.links.end_close()
        remote.hear(net.takes(remote.link), 0.0)
        arrived = remote.taken()
        assert arrived == messages[: len(arrived)]
        assert remote.error is None


def test_a_deadline_of_a_link_that_is_ending_is_of_no_interest():
    net = Network("PULL", handshake_ivl=3.0)
    link = net.open(net.core.listen(ADDRESS))
    net.core.close()
    net.links.handle_deadline(10.0)
    assert link.failure is None


# -- STREAM


def test_a_stream_peer_is_there_as_soon_as_its_connection_is():
    net = Network("STREAM")
    remote = net.join("STREAM")
    routing_id, notice = net.core.receive()
    assert notice == b""
    remote.say(b"raw octets")
    net.talk()
    assert net.core.receive() == [routing_id, b"raw octets"]
    net.core.send([routing_id, b"and back"])
    net.talk()
    assert remote.taken() == [b"and back"]


@pytest.mark.parametrize("way", ["join", "greet"])
def test_a_stream_connection_that_the_application_closes_ends_when_its_queue_is_out(way):
    net = Network("STREAM")
    remote = getattr(net, way)("STREAM")
    routing_id, _ = net.core.receive()
    remote.reads = False
    net.core.send([routing_id, b"last words"])
    net.core.send([routing_id, b""])
    net.core.settle()
    assert not remote.link.closing
    remote.reads = True
    net.talk()
    assert remote.taken() == [b"last words"]
    assert len(net.links.open_links) == len(net.links.dialers) == 0
    net.after(100.0)
    assert net.links.to_dial == []


def test_a_stream_connection_that_breaks_while_it_is_closed_is_not_made_again():
    net = Network("STREAM")
    remote = net.join("STREAM")
    routing_id, _ = net.core.receive()
    remote.reads = False
    net.core.send([routing_id, b"last words"])
    net.core.send([routing_id, b""])
    net.core.settle()
    net.cut(remote)
    net.after(100.0)
    assert len(net.links.dialers) == 0


# -- ROUTER and REQ


def test_a_second_peer_of_the_same_name_is_told_of_and_adopted_when_the_first_leaves():
    net = Network("ROUTER")
    first, second = (net.greet("DEALER", identity=b"name") for _ in range(2))
    (report,) = net.reports()
    assert "name" in report
    assert isinstance(net.links.listeners[0].last_error, HandshakeError)
    record = net.records()[-1]
    assert record.event == Event.HANDSHAKE_FAILED_PROTOCOL
    assert record.value == Event.PROTOCOL_ERROR_ZMTP_INVALID_METADATA
    assert record.remote == second.link.remote
    second.say(b"from the second")
    first.say(b"from the first")
    net.talk()
    assert received(net.core) == [[b"name", b"from the first"]]
    net.cut(first)
    assert received(net.core) == [[b"name", b"from the second"]]
    net.core.send([b"name", b"to the second"])
    net.talk()
    assert second.taken() == [b"to the second"]


def test_a_dialled_router_peer_keeps_its_id_over_reconnections():
    net = Network("ROUTER")
    remote = net.join("DEALER", identity=b"name")
    net.cut(remote)
    net.after(1.0)
    back = net.meet(only_dialer(net), "DEALER", identity=b"another")
    net.core.send([b"name", b"hello"])
    net.talk()
    assert back.taken() == [b"hello"]
    (report,) = net.reports()
    assert "another" in report


def test_a_dialled_peer_that_took_a_request_with_it_is_told_of():
    net = Network("REQ")
    rep = net.join("REP")
    net.core.send(b"question")
    net.talk()
    net.cut(rep)
    (report,) = net.reports()
    assert report.startswith(f"REQ {ADDRESS}: the peer left without answering")


def test_an_accepted_peer_that_took_a_request_with_it_is_told_of():
    net = Network("REQ")
    rep = net.greet("REP")
    net.core.send(b"question")
    net.talk()
    net.cut(rep)
    (report,) = net.reports()
    assert report.startswith("REQ a peer that has left: the peer left without answering")


def test_a_request_that_was_not_yet_sent_goes_to_the_peer_that_comes_back():
    net = Network("REQ")
    rep = net.join("REP")
    rep.reads = False
    net.core.send(b"question")
    net.talk()
    net.cut(rep)
    assert net.reports() == []
    net.after(1.0)
    back = net.meet(only_dialer(net), "REP")
    assert back.taken() == [[b"", b"question"]]
    back.say([b"", b"answer"])
    net.talk()
    assert net.core.receive() == b"answer"


def test_a_malformed_reply_ends_its_connection_which_is_made_again():
    net = Network("REQ")
    rep = net.join("REP")
    net.core.send(b"question")
    net.talk()
    rep.say(b"no envelope")
    net.talk()
    assert "no reply" in str(only_dialer(net).last_error)
    net.after(60.0)
    assert net.links.to_dial == [only_dialer(net)]


# -- what is told


def test_the_life_of_a_dialled_connection_is_recorded():
    net = Network("PUSH")
    remote = net.join("PULL")
    net.cut(remote)
    assert net.events() == [
        Event.CONNECTED,
        Event.HANDSHAKE_SUCCEEDED,
        Event.DISCONNECTED,
        Event.CONNECT_RETRIED,
    ]


def test_the_life_of_an_accepted_connection_is_recorded():
    net = Network("ROUTER")
    remote = net.greet("DEALER", identity=b"name")
    net.cut(remote)
    accepted, succeeded, disconnected = net.records()
    assert (accepted.event, accepted.value) == (Event.ACCEPTED, 7)
    assert (succeeded.event, succeeded.value) == (Event.HANDSHAKE_SUCCEEDED, 0)
    assert succeeded.routing_id == b"name"
    assert (disconnected.event, disconnected.value) == (Event.DISCONNECTED, 7)
    assert {r.endpoint for r in (accepted, succeeded, disconnected)} == {ADDRESS}


def test_a_kernel_that_takes_nothing_changes_nothing():
    net = Network("PUSH", heartbeat_ivl=1.0, heartbeat_timeout=1.0)
    remote = net.join("PULL")
    remote.reads = False
    net.core.send(b"x")
    net.core.settle()
    before = b"".join(net.links.output(remote.link))
    net.links.wrote(remote.link, 0, 0.0)
    assert b"".join(net.links.output(remote.link)) == before


def test_traffic_is_counted():
    net = Network("DEALER")
    remote = net.join("DEALER")
    link = remote.link
    before = (link.octets_in, link.octets_out)
    net.core.send(b"12345")
    net.core.send([b"1", b"2"])
    remote.say(b"123")
    net.talk()
    assert (link.messages_out, link.messages_in) == (2, 1)
    assert link.octets_out - before[1] == len(wire_of(b"12345", [b"1", b"2"]))
    assert link.octets_in - before[0] == len(wire_of(b"123"))


def test_output_says_nothing_when_there_is_nothing():
    net = Network("PUSH")
    remote = net.join("PULL")
    assert net.links.output(remote.link) == []
    assert net.takes(remote.link, EVERYTHING) == b""


def test_a_subscription_is_an_event_of_its_own():
    """What the tests above read from a remote."""
    net = Network("XSUB")
    pub = net.join("XPUB")
    net.core.send(b"\1topic")
    net.talk()
    assert pub.taken() == [SubscriptionReceived(b"topic", True)]


def test_it_is_told_when_nothing_but_messages_came():
    net = Network("PULL")
    remote = net.join("PUSH")
    assert net.links.receive_data(remote.link, wire_of(b"x"), 0.0)
    assert net.links.receive_data(remote.link, wire_of(b"yy")[:3], 0.0)  # half of one
    assert not net.links.receive_data(remote.link, b"y" + b"\4\7\4PING\0\0", 0.0)
    assert not net.links.receive_data(remote.link, b"\xff", 0.0)
