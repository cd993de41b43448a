"""What an exception may have left half done is put right: nobody is lost, nobody is there twice.

Each test leaves a state that a signal handler could have left, by raising between two instructions.
"""

import pytest

from tests.patterns.world import make, network_peer, new_peer, sent
from zerohop.errors import Again
from zerohop.patterns.routing import FairQueue, LoadBalancer
from zerohop.patterns.routing_ids import RoutingIds
from zerohop.patterns.subscriptions import SubscriptionIndex


def take_all(queue):
    got = []
    while queue.has_messages():
        got.append(queue.take())
    return got


def peers_with(*contents):
    peers = [new_peer() for _ in contents]
    for peer, messages in zip(peers, contents):
        peer.inbound.extend(list(messages))
    return peers


# -- queues


def test_a_fair_queue_receives_from_everybody_again():
    """The first was in neither list, the second in both, the third twice in one."""
    queue = FairQueue()
    lost, doubled, twice = peers = peers_with([b"a"], [b"b"], [b"c", b"d"])
    queue._ready.extend([doubled, twice, twice])
    queue._asleep.add(doubled)
    queue.mend(peers)
    assert take_all(queue) == [b"b", b"c", b"a", b"d"]
    queue.mend([lost])
    assert queue.lane is lost.inbound


def test_who_has_left_is_received_from_until_nothing_is_left_of_it():
    queue = FairQueue()
    gone, left, here = peers_with([], [b"last words"], [b"here"])
    for peer in (gone, left, here):
        queue.add(peer)
    queue.mend([here])
    assert queue.lane is None
    assert take_all(queue) == [b"last words", b"here"]
    assert list(queue) == [here]
    assert queue.lane is here.inbound


def test_a_load_balancer_sends_to_everybody_who_is_here_again():
    """One was in neither list, one in both, one has left."""
    balancer = LoadBalancer()
    lost, doubled, gone = (new_peer() for _ in range(3))
    balancer._ready.extend([doubled, gone])
    balancer._stopped = {doubled}
    balancer.mend([lost, doubled])
    for message in (b"1", b"2", b"3"):
        balancer.send(message)
    assert [sent(peer) for peer in (doubled, lost, gone)] == [[b"1", b"3"], [b"2"], []]


def test_an_id_that_nobody_has_is_free_again():
    ids = RoutingIds(0)
    here, gone = new_peer(), new_peer()
    ids.give(here, b"here")
    ids.give(gone, b"gone")
    ids._by_id[b"half given"] = here
    ids.mend([here])
    assert b"gone" not in ids
    assert b"half given" not in ids
    assert ids.peer(b"here") is here
    assert ids.release(here) == b"here"


# -- subscriptions


def test_an_index_is_made_anew_of_what_each_peer_wants():
    index = SubscriptionIndex()
    here, gone, nothing = (new_peer() for _ in range(3))
    index.add(b"a", here)
    index.add(b"bc", gone)
    index._subscribers[here].topics[b"def"] = None  # and no further
    index.mend([here, nothing])
    assert index.matching(b"defg") == (here,)
    assert index.matching(b"abc") == (here,)
    assert index.matching(b"bcd") == ()
    assert index.forget(here) == [(b"a", True), (b"def", True)]
    assert len(index) == 0


def test_forgetting_a_peer_whose_subscription_was_half_made_is_no_error():
    index = SubscriptionIndex()
    half, other = new_peer(), new_peer()
    index.add(b"", other)
    index.add(b"a", half)
    index.add(b"", half)
    del index._topics[b"a"]
    del index._topics[b""].peers[half]
    assert index.forget(half) == [(b"", False), (b"a", False)]


# -- patterns


@pytest.mark.parametrize("kind", ["PUSH", "DEALER", "REQ"])
def test_a_sender_that_had_lost_a_peer_sends_to_it(kind):
    pattern = make(kind)
    peer = network_peer(pattern)
    pattern.mend([])
    with pytest.raises(Again):
        pattern.send(b"x")
    pattern.mend([peer])
    pattern.send(b"x")
    assert len(sent(peer)) == 1


@pytest.mark.parametrize(
    ("kind", "message", "received"),
    [
        ("PULL", b"x", b"x"),
        ("DEALER", b"x", b"x"),
        ("PAIR", b"x", b"x"),
        ("ROUTER", b"x", [b"name", b"x"]),
        ("REP", [b"", b"x"], b"x"),
        ("XSUB", b"x", b"x"),
        ("SUB", b"x", b"x"),
        ("XPUB", b"x", b"x"),
        ("STREAM", b"x", [b"\0\0\0\0\0", b"x"]),
    ],
)
def test_a_receiver_that_had_lost_a_peer_receives_from_it(kind, message, received):
    pattern = make(kind, **({"stream_notify": False} if kind == "STREAM" else {}))
    if kind == "SUB":
        pattern.subscribe(b"")
    peer = network_peer(pattern, routing_id=b"name")
    pattern._incoming._asleep.clear()
    pattern._incoming._ready.clear()
    pattern._incoming.sole = None
    pattern.deliver(peer, [message])
    with pytest.raises(Again):
        pattern.receive()
    pattern.mend([peer])
    assert pattern.receive() == received


@pytest.mark.parametrize("kind", ["PUSH", "DEALER", "PAIR"])
def test_the_lane_leads_to_who_is_here(kind):
    pattern = make(kind)
    gone, here = new_peer(), new_peer()
    pattern.attach(gone)
    pattern.mend([here])
    assert pattern.send_lane is here.outbound
    pattern.mend([])
    assert pattern.send_lane is None


@pytest.mark.parametrize("kind", ["PULL", "DEALER", "PAIR", "XSUB", "SUB"])
def test_the_lane_comes_from_who_is_here(kind):
    pattern = make(kind)
    gone, here = new_peer(), new_peer()
    pattern.attach(gone)
    pattern.mend([here])
    assert pattern.receive_lane is here.inbound
    pattern.mend([])
    assert pattern.receive_lane is None


def test_a_pair_keeps_its_peer():
    pair = make("PAIR")
    first = network_peer(pair)
    second = network_peer(pair)
    assert pair.refused
    pair.mend([first, second])
    assert pair.send_lane is first.outbound


def test_a_router_names_who_has_no_name_and_forgets_who_has_left():
    router = make("ROUTER")
    named, waiting, gone = (network_peer(router, routing_id=n) for n in (b"a", b"a", b"gone"))
    late, dialled, stranger = new_peer(routing_id=b"late"), new_peer(), new_peer()
    late.connected = True
    dialled.connect_routing_id = b"dialled"
    router.mend([named, waiting, late, dialled, stranger])
    for name in (b"a", b"late", b"dialled", b"gone"):
        router.send([name, b"to " + name])
    assert sent(named) == [b"to a"]
    assert sent(late) == [b"to late"]
    assert sent(dialled) == [b"to dialled"]
    assert [sent(peer) for peer in (waiting, gone, stranger)] == [[], [], []]
    router.mend([waiting, late])
    assert not router.has_routing_id(b"a")
    router.mend([])
    assert not router.has_routing_id(b"late")


def test_a_router_hears_who_was_named_and_still_waited():
    router = make("ROUTER")
    peer = network_peer(router, routing_id=b"a")
    router._waiting[peer] = b"a"
    router.mend([peer])
    router.deliver(peer, [b"x"])
    assert router.receive() == [b"a", b"x"]
    router.detach(peer)
    assert not router.has_routing_id(b"a")


def test_a_reply_finds_its_way_to_who_had_been_lost():
    rep = make("REP")
    peer = network_peer(rep)
    rep.deliver(peer, [[b"", b"question"]])
    assert rep.receive() == b"question"
    rep._peers.clear()
    rep.mend([peer])
    rep.send(b"answer")
    assert sent(peer) == [[b"", b"answer"]]


def test_a_publisher_forgets_who_has_left_and_hands_out_what_it_has():
    xpub = make("XPUB")
    here, gone = network_peer(xpub), network_peer(xpub)
    for peer in (here, gone):
        xpub.subscription(peer, b"", subscribe=True)
    lane = xpub._handout.lane
    lane.messages.append(b"on the lane")  # and nobody was told
    lane.asleep = False
    xpub.mend([here])
    xpub.hand_out()
    assert sent(here) == [b"on the lane"]
    assert sent(gone) == []
    assert xpub.subscribers(b"x") == 1


def test_a_stream_names_who_has_no_name():
    stream = make("STREAM", stream_notify=False)
    named, nameless, gone = network_peer(stream), new_peer(), network_peer(stream)
    stream.mend([named, nameless])
    for peer in (named, nameless):
        stream.send([stream._ids.routing_id(peer), b"x"])
        assert sent(peer) == [b"x"]
    assert stream._ids.routing_id(gone) is None
