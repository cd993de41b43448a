"""What routing costs: ``python -m bench.micro.patterns``.

Nanoseconds a message (PUB: a send) at the pattern, without codec, core or driver: the best of many
short rounds, which is what the code costs where nothing else runs.
"""

import gc
from collections.abc import Callable
from time import perf_counter

from zerohop.constants import SocketType
from zerohop.patterns import make_pattern
from zerohop.patterns.pattern import Pattern, PatternOptions, Peer
from zerohop.patterns.pipe import Message, Pipe

COUNT = 5_000  # messages a round
ROUNDS = 15
BODY = bytes(64)


def join(socket_type: SocketType, count: int, hwm: int = 0) -> tuple[Pattern, list[Peer]]:
    """A pattern with so many network peers."""
    pattern = make_pattern(socket_type, PatternOptions(), seed=1)
    peers = [Peer(Pipe(hwm), Pipe(hwm)) for _ in range(count)]
    for number, peer in enumerate(peers):
        peer.routing_id = b"%d" % number
        pattern.attach(peer)
        pattern.connected(peer)
    return pattern, peers


def clock(work: Callable[[], object], count: int, prepare: Callable[[], object]) -> int:
    """Nanoseconds a message in the best round; ``prepare`` runs before each, unmeasured."""
    best = float("inf")
    for _ in range(ROUNDS):
        prepare()
        start = perf_counter()
        work()
        best = min(best, perf_counter() - start)
    return round(best / count * 1e9)


def sending(pattern: Pattern, peers: list[Peer], messages: list[Message]) -> int:
    """Cost of a send."""

    def work() -> None:
        send = pattern.send
        for message in messages:
            send(message)

    def prepare() -> None:
        for peer in peers:
            peer.outbound.messages.clear()

    return clock(work, len(messages), prepare)


def receiving(pattern: Pattern, peers: list[Peer], message: Message) -> int:
    """Cost of a receive, the peers having the same number of messages each."""
    each = COUNT // len(peers)

    def work() -> None:
        receive = pattern.receive
        for _ in range(each * len(peers)):
            receive()

    def prepare() -> None:
        for peer in peers:
            pattern.deliver(peer, [message] * each)

    return clock(work, each * len(peers), prepare)


def publishing(subscribers: int, topics: list[bytes]) -> int:
    """Cost of a send that all subscribers want, each having all the topics (none: nobody)."""
    pub, peers = join(SocketType.PUB, subscribers)
    for peer in peers:
        for topic in topics:
            pub.subscription(peer, topic, subscribe=True)
    first = (topics[len(topics) // 2] if topics else b"topic") + b": something new"
    return sending(pub, peers, [first] * (COUNT // subscribers))


def handing_out(subscribers: int, topics: list[bytes]) -> int:
    """Cost of a message of a batch that was put into the lane of a publisher and is handed out."""
    pub, peers = join(SocketType.PUB, subscribers)
    for peer in peers:
        for topic in topics:
            pub.subscription(peer, topic, subscribe=True)
    batch = [topics[number * 7 % len(topics)] + b": something new" for number in range(COUNT)]
    pub.hand_out()
    lane = pub.send_lane
    assert lane is not None

    def prepare() -> None:
        for peer in peers:
            peer.outbound.messages.clear()
        lane.messages.extend(batch)

    return clock(pub.hand_out, COUNT, prepare)


def filtering(topics: list[bytes], first: bytes) -> int:
    """Cost of a message that SUB looks at as it arrives."""
    sub, [peer] = join(SocketType.SUB, 1)
    for topic in topics:
        sub.subscribe(topic)
    batch: list[Message] = [first + b": something new"] * COUNT
    return clock(lambda: sub.deliver(peer, batch), COUNT, peer.inbound.messages.clear)


def main() -> None:
    """Print one line a case."""
    gc.disable()
    for count in (1, 8, 64):
        push, peers = join(SocketType.PUSH, count, hwm=COUNT + 1)
        print(f"PUSH send, {count} peers: {sending(push, peers, [BODY] * COUNT)} ns")
        print(f"PULL receive, {count} peers: {receiving(*join(SocketType.PULL, count), BODY)} ns")
    router, peers = join(SocketType.ROUTER, 8)
    addressed: list[Message] = [[b"%d" % (number % 8), BODY] for number in range(COUNT)]
    print(f"ROUTER send, 8 peers: {sending(router, peers, addressed)} ns")
    print(f"ROUTER receive, 8 peers: {receiving(router, peers, BODY)} ns")
    for name, topics in {
        "nobody": [],
        "everything": [b""],
        "1,000 topics": [b"topic.%04d" % number for number in range(1_000)],
        "10,000 topics": [b"topic.%04d" % number for number in range(10_000)],
    }.items():
        for count in (1, 8, 64):
            print(f"PUB send, {name}, {count} subscribers: {publishing(count, topics)} ns")
            if topics:
                cost = handing_out(count, topics)
                print(f"PUB, a batch from its lane, {name}, {count} subscribers: {cost} ns")
    for count in (1, 12, 13, 10_000):
        topics = [b"topic.%05d" % number for number in range(count)]
        for first in (topics[-1], b"other"):
            print(f"SUB filters {first!r}, {count} topics: {filtering(topics, first)} ns")
    print(f"SUB filters nothing, subscribed to everything: {filtering([b''], b'x')} ns")


if __name__ == "__main__":
    main()
