"""What every socket type answers unless it says otherwise."""

import pytest

from tests.patterns.world import make, network_peer, new_peer, sent
from zerohop.constants import Errno, SocketType
from zerohop.errors import Again, UsageError
from zerohop.patterns import make_pattern
from zerohop.patterns.pattern import PatternOptions, probe

TYPES = [SocketType(number).name for number in range(12)]
WITH_TOPICS = {"PUB", "XPUB", "SUB", "XSUB"}


@pytest.mark.parametrize("socket_type", TYPES)
def test_each_of_the_twelve_types_can_be_made_and_starts_with_nothing(socket_type):
    pattern = make(socket_type)
    assert (pattern.send_lane, pattern.receive_lane) == (None, None)
    assert not any((pattern.announcements, pattern.refused, pattern.notices))
    assert not pattern.dropped
    assert pattern.topics() == []
    assert pattern.subscribers(b"") == 0


@pytest.mark.parametrize("socket_type", TYPES)
def test_only_the_types_that_libzmq_polls_out_can_send_without_peers(socket_type):
    """Measured: EVENTS of a fresh socket."""
    expected = socket_type in {"PUB", "XPUB", "XSUB", "ROUTER", "STREAM"}
    assert make(socket_type).can_send_now() == expected
    assert not make(socket_type).can_receive_now()


@pytest.mark.parametrize("socket_type", TYPES)
def test_a_peer_may_come_have_news_and_leave(socket_type):
    pattern = make(socket_type)
    peer = network_peer(pattern)
    pattern.readable(peer)
    pattern.writable(peer)
    pattern.disconnected(peer)
    pattern.connected(peer)
    pattern.detach(peer)
    # A lane that the pattern hands out itself is there for whoever comes next.
    assert pattern.hands_out or pattern.send_lane is None
    assert pattern.receive_lane is None


@pytest.mark.parametrize("socket_type", sorted(set(TYPES) - {"PUB", "XPUB"}))
def test_types_that_do_not_publish_ignore_subscriptions(socket_type):
    pattern = make(socket_type)
    peer = network_peer(pattern)
    pattern.subscription(peer, b"topic", subscribe=True)
    assert pattern.subscribers(b"topic") == 0


@pytest.mark.parametrize("socket_type", sorted(set(TYPES) - {"SUB"}))
def test_only_sub_subscribes_by_option(socket_type):
    """Measured: EINVAL from all others, XSUB included."""
    for call in (make(socket_type).subscribe, make(socket_type).unsubscribe):
        with pytest.raises(UsageError) as caught:
            call(b"topic")
        assert caught.value.errno == Errno.EINVAL


@pytest.mark.parametrize("socket_type", sorted(set(TYPES) - WITH_TOPICS))
def test_types_without_topics_cannot_count_them(socket_type):
    with pytest.raises(UsageError) as caught:
        make(socket_type).topics_count()
    assert caught.value.errno == Errno.EINVAL


@pytest.mark.parametrize("socket_type", TYPES)
def test_a_type_accepts_those_that_accept_it(socket_type):
    for other in make(socket_type).accepts:
        assert socket_type in make(other).accepts


@pytest.mark.parametrize("number", [12, 20, -1, 99])
def test_there_are_no_other_types(number):
    with pytest.raises(UsageError) as caught:
        make_pattern(number, PatternOptions(), seed=0)
    assert caught.value.errno == Errno.EINVAL
    assert any("XSUB" in note for note in caught.value.__notes__)


def test_options_are_live():
    options = PatternOptions()
    router = make_pattern(SocketType.ROUTER, options, seed=0)
    options.router_mandatory = True
    assert not router.can_send_now()


def test_an_option_that_does_not_exist_is_a_type_error():
    with pytest.raises(TypeError, match="PatternOptions has no 'routing_di'"):
        PatternOptions(routing_di=b"me")


def test_a_probe_wakes_a_sleeping_reader():
    peer = new_peer()
    probe(peer)
    assert peer.outbound.reader_signals == [peer]
    assert sent(peer) == [b""]


def test_a_probe_is_left_out_where_the_pipe_is_full():
    peer = new_peer(hwm=1)
    peer.outbound.push(b"x")
    probe(peer)
    assert sent(peer) == [b"x"]


def test_a_type_that_cannot_receive_counts_what_comes_all_the_same():
    push = make("PUSH")
    peer = network_peer(push)
    push.deliver(peer, [b"x", b"y"])
    assert peer.dropped == {"not expected": 2}


def test_a_type_that_lacks_a_direction_says_so():
    for call in (lambda: make("PULL").send(b"x"), make("PUSH").receive):
        with pytest.raises(UsageError) as caught:
            call()
        assert caught.value.errno == Errno.ENOTSUP


def test_a_message_may_be_begun_if_one_could_be_sent():
    push = make("PUSH")
    with pytest.raises(Again):
        push.check_send(b"first part")
    peer = network_peer(push)
    push.check_send(b"first part")
    assert sent(peer) == []
