"""PUB with blocking calls: messages are handed out and written in batches, and nobody notices."""

import contextlib
import threading

import pytest

import zerohop as zmq
from zerohop.io.stream import Stream

SECONDS = 8


def published(context, *topics, **options):
    """A PUB, and a SUB for each list of topics."""
    context.rcvtimeo = context.sndtimeo = 1000 * SECONDS
    pub = context.socket(zmq.PUB)
    for name, value in options.items():
        setattr(pub, name, value)
    pub.bind("tcp://127.0.0.1:*")
    subs = []
    for wanted in topics:
        sub = context.socket(zmq.SUB)
        for topic in wanted:
            sub.subscribe(topic)
        sub.connect(pub.last_endpoint.decode())
        subs.append(sub)
    pub.wait_for_subscribers(topics[0][0], sum(topics[0][0] in t for t in topics), timeout=SECONDS)
    return pub, *subs


def in_another_thread(work, *args):
    thread = threading.Thread(target=work, args=args, daemon=True)
    thread.start()
    return thread


def test_a_lone_message_goes_to_everybody_at_once(context):
    pub, *subs = published(context, *[[b"a"]] * 8)
    for number in range(3):
        pub.send(b"a%d" % number)
        assert [sub.recv() for sub in subs] == [b"a%d" % number] * 8


def test_a_flood_that_must_not_be_dropped_arrives_whole_and_in_order(context):
    pub, *subs = published(context, *[[b""]] * 3, xpub_nodrop=1, sndhwm=100)
    messages = [b"%d" % number for number in range(20_000)]
    got = [[] for _ in subs]

    def receive(sub, taken):
        taken += [sub.recv() for _ in messages]

    threads = [in_another_thread(receive, *each) for each in zip(subs, got, strict=True)]
    for message in messages:
        pub.send(message)
    for thread in threads:
        thread.join(SECONDS)
    assert got == [messages] * 3
    assert not pub.stats().dropped


def test_each_gets_what_it_wants_of_a_flood(context):
    pub, a, b, both = published(context, [b"a"], [b"b", b"c"], [b"a", b"b"], xpub_nodrop=1)
    pub.wait_for_subscribers(b"b", 2, timeout=SECONDS)
    pub.wait_for_subscribers(b"c", 1, timeout=SECONDS)
    messages = [b"%c%d" % (b"abcd"[number * 7 % 4], number) for number in range(600)]
    for message in messages:
        pub.send(message)
    pub.send_multipart([b"a", b"multipart"])
    pub.send(b"b last", copy=False)
    for sub, topics in ((a, b"a"), (b, b"bc"), (both, b"ab")):
        wanted = [message for message in messages if message[0] in topics]
        assert [sub.recv() for _ in wanted] == wanted
    assert a.recv_multipart() == both.recv_multipart() == [b"a", b"multipart"]
    assert b.recv() == both.recv() == b"b last"


def test_without_drops_a_full_subscriber_makes_the_sender_wait_and_go_on(context):
    context.rcvhwm = 10
    pub, sub = published(context, [b""], xpub_nodrop=1, sndhwm=10, sndbuf=4096)
    big = bytes(10_000)
    sent = 0
    with contextlib.suppress(zmq.Again):
        while True:
            pub.send(big, timeout=0.1)
            sent += 1
    with pytest.raises(zmq.Again):
        pub.send(big, zmq.DONTWAIT)
    thread = in_another_thread(lambda: [pub.send(b"%d" % number) for number in range(100)])
    assert [sub.recv() for _ in range(sent)] == [big] * sent
    assert [sub.recv() for _ in range(100)] == [b"%d" % number for number in range(100)]
    thread.join(SECONDS)
    assert not thread.is_alive()


def test_a_small_high_water_mark_drops_nothing_that_the_network_would_take(context):
    """Each batch is written before it would be over the mark."""
    pub, sub = published(context, [b""], sndhwm=5)
    for number in range(1000):
        pub.send(b"%d" % number)
    assert [sub.recv() for _ in range(1000)] == [b"%d" % number for number in range(1000)]


def test_several_threads_may_publish_on_one_socket(context):
    pub, *subs = published(context, *[[b""]] * 2, xpub_nodrop=1)
    threads = 4

    def send(me):
        for number in range(2000):
            pub.send(b"%d %d" % (me, number))

    senders = [in_another_thread(send, me) for me in range(threads)]
    got = [[] for _ in subs]

    def receive(sub, taken):
        taken += [sub.recv() for _ in range(threads * 2000)]

    receivers = [in_another_thread(receive, *each) for each in zip(subs, got, strict=True)]
    for thread in senders + receivers:
        thread.join(SECONDS)
    for taken in got:
        for me in range(threads):
            mine = [message for message in taken if message.startswith(b"%d " % me)]
            assert mine == [b"%d %d" % (me, number) for number in range(2000)]


def test_what_waits_to_be_handed_out_is_seen_with_whom_it_is_for(context):
    pub, sub = published(context, [b"a"])
    for number in range(100):
        pub.send(b"a%d" % number)
        pub.send(b"b%d" % number)
    [peer] = pub.peers()
    assert peer.messages_sent + peer.outgoing.messages == 100
    stats = pub.stats()
    assert stats.messages_sent + stats.outgoing.messages == 100
    assert [sub.recv() for _ in range(100)] == [b"a%d" % number for number in range(100)]


def test_what_was_sent_last_is_written_before_the_socket_is_closed(context):
    pub, sub = published(context, [b""])
    for number in range(500):
        pub.send(b"%d" % number)
    pub.close(linger=1000 * SECONDS)
    assert [sub.recv() for _ in range(500)] == [b"%d" % number for number in range(500)]


def test_a_sender_that_never_waits_does_not_keep_the_last_messages_to_itself(context):
    """The helper thread hands out and writes what is left."""
    pub, sub = published(context, [b""], xpub_nodrop=1)
    for number in range(3507):
        pub.send(b"%d" % number)
        if number % 500 == 0:
            for n in range(max(0, number - 499), number + 1):
                assert sub.recv() == b"%d" % n
    assert [sub.recv() for _ in range(6)][-1] == b"3506"


def test_many_subscriptions_go_together_and_all_arrive(context, monkeypatch):
    """The first few at once, the rest when there are enough, or when the program waits."""
    writes = []
    write = Stream.write
    monkeypatch.setattr(Stream, "write", lambda stream: (writes.append(1), write(stream))[1])
    context.rcvtimeo = 1000 * SECONDS
    xpub, sub = context.socket(zmq.XPUB), context.socket(zmq.SUB)
    xpub.bind("tcp://127.0.0.1:*")
    sub.connect(xpub.last_endpoint.decode())
    sub.wait_connected(SECONDS)
    xpub.wait_connected(SECONDS)
    writes.clear()
    topics = [b"%05d" % number for number in range(2000)]
    for topic in topics:
        sub.subscribe(topic)
    assert [xpub.recv() for _ in topics] == [b"\x01" + topic for topic in topics]
    for topic in topics:
        sub.unsubscribe(topic)
    assert [xpub.recv() for _ in topics] == [b"\x00" + topic for topic in topics]
    assert len(writes) < len(topics)


def test_a_subscription_over_inproc_is_known_when_the_call_returns(context):
    pub, sub = context.socket(zmq.PUB), context.socket(zmq.SUB)
    pub.bind("inproc://name")
    sub.connect("inproc://name")
    for number in range(20):
        sub.subscribe(b"%d " % number)
        pub.send(b"%d x" % number)
        assert sub.recv(zmq.DONTWAIT) == b"%d x" % number
