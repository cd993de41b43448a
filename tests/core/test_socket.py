"""What the application asks of one socket, and how the parts of the core work together."""

import gc
import weakref

import pytest

from tests.core.kit import ADDRESS, Network, inproc, make_core, received
from zerohop.constants import Errno, PollEvent, SocketOption, SocketType
from zerohop.core.context import ContextCore
from zerohop.core.peers import PEER_GONE
from zerohop.core.socket import SocketCore
from zerohop.errors import Again, UsageError, ZMQError

IN, OUT = PollEvent.POLLIN, PollEvent.POLLOUT
ELSEWHERE = "tcp://127.0.0.1:6666"


def pipeline(**options):
    """A PUSH that is connected to a PULL."""
    net = Network("PUSH", **options)
    return net, net.join("PULL")


def received_parts(core):
    """Parts, each with what RCVMORE says after it."""
    parts = []
    while True:
        try:
            part = core.receive_part()
        except Again:
            return parts
        parts.append((part, core.receiving_more))


# -- sending


def test_a_message_goes_to_the_peer():
    net, pull = pipeline()
    net.core.send(b"one")
    net.core.send([b"two", b"parts"])
    net.talk()
    assert pull.taken() == [b"one", [b"two", b"parts"]]


def test_without_a_peer_a_send_would_block():
    with pytest.raises(Again):
        make_core("PUSH").send(b"x")


def test_parts_travel_as_one_message_when_the_last_one_is_there():
    net, pull = pipeline()
    net.core.send_part(b"1")
    net.core.send_part(b"2")
    net.talk()
    assert pull.taken() == []
    net.core.send(b"3")
    net.talk()
    assert pull.taken() == [[b"1", b"2", b"3"]]


def test_parts_may_be_completed_by_several():
    net, pull = pipeline()
    net.core.send_part(b"1")
    net.core.send([b"2", b"3"])
    net.talk()
    assert pull.taken() == [[b"1", b"2", b"3"]]


def test_whether_there_is_room_is_asked_at_the_first_part():
    net = Network("PUSH", sndhwm=1)
    net.connect()
    net.core.send_part(b"1")
    net.core.send(b"2")
    with pytest.raises(Again):
        net.core.send_part(b"3")
    with pytest.raises(Again):
        net.core.send(b"3")


def test_parts_that_cannot_be_sent_now_are_kept():
    net = Network("PUSH", sndhwm=1)
    dialer = net.connect()
    net.core.send_part(b"1")
    net.links.hang_up(dialer)  # nobody is left to send to
    with pytest.raises(Again):
        net.core.send(b"2")
    pull = net.join("PULL", address=ELSEWHERE)
    net.core.send(b"2")
    net.talk()
    assert pull.taken() == [[b"1", b"2"]]


def test_parts_of_a_message_that_cannot_be_sent_at_all_are_not_put_before_the_next():
    net = Network("ROUTER", router_mandatory=True)
    goes, stays = (net.greet("DEALER", identity=name) for name in (b"goes", b"stays"))
    net.core.send_part(b"goes")
    net.cut(goes)
    with pytest.raises(ZMQError) as unreachable:
        net.core.send(b"x")
    assert unreachable.value.errno == Errno.EHOSTUNREACH
    net.core.send_part(b"stays")
    net.core.send(b"y")
    net.talk()
    assert stays.taken() == [b"y"]


def test_the_last_part_may_be_sent_again_when_there_is_room():
    net = Network("STREAM", sndhwm=1)
    remote = net.join("STREAM")
    routing_id, _ = net.core.receive()
    remote.reads = False
    net.core.send_part(routing_id)
    (peer,) = net.links.peers
    peer.outbound.push(b"first")
    with pytest.raises(Again):
        net.core.send_part(b"second")
    remote.reads = True
    net.talk()
    net.core.send_part(b"second")
    net.talk()
    assert remote.taken() == [b"first", b"second"]


def test_where_every_message_has_so_many_parts_the_last_one_completes_it():
    net = Network("STREAM")
    remote = net.join("STREAM")
    routing_id, _ = net.core.receive()
    net.core.send_part(routing_id)
    net.core.send_part(b"octets")
    net.talk()
    assert remote.taken() == [b"octets"]


@pytest.mark.parametrize("send", ["send", "send_part"])
def test_types_that_only_receive_cannot_send(send):
    core = make_core("PULL")
    with pytest.raises(UsageError) as refused:
        getattr(core, send)(b"x")
    assert refused.value.errno == Errno.ENOTSUP
    assert "PULL" in refused.value.__notes__[0]


@pytest.mark.parametrize("receive", ["receive", "receive_part"])
def test_types_that_only_send_cannot_receive(receive):
    core = make_core("PUSH")
    with pytest.raises(UsageError) as refused:
        getattr(core, receive)()
    assert refused.value.errno == Errno.ENOTSUP
    assert "PUSH" in refused.value.__notes__[0]


# -- receiving


def test_a_message_may_be_received_part_by_part():
    net = Network("PULL")
    remote = net.greet("PUSH")
    remote.say([b"1", b"2", b"3"], b"single")
    net.talk()
    assert received_parts(net.core) == [
        (b"1", True),
        (b"2", True),
        (b"3", False),
        (b"single", False),
    ]


def test_the_rest_of_a_message_may_be_received_at_once():
    net = Network("PULL")
    remote = net.greet("PUSH")
    remote.say([b"1", b"2", b"3"], [b"4", b"5"])
    net.talk()
    assert net.core.receive_part() == b"1"
    assert net.core.receive() == [b"2", b"3"]
    assert not net.core.receiving_more
    assert net.core.receive_part() == b"4"
    assert net.core.receive() == b"5"


def test_a_message_that_was_put_back_is_the_next_one():
    net = Network("PULL")
    remote = net.greet("PUSH")
    remote.say(b"1", b"2", b"3")
    net.talk()
    first, second = net.core.receive(), net.core.receive()
    net.core.put_back(second)
    net.core.put_back(first)
    assert net.core.events() == IN
    assert received(net.core) == [b"1", b"2", b"3"]


def req_that_put_its_reply_back(**options):
    """A REQ after its first request; the REP at its other end; the reply."""
    net = Network("REQ", **options)
    rep = net.join("REP")
    net.core.send(b"request 1")
    net.talk()
    (request,) = rep.taken()
    rep.say([*request[:-1], b"reply 1"])
    net.talk()
    net.core.put_back(net.core.receive())
    return net, rep


def rep_that_put_the_request_back():
    net = Network("REP")
    req = net.greet("REQ")
    req.say([b"", b"request"])
    net.talk()
    net.core.put_back(net.core.receive())
    return net, req


@pytest.mark.parametrize("made", [req_that_put_its_reply_back, rep_that_put_the_request_back])
@pytest.mark.parametrize("send", [SocketCore.send, SocketCore.send_part])
def test_what_was_put_back_is_received_before_the_turn_to_send(made, send):
    net, _ = made()
    assert net.core.events() == IN
    with pytest.raises(UsageError) as early:
        send(net.core, b"too early")
    assert early.value.errno == Errno.EFSM
    net.core.receive()
    assert net.core.events() == OUT
    net.core.send(b"in time")


@pytest.mark.parametrize("in_parts", [False, True])
def test_a_relaxed_req_forgets_the_reply_that_was_put_back_when_it_asks_again(in_parts):
    net, rep = req_that_put_its_reply_back(req_relaxed=True, req_correlate=True)
    assert net.core.events() == IN | OUT
    if in_parts:
        net.core.send_part(b"request")
    net.core.send(b"2")
    assert net.core.events() & IN == 0
    net.talk()
    (request,) = rep.taken()
    rep.say([request[0], b"", b"reply 2"])
    net.talk()
    assert net.core.receive() == b"reply 2"


def test_a_part_that_was_put_back_is_the_next_one():
    net = Network("PULL")
    remote = net.greet("PUSH")
    remote.say([b"1", b"2"])
    net.talk()
    net.core.put_back_part(net.core.receive_part())
    assert net.core.events() == IN
    assert received_parts(net.core) == [(b"1", True), (b"2", False)]


def test_messages_may_return_in_any_order_to_their_places():
    net = Network("PULL")
    remote = net.greet("PUSH")
    remote.say(b"1", b"2", [b"3", b"4"], b"5")
    net.talk()
    first, second = net.core.receive(), net.core.receive()
    net.core.put_back(second)
    net.core.put_back(first, 0)
    assert net.core.returned == 2
    assert net.core.take_back(1) == second
    net.core.put_back(second, 1)
    assert [net.core.receive(), net.core.receive()] == [b"1", b"2"]
    third, fourth = net.core.receive_part(), net.core.receive_part()
    net.core.put_back_part(third)
    net.core.put_back_part(fourth, 1)
    net.core.take_back_part(1)
    net.core.put_back_part(fourth, 1)
    assert received(net.core) == [[b"3", b"4"], b"5"]


# -- lanes


def test_one_peer_is_a_lane_both_ways():
    net = Network("PAIR")
    net.join("PAIR")
    (peer,) = net.links.peers
    assert net.core.send_lane is peer.outbound
    assert net.core.receive_lane is peer.inbound


def test_a_second_peer_ends_the_lanes_and_its_leaving_brings_them_back():
    net = Network("DEALER")
    net.join("DEALER")
    second = net.greet("DEALER")
    assert net.core.send_lane is None
    assert net.core.receive_lane is None
    net.cut(second)
    (peer,) = net.links.peers
    assert net.core.send_lane is peer.outbound
    assert net.core.receive_lane is peer.inbound


def test_in_the_middle_of_a_message_there_is_no_lane():
    net = Network("PAIR")
    remote = net.join("PAIR")
    net.core.send_part(b"1")
    assert net.core.send_lane is None
    net.core.settle()
    assert net.core.send_lane is None
    net.core.send(b"2")
    net.core.settle()
    assert net.core.send_lane is not None
    remote.say([b"1", b"2"])
    net.talk()
    net.core.receive_part()
    assert net.core.receive_lane is None
    net.core.settle()
    assert net.core.receive_lane is None
    net.core.receive_part()
    net.core.settle()
    assert net.core.receive_lane is not None


@pytest.mark.parametrize("put_back", ["put_back", "put_back_part"])
def test_what_was_put_back_goes_before_the_lane(put_back):
    net = Network("PAIR")
    net.join("PAIR")
    getattr(net.core, put_back)(b"x")
    assert net.core.receive_lane is None
    net.core.settle()
    assert net.core.receive_lane is None
    assert net.core.receive() == b"x"
    net.core.settle()
    assert net.core.receive_lane is not None


def test_a_closed_socket_has_no_lane():
    net = Network("PAIR")
    net.join("PAIR")
    net.core.close()
    assert net.core.send_lane is None
    net.core.settle()
    assert net.core.send_lane is None
    assert net.core.receive_lane is None


def test_a_full_pipe_that_was_drained_has_its_pattern_told():
    net = Network("DEALER", sndhwm=1)
    first, second = net.join("DEALER"), net.greet("DEALER")
    for remote in (first, second):
        remote.reads = False
    for _ in range(2):
        net.core.send(b"x")
    assert not net.core.pattern.can_send_now()
    first.reads = True
    net.talk()
    net.core.send(b"y")
    net.talk()
    assert first.taken() == [b"x", b"y"]


def test_room_in_the_pipe_of_one_who_is_leaving_lets_the_rest_go_out():
    net = Network("PUSH", sndhwm=200)
    pull = net.join("PULL")
    pull.reads = False
    for n in range(200):
        net.core.send(b"%d" % n)
    (dialer,) = net.links.dialers
    net.links.hang_up(dialer)
    net.links.to_flush.clear()  # whoever writes must be told again
    net.takes(pull.link, 10)
    assert net.links.room == [dialer.peer]
    pull.reads = True
    net.core.settle()
    assert net.links.to_flush == [dialer.peer]
    net.takes(pull.link)
    net.talk()
    assert net.links.open_links == {}


def test_room_in_the_pipe_of_one_who_has_left_is_of_no_interest():
    net = Network("PUSH", sndhwm=1)
    pull = net.join("PULL")
    (peer,) = net.links.peers
    net.links.room.append(peer)
    net.links.drop(next(iter(net.links.dialers)))
    net.links.lost(pull.link, None, 0.0)
    net.links.to_flush.clear()
    net.core.settle()
    assert net.links.to_flush == []


# -- events


def test_events_say_what_would_not_block():
    net = Network("DEALER", sndhwm=1)
    assert net.core.events() == 0
    remote = net.join("DEALER")
    assert net.core.events() == OUT
    remote.say(b"x")
    net.talk()
    assert net.core.events() == IN | OUT
    remote.reads = False
    net.core.send(b"x")
    assert net.core.events() == IN
    net.core.receive()
    assert net.core.events() == 0


def test_a_fresh_socket_is_writable_where_it_drops_what_nobody_wants():
    writable = {kind.name for kind in SocketType if _is_writable(kind.name)}
    assert writable == {"PUB", "XPUB", "XSUB", "ROUTER", "STREAM"}


def _is_writable(name):
    try:
        core = make_core(name)
    except ZMQError:  # a draft type
        return False
    return core.events() == OUT


def test_the_rest_of_a_message_can_be_sent_and_received_at_any_time():
    net = Network("PAIR", sndhwm=1)
    remote = net.join("PAIR")
    remote.say([b"1", b"2"])
    net.talk()
    net.core.receive_part()
    assert net.core.events() == IN | OUT
    net.core.send_part(b"1")
    (peer,) = net.links.peers
    peer.outbound.push(b"another one fills the pipe")
    assert net.core.events() == IN | OUT


# -- options


def test_options_are_the_sockets_own():
    core = make_core("PUSH")
    core.set_option(SocketOption.SNDHWM, 7)
    assert core.get_option(SocketOption.SNDHWM) == 7
    with pytest.raises(ZMQError) as unknown:
        core.set_option(9999, 1)
    assert unknown.value.errno == Errno.EINVAL


def test_what_the_socket_itself_knows_can_be_asked_as_an_option():
    net = Network("PAIR")
    remote = net.join("PAIR")
    remote.say([b"1", b"2"])
    net.talk()
    net.core.receive_part()
    assert net.core.get_option(SocketOption.EVENTS) == IN | OUT
    assert net.core.get_option(SocketOption.RCVMORE) == 1
    assert net.core.get_option(SocketOption.TYPE) == SocketType.PAIR
    assert net.core.get_option(SocketOption.LAST_ENDPOINT) == ADDRESS.encode()


def test_subscriptions_are_carried_out():
    core = make_core("SUB")
    core.set_option(SocketOption.SUBSCRIBE, b"a")
    core.set_option(SocketOption.SUBSCRIBE, b"b")
    assert core.get_option(SocketOption.TOPICS_COUNT) == 2
    core.set_option(SocketOption.UNSUBSCRIBE, b"a")
    assert core.pattern.topics() == [b"b"]
    with pytest.raises(ZMQError) as unknown:
        make_core("PUSH").get_option(SocketOption.TOPICS_COUNT)
    assert "TOPICS_COUNT" in unknown.value.__notes__[0]


@pytest.mark.parametrize("option", [SocketOption.SNDHWM, SocketOption.RCVHWM])
def test_high_water_marks_are_live(option):
    context = ContextCore()
    net = Network("DEALER", context)
    other = make_core("DEALER", context)
    other.inproc.bind(inproc("name"))
    net.join("DEALER")
    net.core.inproc.connect(inproc("name"))
    net.core.set_option(option, 5)
    over_the_wire, within = net.links.peers
    which = "outbound" if option == SocketOption.SNDHWM else "inbound"
    assert getattr(over_the_wire, which).hwm == 5
    assert getattr(within, which).hwm == 1005


def test_a_higher_mark_lets_a_sender_go_on():
    net = Network("PUSH", sndhwm=1)
    net.connect()
    net.core.send(b"1")
    net.core.set_option(SocketOption.SNDHWM, 2)
    net.core.settle()
    net.core.send(b"2")
    with pytest.raises(Again):
        net.core.send(b"3")


# -- endpoints


@pytest.mark.parametrize("name", ["DEALER", "SUB", "PUB", "REQ"])
def test_some_types_connect_once_to_an_endpoint(name):
    net = Network(name)
    assert net.connect() is not None
    assert net.connect() is None
    assert net.connect(ELSEWHERE) is not None
    assert len(net.links.dialers) == 2


@pytest.mark.parametrize("name", ["PUSH", "PULL", "PAIR", "REP", "ROUTER", "XPUB", "XSUB"])
def test_the_others_connect_as_often_as_they_are_told(name):
    net = Network(name)
    net.connect()
    assert net.connect() is not None
    assert len(net.links.dialers) == 2


def test_one_may_connect_again_while_the_old_connection_is_leaving():
    net = Network("DEALER")
    remote = net.join("DEALER")
    remote.reads = False
    net.core.send(b"x")
    net.links.hang_up(next(iter(net.links.dialers)))
    assert net.connect() is not None


def test_one_may_connect_again_where_it_was_given_up():
    net = Network("DEALER", reconnect_ivl=None)
    net.connect()
    net.refuse()
    again = net.connect()
    assert list(net.links.dialers) == [again]


def test_a_connect_routing_id_that_is_taken_is_an_error():
    net = Network("ROUTER", connect_routing_id=b"it")
    net.connect()
    net.core.options.connect_routing_id = b"it"
    with pytest.raises(UsageError) as taken:
        net.connect(ELSEWHERE)
    assert taken.value.errno == Errno.EINVAL
    assert (net.core.last_endpoint, len(net.links.dialers)) == (ADDRESS, 1)
    net.connect(ELSEWHERE)  # the option was for one connect only, and that was it


def test_the_last_endpoint_is_the_one_named_last():
    net = Network("DEALER")
    assert net.core.last_endpoint == ""
    listener = net.core.listen(ADDRESS)
    assert net.core.last_endpoint == ADDRESS
    assert net.links.listeners == [listener]
    net.connect(ELSEWHERE)
    assert net.core.last_endpoint == ELSEWHERE


# -- waiting for peers


def test_a_socket_is_connected_when_every_endpoint_has_its_peer():
    context = ContextCore()
    net = Network("DEALER", context)
    net.core.inproc.connect(inproc("name"))
    dialer = net.connect()
    assert not net.core.connected()
    net.meet(dialer, "DEALER")
    assert not net.core.connected()
    make_core("DEALER", context).inproc.bind(inproc("name"))
    assert net.core.connected()


def test_a_connection_in_its_handshake_is_not_enough():
    net = Network("DEALER")
    net.connect()
    net.dial()
    assert not net.core.connected()


def test_a_socket_that_only_binds_is_connected_when_anybody_is_there():
    net = Network("PULL")
    assert not net.core.connected()
    remote = net.greet("PUSH")
    assert net.core.connected()
    net.cut(remote)
    assert not net.core.connected()


def test_an_endpoint_that_is_leaving_need_not_be_waited_for():
    net = Network("PUSH")
    net.join("PULL")
    dialer = net.connect(ELSEWHERE)
    dialer.peer.outbound.push(b"left")
    assert not net.core.connected()
    net.links.hang_up(dialer)
    assert net.core.connected()


def test_why_there_is_no_peer_can_be_asked():
    net = Network("DEALER")
    assert net.core.why_not_connected() == "nobody has connected"
    net.core.inproc.connect(inproc("name"))
    net.connect()
    net.refuse()
    net.connect(ELSEWHERE)
    reasons = net.core.why_not_connected().split("; ")
    assert reasons[0].startswith(f"{ADDRESS}: ")
    assert "refused" in reasons[0]
    assert reasons[1:] == [f"{ELSEWHERE}: no answer yet", "inproc://name: nobody has bound it"]


def test_an_endpoint_that_has_its_peer_needs_no_reason():
    context = ContextCore()
    net = Network("DEALER", context)
    make_core("DEALER", context).inproc.bind(inproc("name"))
    net.core.inproc.connect(inproc("name"))
    net.join("DEALER")
    assert net.core.why_not_connected() == "nobody has connected"


# -- what patterns want of others


def test_a_peer_that_the_pattern_does_not_want_is_sent_away():
    net = Network("PAIR")
    first, second = net.greet("PAIR"), net.greet("PAIR")
    assert list(net.links.open_links) == [first.link]
    assert second.link.lost
    (report,) = net.reports()
    assert "PAIR has a peer already" in report


def test_a_dialled_peer_that_has_no_connection_yet_cannot_be_sent_away():
    net = Network("PAIR")
    net.connect()
    net.connect()
    net.core.settle()
    assert net.reports() == []
    assert len(net.links.dialers) == 2


def test_a_refused_dialled_peer_is_tried_again_when_the_place_may_be_free():
    net = Network("PAIR")
    first = net.join("PAIR")
    second = net.connect(ELSEWHERE)
    net.meet(second, "PAIR")
    assert second.due_at is not None
    net.cut(first)
    net.links.hang_up(next(iter(net.links.dialers)))
    net.after(60.0)
    assert second in net.links.to_dial


def test_a_peer_that_the_application_sends_away_goes_without_a_word():
    net = Network("STREAM")
    remote = net.greet("STREAM")
    routing_id, _ = net.core.receive()
    net.core.send([routing_id, b""])
    net.talk()
    assert remote.link.lost
    assert net.reports() == []


def test_an_inproc_peer_that_the_pattern_does_not_want_is_left_alone():
    context = ContextCore()
    bound, *others = (make_core("PAIR", context) for _ in range(3))
    bound.inproc.bind(inproc("name"))
    for other in others:
        other.inproc.connect(inproc("name"))
    bound.settle()
    assert len(bound.links.peers) == len(bound.links.reports) == 1
    assert others[0].connected()
    assert not others[1].connected()


def test_subscriptions_go_to_every_peer():
    context = ContextCore()
    net = Network("SUB", context)
    within = make_core("PUB", context)
    within.inproc.bind(inproc("name"))
    net.core.inproc.connect(inproc("name"))
    over_the_wire = net.join("PUB")
    net.core.set_option(SocketOption.SUBSCRIBE, b"a")
    net.talk()
    assert [item.topic for item in over_the_wire.taken()] == [b"a"]
    assert within.pattern.subscribers(b"a") == 1


def test_what_a_publisher_sent_is_not_kept_for_a_later_turn():
    net = Network("PUB")
    sub = net.greet("SUB")
    sub.subscribe(b"")
    net.talk()
    net.core.send(b"x")
    net.talk()
    assert net.links.encoder.messages == []


def test_what_a_pattern_notices_is_reported():
    net = Network("ROUTER")
    for _ in range(2):
        net.greet("DEALER", identity=b"name")
    assert len(net.reports()) == 1


def test_of_a_closed_socket_nothing_is_reported_any_more():
    net = Network("ROUTER")
    net.core.pattern.notice(None, "something")
    net.core.close()
    net.core.settle()
    assert not net.reports()
    assert not net.core.pattern.notices


# -- closing


@pytest.mark.parametrize(
    "call",
    [
        lambda core: core.send(b""),
        lambda core: core.send_part(b""),
        lambda core: core.receive(),
        lambda core: core.receive_part(),
        lambda core: core.events(),
        lambda core: core.connected(),
        lambda core: core.set_option(SocketOption.LINGER, 0),
        lambda core: core.get_option(SocketOption.LINGER),
    ],
)
def test_a_closed_socket_answers_nothing(call):
    core = make_core("PAIR")
    core.close()
    with pytest.raises(ZMQError) as closed:
        call(core)
    assert closed.value.errno == Errno.ENOTSOCK


def test_options_can_be_asked_and_set_while_the_context_ends():
    """libzmq refuses everything else then (measured)."""
    core = make_core("SUB")
    core.context.terminated = True
    core.set_option(SocketOption.LINGER, 5)
    assert core.get_option(SocketOption.LINGER) == 5
    with pytest.raises(ZMQError) as ended:
        core.get_option(SocketOption.EVENTS)
    assert ended.value.errno == Errno.ETERM


def test_the_rest_of_a_message_is_not_received_after_the_end():
    net = Network("PULL")
    remote = net.greet("PUSH")
    remote.say([b"1", b"2"])
    net.talk()
    net.core.receive_part()
    net.core.context.terminated = True
    with pytest.raises(ZMQError):
        net.core.receive_part()


def test_closing_twice_changes_nothing():
    core = make_core("PAIR")
    core.close()
    core.close()
    assert core.closed


def test_parts_that_were_not_completed_are_not_sent():
    net, pull = pipeline()
    net.core.send(b"whole")
    net.core.send_part(b"begun")
    net.core.close()
    net.talk()
    assert pull.taken() == [b"whole"]
    assert net.links.finished


@pytest.mark.parametrize("keep", ["send_part", "put_back", "put_back_part"])
def test_a_closed_socket_holds_no_messages(keep):
    net = Network("PAIR")
    net.join("PAIR")
    lent = memoryview(bytearray(9))
    watched = weakref.ref(lent)
    getattr(net.core, keep)(lent)
    del lent
    assert watched() is not None
    net.core.close()
    gc.collect()
    assert watched() is None


def test_close_leaves_the_context():
    context = ContextCore()
    core = make_core("PULL", context)
    core.inproc.bind(inproc("name"))
    core.close()
    assert context.sockets == set()
    assert context.binder("name") is None


def test_what_was_dropped_can_still_be_asked_after_close():
    net, pull = pipeline()
    pull.reads = False
    net.core.send(b"x")
    net.core.close()
    net.links.end_close()
    net.talk()
    assert net.core.pattern.dropped == {PEER_GONE: 1}
