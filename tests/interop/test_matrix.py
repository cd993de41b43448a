"""Every pair of types that can talk: ours at one end, libzmq at the other, either of them bound."""

import pytest

from tests.interop.matrix import CELLS, as_received, as_sent, messages
from tests.kit.traffic import introduce

pytestmark = [pytest.mark.interop, pytest.mark.over("tcp", "ipc")]

NAMES = {"REQ", "DEALER", "ROUTER"}  # types that tell their routing id
PUBLISHERS = {"PUB", "XPUB"}
POLLOUT = 2


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.key.replace("|", ", bound: "))
async def test_messages_cross_whole_and_in_order(net, theirs, zmq, libzmq, cell):
    ours = net.socket(getattr(zmq, cell.ours))
    peer = theirs.socket(getattr(libzmq, cell.theirs))
    ends = [(cell.ours, ours, b"ours"), (cell.theirs, peer, b"theirs")]
    for kind, end, name in ends:
        if kind in NAMES:
            end.routing_id = name
        if kind == "ROUTER":
            end.router_mandatory = 1
    bound, connected, home = (ours, peer, net) if cell.we_bind else (peer, ours, theirs)
    await home.link(bound, connected)

    first, second = ends if cell.we_speak_first else ends[::-1]
    if first[0] in PUBLISHERS:
        await subscribe(net, first[1], *second[:2])
    one_way = first[0] in {"PUSH", *PUBLISHERS}
    for parts in messages():
        await say(net, first, second, parts)
        if not one_way:
            await say(net, second, first, [b"re", *parts])


async def subscribe(net, publisher, kind, subscriber):
    """Subscribe to everything, in the way of the type, and wait until the publisher knows."""
    if kind == "SUB":
        subscriber.subscribe(b"")
    else:
        await subscriber.send(b"\x01")
    await introduce(net, publisher, subscriber)


async def say(net, speaker, listener, parts):
    """Send a message from one end and compare what arrives at the other."""
    kind, end, name = speaker
    to_kind, to_end, to_name = listener

    if kind == "ROUTER":  # the end that connects may not know its peer's name yet
        await net.eventually(lambda: end.events & POLLOUT)
    await end.send_multipart(as_sent(kind, to_kind, to_name, parts))
    got = await to_end.recv_multipart()
    assert [len(part) for part in got] == [
        len(part) for part in as_received(to_kind, kind, name, parts)
    ]
    assert got == as_received(to_kind, kind, name, parts)
