"""DEALER: round robin out, fair queue in, no envelope (RFC 28; libzmq's test_spec_dealer)."""

import pytest

from tests.kit.traffic import drain, leave_while_answered


async def test_dealer_sends_to_its_peers_in_turn(net, zmq):
    dealer, peers = net.socket(zmq.DEALER), [net.socket(zmq.DEALER) for _ in range(3)]
    for peer in peers:
        await net.link(peer, dealer)
    for n in range(6):
        await dealer.send_multipart([b"%d" % n, b"more"])
    for first, peer in enumerate(peers):
        for n in (first, first + 3):
            assert await peer.recv_multipart() == [b"%d" % n, b"more"]


async def test_dealer_hears_all_its_peers(net, zmq):
    dealer, peers = net.socket(zmq.DEALER), [net.socket(zmq.DEALER) for _ in range(3)]
    await net.link(dealer, *peers)
    for who, peer in enumerate(peers):
        for n in range(4):
            await peer.send_multipart([b"%d" % who, b"%d" % n])
    got = [await dealer.recv_multipart() for _ in range(12)]
    for who in range(3):
        assert [n for w, n in got if w == b"%d" % who] == [b"0", b"1", b"2", b"3"]


@pytest.mark.over("inproc")
async def test_dealer_takes_one_message_from_each_peer_in_turn(net, zmq):
    dealer, peers = net.socket(zmq.DEALER), [net.socket(zmq.DEALER) for _ in range(3)]
    await net.link(dealer, *peers)
    for peer in peers:
        for n in range(3):
            await peer.send(b"%d" % n)
    assert await drain(zmq, dealer) == [b"0"] * 3 + [b"1"] * 3 + [b"2"] * 3


async def test_without_a_peer_dealer_waits_for_one(net, zmq):
    dealer, peer, endpoint = net.socket(zmq.DEALER), net.socket(zmq.DEALER), net.endpoint()
    dealer.bind(endpoint)
    with pytest.raises(zmq.Again):
        await dealer.send(b"refused", zmq.DONTWAIT)
    sending = net.start(dealer.send(b"waited"))
    peer.connect(endpoint)
    assert await peer.recv() == b"waited"
    await sending


async def test_a_dealer_that_writes_the_envelope_itself_asks_many_questions_at_once(net, zmq):
    dealer, rep = net.socket(zmq.DEALER), net.socket(zmq.REP)
    await net.link(rep, dealer)
    for n in range(5):
        await dealer.send_multipart([b"", b"question %d" % n])
    for _ in range(5):
        await rep.send(b"re: " + await rep.recv())
    assert [await dealer.recv_multipart() for _ in range(5)] == [
        [b"", b"re: question %d" % n] for n in range(5)
    ]


async def test_a_dealer_sends_while_another_call_waits_to_receive(net, zmq):
    """Both directions of one socket at once, as a program of two tasks does."""
    dealer, peer = net.socket(zmq.DEALER), net.socket(zmq.DEALER)
    await net.link(peer, dealer)

    async def echo():
        for _ in range(50):
            await peer.send(await peer.recv())

    echoing = net.start(echo())
    for n in range(50):
        await dealer.send(b"%d" % n)
    assert [await dealer.recv() for _ in range(50)] == [b"%d" % n for n in range(50)]
    await echoing


async def test_a_dealer_that_leaves_takes_no_request_back(net, zmq):
    router, dealer, endpoint = net.socket(zmq.ROUTER), net.socket(zmq.DEALER), net.endpoint()
    await leave_while_answered(router, dealer, endpoint)
