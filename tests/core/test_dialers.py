"""Who is dialled, when again, and when not any more."""

import errno

import pytest

from tests.core.kit import ADDRESS, Network, received
from zerohop.constants import Event, ReconnectStop
from zerohop.core.endpoint import parse
from zerohop.core.peers import PEER_GONE

REFUSED = ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")
NO_ROUTE = OSError(errno.EHOSTUNREACH, "No route to host")


def waits(dialer, net):
    """For how many seconds the dialler waits."""
    return pytest.approx(dialer.due_at - net.now)


def test_connect_asks_for_a_connection_at_once():
    net = Network("PUSH")
    dialer = net.connect()
    assert net.links.to_dial == [dialer]
    assert dialer in net.links.dialers
    assert (len(net.links.dialers), list(net.links.dialers)) == (1, [dialer])


def test_messages_queue_before_anybody_listens():
    net = Network("PUSH")
    dialer = net.connect()
    net.core.send(b"early")
    assert list(dialer.peer.outbound.messages) == [b"early"]
    assert net.meet(dialer, "PULL").taken() == [b"early"]


def test_with_immediate_there_is_no_peer_before_the_handshake():
    net = Network("PUSH", immediate=True)
    dialer = net.connect()
    assert dialer.peer is None
    assert not net.core.pattern.can_send_now()
    net.meet(dialer, "PULL")
    assert dialer.peer is not None
    assert net.core.pattern.can_send_now()


def test_with_immediate_the_peer_leaves_with_its_connection_and_its_queue_is_counted():
    net = Network("PUSH", immediate=True)
    pull = net.join("PULL")
    pull.reads = False
    net.core.send(b"1")
    net.core.send(b"2")
    net.cut(pull)
    (dialer,) = net.links.dialers
    assert dialer.peer is None
    assert not net.core.pattern.can_send_now()
    assert net.core.pattern.dropped == {PEER_GONE: 2}


def test_immediate_is_as_it_was_at_connect():
    net = Network("PUSH")
    pull = net.join("PULL")
    net.core.options.immediate = True
    pull.reads = False
    net.core.send(b"kept")
    net.cut(pull)
    (dialer,) = net.links.dialers
    assert list(dialer.peer.outbound.messages) == [b"kept"]


def test_refused_it_dials_again_after_the_interval():
    net = Network("PUSH", reconnect_ivl=0.2, jitter=0.5)
    dialer = net.connect()
    net.refuse()
    assert waits(dialer, net) == 0.3
    assert net.links.to_dial == []
    net.after(0.29)
    assert net.links.to_dial == []
    net.after(0.02)
    assert net.links.to_dial == [dialer]
    assert dialer.due_at is None


def test_the_interval_is_as_it_was_at_connect():
    net = Network("PUSH", reconnect_ivl=0.2)
    dialer = net.connect()
    net.core.options.reconnect_ivl = 50.0
    net.refuse()
    assert waits(dialer, net) == 0.2


def test_the_pause_grows_with_each_attempt_until_a_handshake():
    net = Network("PUSH", reconnect_ivl=0.1, reconnect_ivl_max=10.0, jitter=1.0)
    dialer = net.connect()
    pauses = []
    for _ in range(4):
        net.refuse()
        pauses.append(dialer.due_at - net.now)
        net.after(100.0)
    assert pauses == pytest.approx([0.1, 0.2, 0.4, 0.8])
    pull = net.meet(dialer, "PULL")
    assert dialer.attempt == 0
    net.cut(pull)
    assert waits(dialer, net) == 0.1


def test_a_peer_that_accepts_and_closes_does_not_keep_the_pause_short():
    net = Network("PUSH", reconnect_ivl=0.1, reconnect_ivl_max=10.0, jitter=1.0)
    dialer = net.connect()
    pauses = []
    for _ in range(4):
        net.links.lost(net.dial(), None, net.now)
        pauses.append(dialer.due_at - net.now)
        net.after(100.0)
    assert pauses == pytest.approx([0.1, 0.2, 0.4, 0.8])


@pytest.mark.parametrize("error", [REFUSED, NO_ROUTE])
@pytest.mark.parametrize("interval", [None, 0.0])
def test_without_an_interval_it_is_given_up(error, interval):
    net = Network("PUSH", reconnect_ivl=interval)
    dialer = net.connect()
    net.core.send(b"for nobody")
    net.refuse(error)
    assert dialer.stopped
    assert dialer.due_at is None
    assert not net.core.pattern.can_send_now()
    assert net.core.pattern.dropped == {PEER_GONE: 1}


def test_without_an_interval_a_lost_connection_is_not_made_again():
    net = Network("PUSH", reconnect_ivl=None)
    pull = net.join("PULL")
    net.cut(pull)
    net.after(100.0)
    assert net.links.to_dial == []
    assert not net.core.pattern.can_send_now()


@pytest.mark.parametrize(
    "error, stop, stopped",
    [
        (REFUSED, ReconnectStop.CONN_REFUSED, True),
        (NO_ROUTE, ReconnectStop.CONN_REFUSED, False),
        (REFUSED, ReconnectStop.HANDSHAKE_FAILED, False),
    ],
)
def test_reconnect_stop_says_which_failure_is_the_last(error, stop, stopped):
    net = Network("PUSH", reconnect_stop=int(stop))
    dialer = net.connect()
    net.refuse(error)
    assert dialer.stopped == stopped


def test_an_endpoint_that_was_given_up_can_be_connected_again():
    net = Network("DEALER", reconnect_ivl=None)
    old = net.connect()
    net.refuse()
    new = net.connect()
    assert new is not None
    assert list(net.links.dialers) == [new]
    assert old not in net.links.dialers
    router = net.meet(new, "ROUTER")
    net.core.send(b"hello")
    net.talk()
    assert router.taken() == [b"hello"]


def test_the_one_that_leads_to_an_endpoint_is_found_however_it_is_written():
    net = Network("PUSH")
    first, second = net.connect("tcp://[::1]:5555"), net.connect("tcp://[::1]:5555")
    other = net.connect("tcp://127.0.0.1:5555")
    find = net.links.dialers.find
    assert find(parse("tcp://[::1]:5555", for_bind=False)) is first
    assert find(parse("tcp://::1:5555", for_bind=False)) is first
    assert find(parse("tcp://127.0.0.1:5555", for_bind=False)) is other
    assert find(parse("tcp://127.0.0.1:5556", for_bind=False)) is None
    net.links.drop(first)
    assert find(parse("tcp://[::1]:5555", for_bind=False)) is second
    second.leaving = True
    assert find(parse("tcp://[::1]:5555", for_bind=False)) is None


def test_an_address_has_a_dialler_until_it_is_to_leave():
    net = Network("DEALER")
    dialer = net.connect()
    assert net.links.dialers.has(ADDRESS)
    assert not net.links.dialers.has("tcp://127.0.0.1:1")
    dialer.leaving = True
    assert not net.links.dialers.has(ADDRESS)


def test_among_many_diallers_an_address_is_known_as_long_as_one_leads_there():
    net = Network("PUSH")
    dialers = net.links.dialers
    made = [net.connect(f"tcp://127.0.0.1:{port}") for port in range(5000, 5040)]
    assert dialers.has("tcp://127.0.0.1:5000")
    late, again = net.connect("tcp://127.0.0.1:6000"), net.connect("tcp://127.0.0.1:5000")
    assert dialers.has("tcp://127.0.0.1:6000")
    for dialer in (late, *made[:-1]):
        net.links.drop(dialer)
    assert not dialers.has("tcp://127.0.0.1:6000")
    assert not dialers.has("tcp://127.0.0.1:5001")
    assert dialers.find(again.endpoint) is again
    net.links.drop(again)
    assert not dialers.has("tcp://127.0.0.1:5000")
    assert dialers.has("tcp://127.0.0.1:5039")


def test_the_driver_is_told_who_was_dropped_once():
    net = Network("PUSH")
    dialer = net.connect()
    net.links.drop(dialer)
    net.links.dialers.drop(dialer)
    assert net.links.dialers.dropped == [dialer]


def test_one_who_is_leaving_and_has_nothing_left_is_not_dialled_again():
    net = Network("PUSH")
    pull = net.join("PULL")
    pull.reads = False
    net.core.send(b"x")
    net.talk()
    net.takes(pull.link, 3)
    (dialer,) = net.links.dialers
    net.links.hang_up(dialer)
    pull.reads = True
    net.takes(pull.link)  # the rest
    net.talk()
    assert len(net.links.dialers) == 0
    assert net.links.open_links == {}


def test_one_who_is_leaving_dials_again_for_what_is_left():
    net = Network("PUSH")
    pull = net.join("PULL")
    pull.reads = False
    net.core.send(b"last")
    net.talk()
    (dialer,) = net.links.dialers
    net.links.hang_up(dialer)
    net.cut(pull)
    net.after(1.0)
    back = net.meet(dialer, "PULL")
    assert back.taken() == [b"last"]
    assert len(net.links.dialers) == 0


def test_one_who_is_leaving_and_may_not_dial_again_is_gone():
    net = Network("PUSH", reconnect_ivl=None)
    pull = net.join("PULL")
    pull.reads = False
    net.core.send(b"last")
    net.talk()
    (dialer,) = net.links.dialers
    net.links.hang_up(dialer)
    net.cut(pull)
    assert len(net.links.dialers) == 0
    assert net.core.pattern.dropped == {PEER_GONE: 1}


def test_connect_routing_id_is_for_the_next_connect_only():
    net = Network("ROUTER", connect_routing_id=b"a", router_mandatory=True)
    first, second = net.connect(), net.connect("tcp://127.0.0.1:6666")
    assert first.peer.connect_routing_id == b"a"
    assert second.peer.connect_routing_id == b""
    net.core.send([b"a", b"hello"])
    assert net.meet(first, "DEALER").taken() == [b"hello"]


def test_a_dropped_dialler_is_not_dialled():
    net = Network("PUSH")
    dialer = net.connect()
    net.core.send(b"x")
    net.links.dialers.drop(dialer)
    assert net.links.to_dial == []
    assert dialer.peer is None
    assert list(net.links.peers) == []
    assert net.core.pattern.dropped == {PEER_GONE: 1}


def test_a_dropped_dialler_stops_waiting():
    net = Network("PUSH")
    dialer = net.connect()
    net.refuse()
    net.links.dialers.drop(dialer)
    net.after(100.0)
    assert net.links.to_dial == []


def test_the_late_failure_of_a_dropped_dialler_is_of_no_interest():
    net = Network("PUSH")
    dialer = net.connect()
    net.links.to_dial.clear()
    net.links.dialers.drop(dialer)
    net.links.dialers.failed(dialer, REFUSED, net.now)
    assert dialer.due_at is None


# -- what is told


def test_a_failure_and_the_pause_after_it_are_recorded():
    net = Network("PUSH", reconnect_ivl=0.2)
    net.connect()
    net.refuse()
    closed, retried = net.records()
    number = errno.ECONNREFUSED
    assert (closed.event, closed.value, closed.endpoint) == (Event.CLOSED, number, ADDRESS)
    assert "refused" in closed.reason
    assert (retried.event, retried.value) == (Event.CONNECT_RETRIED, 200)


def test_the_last_error_stays_until_a_handshake():
    net = Network("PUSH")
    dialer = net.connect()
    net.refuse()
    assert isinstance(dialer.last_error, ConnectionRefusedError)
    net.after(1.0)
    net.meet(dialer, "PULL")
    assert dialer.last_error is None


@pytest.mark.parametrize("error", [REFUSED, FileNotFoundError(errno.ENOENT, "No such file")])
def test_that_nobody_listens_yet_is_no_news_for_the_log(error):
    net = Network("PUSH")
    net.connect()
    net.refuse(error)
    assert net.reports() == []


def test_a_name_that_does_not_resolve_is_logged_once_until_somebody_is_there():
    net = Network("PUSH")
    dialer = net.connect()
    nowhere = OSError(errno.EHOSTUNREACH, "cannot resolve the name")
    for _ in range(3):
        net.refuse(nowhere)
        net.after(1.0)
    assert net.reports() == [f"PUSH {ADDRESS}: {nowhere}"]
    net.cut(net.meet(dialer, "PULL"))
    net.after(1.0)
    net.refuse(nowhere)
    assert len(net.reports()) == 1


def test_what_waits_for_a_peer_goes_out_when_it_comes():
    net = Network("PAIR")
    dialer = net.connect()
    for n in range(5):
        net.core.send(b"%d" % n)
    net.refuse()
    net.after(1.0)
    pair = net.meet(dialer, "PAIR")
    assert pair.taken() == [b"0", b"1", b"2", b"3", b"4"]
    pair.say(b"back")
    net.talk()
    assert received(net.core) == [b"back"]
