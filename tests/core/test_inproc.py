"""Connections within one Context (zmq_inproc(7))."""

import errno

import pytest

from tests.core.kit import Network, inproc, make_core, received
from zerohop.constants import Errno, SocketOption
from zerohop.core.context import ContextCore
from zerohop.core.inproc import NEVER_BOUND
from zerohop.errors import Again, EndpointError, ZMQError

NAME = inproc("name")


@pytest.fixture
def context():
    return ContextCore()


def pair_of(context, connecting, binding, *, first="bind", connect_options=None, **bind_options):
    """Two sockets that are joined, whichever came first."""
    connector = make_core(connecting, context, **(connect_options or {}))
    binder = make_core(binding, context, **bind_options)
    if first == "bind":
        binder.inproc.bind(NAME)
        connector.inproc.connect(NAME)
    else:
        connector.inproc.connect(NAME)
        binder.inproc.bind(NAME)
    settle(context, connector, binder)
    return connector, binder


def settle(context, *cores):
    """What drivers do after each call."""
    for _ in range(3):
        for core in cores:
            core.settle()
        context.hand_over()


def fill(core):
    """How many messages the socket takes."""
    count = 0
    while True:
        try:
            core.send(b"%d" % count)
        except Again:
            return count
        count += 1


# -- joining


@pytest.mark.parametrize("first", ["bind", "connect"])
def test_messages_travel_both_ways(context, first):
    connector, binder = pair_of(context, "PAIR", "PAIR", first=first)
    connector.send(b"there")
    binder.send([b"and", b"back"])
    settle(context, connector, binder)
    assert received(binder) == [b"there"]
    assert received(connector) == [[b"and", b"back"]]


def test_both_sides_have_a_connected_peer_of_the_others_type(context):
    connector, binder = pair_of(context, "PUSH", "PULL")
    (there,), (here,) = connector.links.peers, binder.links.peers
    assert (there.socket_type, here.socket_type) == ("PULL", "PUSH")
    assert there.connected
    assert here.connected
    assert (there.link, here.link) == (here, there)


def test_what_is_sent_before_the_bind_waits_for_it(context):
    push, pull = make_core("PUSH", context), make_core("PULL", context)
    push.inproc.connect(NAME)
    for n in range(3):
        push.send(b"%d" % n)
    pull.inproc.bind(NAME)
    assert pull in context.hand_over()
    assert received(pull) == [b"0", b"1", b"2"]


def test_several_may_wait_for_a_name(context):
    pushes, pull = [make_core("PUSH", context) for _ in range(3)], make_core("PULL", context)
    for n, push in enumerate(pushes):
        push.inproc.connect(NAME)
        push.send(b"%d" % n)
    pull.inproc.bind(NAME)
    settle(context, pull, *pushes)
    assert sorted(received(pull)) == [b"0", b"1", b"2"]


def test_both_sockets_are_woken_when_they_are_joined(context):
    push, pull = make_core("PUSH", context), make_core("PULL", context)
    push.inproc.connect(NAME)
    assert context.hand_over() == []
    pull.inproc.bind(NAME)
    assert set(context.hand_over()) == {push, pull}


def test_a_socket_may_connect_to_itself(context):
    core = make_core("DEALER", context)
    core.inproc.bind(NAME)
    core.inproc.connect(NAME)
    settle(context, core)
    core.send(b"out of the connected end")
    core.send(b"out of the bound end")
    settle(context, core)
    assert sorted(received(core)) == [b"out of the bound end", b"out of the connected end"]


def test_the_last_endpoint_is_the_name(context):
    connector, binder = pair_of(context, "PUSH", "PULL")
    assert connector.last_endpoint == binder.last_endpoint == "inproc://name"


def test_a_name_that_is_taken_is_an_error(context):
    pair_of(context, "PUSH", "PULL")
    other = make_core("PULL", context)
    with pytest.raises(EndpointError) as taken:
        other.inproc.bind(NAME)
    assert taken.value.errno == Errno.EADDRINUSE
    assert (other.inproc.names, other.last_endpoint) == ([], "")


def test_routing_ids_are_known_without_a_handshake(context):
    dealer, router = pair_of(context, "DEALER", "ROUTER", connect_options={"routing_id": b"me"})
    dealer.send(b"hello")
    settle(context, dealer, router)
    assert router.receive() == [b"me", b"hello"]
    router.send([b"me", b"back"])
    settle(context, dealer, router)
    assert received(dealer) == [b"back"]


def test_connect_routing_id_is_for_the_next_connect_only(context):
    dealer = make_core("DEALER", context)
    dealer.inproc.bind(NAME)
    router = make_core("ROUTER", context, connect_routing_id=b"it", router_mandatory=True)
    router.inproc.connect(NAME)
    router.send([b"it", b"hello"])
    settle(context, dealer, router)
    assert received(dealer) == [b"hello"]
    assert router.options.connect_routing_id == b""


def test_a_connect_routing_id_that_is_taken_is_an_error(context):
    router = make_core("ROUTER", context)
    for name in ("a", "b"):
        make_core("DEALER", context).inproc.bind(inproc(name))
    router.options.connect_routing_id = b"it"
    router.inproc.connect(inproc("a"))
    router.options.connect_routing_id = b"it"
    with pytest.raises(ZMQError) as taken:
        router.inproc.connect(inproc("b"))
    assert taken.value.errno == Errno.EINVAL
    assert len(router.links.peers) == 1


# -- types that do not fit


def test_connecting_to_a_type_that_does_not_fit_is_an_error(context):
    pull = make_core("PULL", context)
    pull.inproc.bind(NAME)
    router = make_core("ROUTER", context, connect_routing_id=b"it")
    with pytest.raises(EndpointError) as wrong:
        router.inproc.connect(NAME)
    assert wrong.value.errno == Errno.EINVAL
    assert "PULL" in wrong.value.__notes__[0]
    assert "ROUTER" in wrong.value.__notes__[0]
    # ... and nothing has changed
    assert list(router.links.peers) == list(pull.links.peers) == []
    assert (router.options.connect_routing_id, router.last_endpoint) == (b"it", "")
    assert router.inproc.peers == {}


def test_one_who_waited_for_a_name_and_does_not_fit_is_told(context):
    pub, push, pull = (make_core(name, context) for name in ("PUB", "PUSH", "PULL"))
    pub.inproc.connect(NAME)
    push.inproc.connect(NAME)
    pull.inproc.bind(NAME)
    settle(context, pub, push, pull)
    assert list(pub.links.peers) == []
    assert pub.inproc.peers == {}
    (report,) = pub.links.reports
    assert "PUB" in report
    assert "PULL" in report
    push.send(b"fits")
    settle(context, push, pull)
    assert received(pull) == [b"fits"]


# -- high-water marks


@pytest.mark.parametrize(
    "sndhwm, rcvhwm, limit", [(5, 10, 15), (0, 10, 0), (5, 0, 0), (0, 0, 0), (1, 1, 2)]
)
@pytest.mark.parametrize("first", ["bind", "connect"])
def test_the_mark_is_the_sum_of_both_ends(context, first, sndhwm, rcvhwm, limit):
    push, _ = pair_of(
        context, "PUSH", "PULL", first=first, connect_options={"sndhwm": sndhwm}, rcvhwm=rcvhwm
    )
    (peer,) = push.links.peers
    assert peer.outbound.hwm == limit
    if limit:
        assert fill(push) == limit


def test_before_the_bind_the_mark_is_the_senders(context):
    push = make_core("PUSH", context, sndhwm=5)
    push.inproc.connect(NAME)
    assert fill(push) == 5
    pull = make_core("PULL", context, rcvhwm=10)
    pull.inproc.bind(NAME)
    settle(context, push, pull)
    assert fill(push) == 10


@pytest.mark.parametrize("who", ["connector", "binder"])
def test_a_sender_that_was_stopped_goes_on_when_the_receiver_has_read(context, who):
    options = {"sndhwm": 2, "rcvhwm": 2}
    pair = pair_of(context, "DEALER", "DEALER", connect_options=options, **options)
    sender, receiver = pair if who == "connector" else pair[::-1]
    for _ in range(3):
        assert fill(sender) == 4
        settle(context, *pair)
        assert len(received(receiver)) == 4
        settle(context, *pair)


@pytest.mark.parametrize("which", ["sndhwm", "rcvhwm"])
def test_the_mark_follows_both_ends(context, which):
    push, pull = pair_of(context, "PUSH", "PULL", connect_options={"sndhwm": 5}, rcvhwm=10)
    core, option = {
        "sndhwm": (push, SocketOption.SNDHWM),
        "rcvhwm": (pull, SocketOption.RCVHWM),
    }[which]
    fill(push)
    core.set_option(option, 50)
    settle(context, push, pull)
    assert 15 + fill(push) == {"sndhwm": 60, "rcvhwm": 55}[which]


def test_a_mark_that_changes_wakes_the_other_end(context):
    push, pull = pair_of(context, "PUSH", "PULL")
    pull.set_option(SocketOption.RCVHWM, 1)
    assert context.hand_over() == [push]


@pytest.mark.parametrize("conflates", ["connect", "bind", "both"])
@pytest.mark.parametrize("first", ["bind", "connect"])
def test_conflate_at_either_end_keeps_the_last_message(context, first, conflates):
    push = make_core("PUSH", context, conflate=conflates in ("connect", "both"))
    pull = make_core("PULL", context, conflate=conflates in ("bind", "both"))
    if first == "bind":
        pull.inproc.bind(NAME)
        push.inproc.connect(NAME)
        sent_before = 0
    else:
        push.inproc.connect(NAME)
        sent_before = 3
        for n in range(sent_before):
            push.send(b"%d" % n)
        pull.inproc.bind(NAME)
    settle(context, push, pull)
    (peer,) = push.links.peers
    assert peer.outbound.conflate
    assert peer.inbound.conflate
    for n in range(sent_before, 6):
        push.send(b"%d" % n)
    settle(context, push, pull)
    assert received(pull) == [b"5"]


def test_the_marks_of_other_connections_are_their_own(context):
    net = Network("DEALER", context)
    remote = net.join("DEALER")
    other = make_core("DEALER", context)
    other.inproc.bind(NAME)
    net.core.inproc.connect(NAME)
    other.set_option(SocketOption.RCVHWM, 5)
    assert sorted(peer.outbound.hwm for peer in net.links.peers) == [1000, 1005]
    assert remote.link.peer.outbound.hwm == 1000
    net.core.set_option(SocketOption.SNDHWM, 1)
    assert sorted(peer.outbound.hwm for peer in net.links.peers) == [1, 6]


# -- subscriptions


@pytest.mark.parametrize("first", ["bind", "connect"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_subscription_is_known_at_once(context, first, when):
    pub, sub = make_core("PUB", context), make_core("SUB", context)
    if when == "before":
        sub.pattern.subscribe(b"a")
        sub.settle()  # there is nobody to be told yet
    if first == "bind":
        pub.inproc.bind(NAME)
        sub.inproc.connect(NAME)
    else:
        sub.inproc.connect(NAME)
        pub.inproc.bind(NAME)
    if when == "after":
        sub.pattern.subscribe(b"a")
    settle(context, pub, sub)
    assert pub.pattern.subscribers(b"abc") == 1
    pub.send(b"abc")
    pub.send(b"b")
    settle(context, pub, sub)
    assert received(sub) == [b"abc"]
    sub.pattern.unsubscribe(b"a")
    settle(context, pub, sub)
    assert pub.pattern.subscribers(b"abc") == 0


def test_a_publisher_is_woken_by_a_subscription(context):
    sub, pub = pair_of(context, "SUB", "PUB")
    sub.pattern.subscribe(b"a")
    sub.settle()
    assert context.hand_over() == [pub]


def test_subscriptions_go_over_the_wire_and_within_the_context_alike(context):
    net = Network("SUB", context)
    pub = make_core("PUB", context)
    pub.inproc.bind(NAME)
    net.core.inproc.connect(NAME)
    remote = net.join("PUB")
    net.core.pattern.subscribe(b"a")
    net.talk()
    assert pub.pattern.subscribers(b"a") == 1
    (subscription,) = remote.taken()
    assert (subscription.topic, subscription.subscribe) == (b"a", True)


def test_somebody_who_waits_for_a_bind_is_told_nothing(context):
    sub = make_core("SUB", context)
    sub.inproc.connect(NAME)
    sub.pattern.subscribe(b"a")
    sub.settle()
    assert context.changed == []


# -- parting


@pytest.mark.parametrize("who", ["connector", "binder"])
@pytest.mark.parametrize("how", ["close", "drop"])
def test_what_was_sent_can_be_received_after_the_sender_has_left(context, who, how):
    connector, binder = pair_of(context, "PAIR", "PAIR")
    sender, receiver = (connector, binder) if who == "connector" else (binder, connector)
    (peer,) = sender.links.peers
    ends = (peer, peer.link)
    sender.send(b"1")
    sender.send(b"2")
    if how == "close":
        sender.close()
    else:
        sender.inproc.drop(peer)
    assert [end.link for end in ends] == [None, None]
    assert receiver in context.hand_over()
    assert received(receiver) == [b"1", b"2"]
    assert list(receiver.links.peers) == []
    assert not receiver.pattern.can_send_now()
    assert connector.inproc.peers == {}


def test_disconnect_ends_the_connections_to_the_name(context):
    push, pull = pair_of(context, "PUSH", "PULL")
    push.inproc.connect(NAME)
    push.inproc.disconnect(NAME)
    assert list(push.links.peers) == list(pull.links.peers) == []
    with pytest.raises(ZMQError) as unknown:
        push.inproc.disconnect(NAME)
    assert unknown.value.errno == errno.ENOENT


def test_disconnect_leaves_other_names_alone(context):
    push, pull = pair_of(context, "PUSH", "PULL")
    pull.inproc.bind(inproc("other"))
    push.inproc.connect(inproc("other"))
    push.inproc.disconnect(NAME)
    assert list(push.inproc.peers) == ["other"]
    push.send(b"by the other way")
    settle(context, push, pull)
    assert received(pull) == [b"by the other way"]


def test_unbind_gives_the_name_back_and_connections_go_on(context):
    push, pull = pair_of(context, "PUSH", "PULL")
    pull.inproc.unbind(NAME)
    make_core("PULL", context).inproc.bind(NAME)
    push.send(b"x")
    settle(context, push, pull)
    assert received(pull) == [b"x"]
    with pytest.raises(ZMQError) as unknown:
        pull.inproc.unbind(NAME)
    assert unknown.value.errno == errno.ENOENT


def test_close_gives_all_names_back(context):
    pull = make_core("PULL", context)
    for name in ("a", "b"):
        pull.inproc.bind(inproc(name))
    pull.close()
    assert (context.binder("a"), context.binder("b")) == (None, None)
    assert pull.inproc.names == []


def test_close_leaves_connections_over_the_wire_to_run_out(context):
    net = Network("PUSH", context)
    remote = net.join("PULL")
    remote.reads = False
    pull = make_core("PULL", context)
    pull.inproc.bind(NAME)
    net.core.inproc.connect(NAME)
    for n in range(4):
        net.core.send(b"%d" % n)
    net.core.close()
    context.hand_over()
    remote.reads = True
    net.talk()
    assert received(pull) == [b"1", b"3"]
    assert remote.taken() == [b"0", b"2"]


def test_the_ends_of_several_connections_are_told_apart(context):
    push = make_core("PUSH", context)
    pulls = [make_core("PULL", context) for _ in range(3)]
    for name, pull in zip("abc", pulls, strict=True):
        pull.inproc.bind(inproc(name))
        push.inproc.connect(inproc(name))
    pulls[1].close()
    assert list(push.inproc.peers) == ["a", "c"]
    for _ in range(4):
        push.send(b"x")
    context.hand_over()
    assert [len(received(pull)) for pull in (pulls[0], pulls[2])] == [2, 2]


def test_what_was_sent_to_a_name_that_nobody_bound_is_counted(context):
    push = make_core("PUSH", context)
    push.inproc.connect(NAME)
    push.send(b"x")
    push.inproc.disconnect(NAME)
    assert push.pattern.dropped == {NEVER_BOUND: 1}
    pull = make_core("PULL", context)
    pull.inproc.bind(NAME)
    settle(context, pull)
    assert received(pull) == list(pull.links.peers) == []


def test_a_message_that_waits_for_a_bind_outlives_its_socket(context):
    push, pull = make_core("PUSH", context), make_core("PULL", context)
    push.inproc.connect(NAME)
    (peer,) = push.links.peers
    push.send(b"1")
    push.send(b"2")
    push.close()
    assert list(push.links.peers) == []
    pull.inproc.bind(NAME)
    assert context.hand_over() == [pull]
    assert received(pull) == [b"1", b"2"]
    assert list(pull.links.peers) == []
    assert peer.link is None


def test_a_message_of_a_closed_socket_still_says_whom_it_is_from(context):
    dealer, router = make_core("DEALER", context, routing_id=b"me"), make_core("ROUTER", context)
    dealer.inproc.connect(NAME)
    dealer.send(b"last words")
    dealer.close()
    router.inproc.bind(NAME)
    settle(context, router)
    assert received(router) == [[b"me", b"last words"]]


def test_what_waits_for_a_publisher_is_thrown_away_by_it_as_usual(context):
    xsub, pub = make_core("XSUB", context), make_core("PUB", context)
    xsub.inproc.connect(NAME)
    (peer,) = xsub.links.peers
    xsub.send(b"to nobody")
    pub.inproc.bind(NAME)
    settle(context, xsub, pub)
    assert len(peer.outbound) == 0
    xsub.send(b"nor this")
    settle(context, xsub, pub)
    assert len(peer.outbound) == 0


@pytest.mark.parametrize("linger, messages", [(0.0, 1), (None, 0)])
def test_a_socket_that_does_not_linger_or_has_sent_nothing_leaves_nothing_waiting(
    context, linger, messages
):
    push, pull = make_core("PUSH", context, linger=linger), make_core("PULL", context)
    push.inproc.connect(NAME)
    for _ in range(messages):
        push.send(b"x")
    push.close()
    pull.inproc.bind(NAME)
    settle(context, pull)
    assert received(pull) == []
    assert push.pattern.dropped == ({NEVER_BOUND: messages} if messages else {})


# -- refused


def test_the_second_peer_of_a_pair_is_refused_and_keeps_its_queue(context):
    first, bound = pair_of(context, "PAIR", "PAIR")
    second = make_core("PAIR", context)
    second.inproc.connect(NAME)
    second.send(b"to nobody")
    settle(context, first, second, bound)
    assert len(bound.links.peers) == 1
    (report,) = bound.links.reports
    assert "PAIR" in report
    assert received(bound) == []
    (peer,) = second.links.peers
    assert not peer.connected
    assert list(peer.outbound.messages) == [b"to nobody"]
    second.close()
    assert second.inproc.peers == {}
