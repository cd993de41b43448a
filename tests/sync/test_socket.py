"""Blocking sockets: lanes without the lock, waits, several threads on one socket."""

import errno
import gc
import sys
import threading
import time
import warnings

import pytest

import zerohop as zmq
from tests.kit.net import free_port
from zerohop.io.stream import Stream

SOON = 8.0  # seconds: what happens at once happens within this on a busy machine


def pair_of(context, sender, receiver, transport="tcp"):
    """A sender connected to a bound receiver, both sure of it."""
    ends = context.socket(receiver), context.socket(sender)
    ends[0].bind(f"tcp://127.0.0.1:{free_port()}" if transport == "tcp" else "inproc://x")
    ends[1].connect(ends[0].last_endpoint.decode())
    ends[1].wait_connected(SOON)
    ends[0].wait_connected(SOON)
    return ends[1], ends[0]


def in_thread(call, *args):
    """Run a call in a thread; return a function that waits for what it returns or raises."""
    outcome = []

    def run():
        try:
            outcome.append((call(*args), None))
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
            outcome.append((None, error))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()

    def join():
        thread.join(SOON)
        assert not thread.is_alive(), "the call did not return"
        value, error = outcome[0]
        if error is not None:
            raise error
        return value

    return join


def until(condition):
    deadline = time.monotonic() + SOON
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


class Holding:
    """The context's lock, held by another thread."""

    def __init__(self, context):
        self._lock = context._io.lock
        self._go, self._held = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._hold)

    def _hold(self):
        with self._lock:
            self._held.set()
            self._go.wait(SOON)

    def __enter__(self):
        self._thread.start()
        assert self._held.wait(SOON)

    def __exit__(self, *_):
        self._go.set()
        self._thread.join()


def calls_during(function, times):
    """How many calls, of Python and C, ``function`` makes in that many runs, itself included."""
    count = 0

    def profile(frame, event, arg):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(profile)
    try:
        for _ in range(times):
            function()
    finally:
        sys.setprofile(None)
    return count


# -- lanes


def test_a_send_that_nobody_sleeps_on_needs_no_lock(context):
    push = context.socket(zmq.PUSH)
    push.connect(f"tcp://127.0.0.1:{free_port()}")  # nobody there: messages queue
    push.send(b"first")
    with Holding(context):
        for _ in range(100):
            push.send(b"more")
    assert push.stats().outgoing.messages == 101


def test_a_receive_of_what_is_there_needs_no_lock(context):
    push, pull = pair_of(context, zmq.PUSH, zmq.PULL)
    for n in range(100):
        push.send(b"%d" % n)
    assert pull.recv() == b"0"
    until(lambda: pull.stats().incoming.messages == 99)
    with Holding(context):
        assert [pull.recv() for _ in range(98)] == [b"%d" % n for n in range(1, 99)]
        assert pull.recv_multipart() == [b"99"]


def test_sending_on_the_lane_makes_at_most_four_calls(context):
    push = context.socket(zmq.PUSH)
    push.connect(f"tcp://127.0.0.1:{free_port()}")
    push.send(b"x")
    assert calls_during(lambda: push.send(b"x"), 100) <= 100 * (4 + 1)


def test_receiving_from_the_lane_makes_at_most_two_calls(context):
    push, pull = pair_of(context, zmq.PUSH, zmq.PULL)
    for _ in range(101):
        push.send(b"x")
    pull.recv()
    until(lambda: pull.stats().incoming.messages == 100)
    assert calls_during(pull.recv, 90) <= 90 * 2 + 5


def test_the_first_messages_are_written_at_once_and_the_others_together(context, monkeypatch):
    push, pull = pair_of(context, zmq.PUSH, zmq.PULL)
    writes = []
    write = Stream.write
    monkeypatch.setattr(Stream, "write", lambda stream: (writes.append(1), write(stream)))
    for n in range(3):
        push.send(b"%d" % n)
        assert len(writes) == n + 1
    for n in range(3, 3000):
        push.send(b"%d" % n)
    assert len(writes) < 300
    assert [pull.recv() for _ in range(3000)] == [b"%d" % n for n in range(3000)]


def test_what_was_sent_leaves_though_the_program_never_calls_again(context):
    push, pull = pair_of(context, zmq.PUSH, zmq.PULL)
    for n in range(50):
        push.send(b"%d" % n)
    end = time.monotonic() + 0.1
    while time.monotonic() < end:  # computing
        pass
    assert pull.stats().incoming.messages == 50


@pytest.mark.parametrize("size", [0, 1, 300, 10_000, 300_000])
def test_order_and_content_survive_a_full_pipe_and_a_full_kernel(context, size):
    push, pull = pair_of(context, zmq.PUSH, zmq.PULL)
    count = 3000 if size < 1000 else 60
    messages = [b"%06d" % n + bytes(size) for n in range(count)]
    join = in_thread(lambda: [push.send(message) for message in messages])
    assert [pull.recv() for _ in messages] == messages
    join()


def test_a_part_wise_receive_gets_the_parts_of_a_message_that_came_by_the_lane(context):
    push, pull = pair_of(context, zmq.PUSH, zmq.PULL)
    push.send_multipart([b"a", b"b", b"c"])
    push.send(b"d")
    assert (pull.recv(), pull.rcvmore) == (b"a", 1)
    assert (pull.recv(copy=False).bytes, pull.rcvmore) == (b"b", 1)
    frame = pull.recv(copy=False)
    assert (frame.bytes, frame.more) == (b"c", False)
    assert (pull.recv(), pull.rcvmore) == (b"d", 0)


def test_the_rest_of_a_message_is_a_message(context):
    push, pull = pair_of(context, zmq.PUSH, zmq.PULL)
    push.send(b"a", zmq.SNDMORE)
    push.send_multipart([b"b", b"c"], zmq.SNDMORE)
    push.send(b"d")
    push.send(b"e")
    assert pull.recv() == b"a"
    assert pull.recv_multipart() == [b"b", b"c", b"d"]
    assert pull.recv_multipart() == [b"e"]


def test_a_frame_says_whether_there_are_more(context):
    push, pull = pair_of(context, zmq.PUSH, zmq.PULL)
    push.send_multipart([b"a", b"b"])
    first, second = pull.recv(copy=False), pull.recv(copy=False)
    assert (first.more, second.more) == (True, False)


def test_a_lent_buffer_is_sent_and_then_the_tracker_is_done(context):
    push, pull = pair_of(context, zmq.PUSH, zmq.PULL)
    buffer = bytearray(b"z" * 100_000)
    tracker = push.send(buffer, copy=False, track=True)
    assert pull.recv() == buffer
    tracker.wait(SOON)
    assert push.send(b"copied", copy=True) is None


def test_receiving_into_a_buffer(context):
    push, pull = pair_of(context, zmq.PUSH, zmq.PULL)
    buffer = bytearray(4)
    for size in (3, 6):
        push.send(b"abcdef"[:size])
        assert pull.recv_into(buffer) == size
    assert buffer == b"abcd"
    push.send(b"xy")
    with pytest.raises(BufferError):
        pull.recv_into(b"read-only")
    assert pull.recv_into(buffer, nbytes=1) == 2
    assert buffer == b"xbcd"


# -- time limits


@pytest.mark.parametrize("limit", ["option", "argument"])
def test_a_receive_gives_up_in_time(context, limit):
    pull = context.socket(zmq.PULL)
    pull.bind(f"tcp://127.0.0.1:{free_port()}")
    timeout = 0.03 if limit == "argument" else None
    pull.rcvtimeo = 30 if limit == "option" else -1
    start = time.monotonic()
    with pytest.raises(zmq.Again):
        pull.recv(timeout=timeout)
    assert 0.03 <= time.monotonic() - start < SOON


@pytest.mark.parametrize("limit", ["option", "argument"])
def test_a_send_gives_up_in_time_and_nothing_was_sent(context, limit):
    push = context.socket(zmq.PUSH)
    timeout = 0.03 if limit == "argument" else None
    push.sndtimeo = 30 if limit == "option" else -1
    with pytest.raises(zmq.Again):
        push.send(b"x", timeout=timeout)
    pull = context.socket(zmq.PULL)
    push.bind("inproc://late")
    pull.connect("inproc://late")
    push.send(b"y")
    assert pull.recv() == b"y"


def test_no_time_at_all_still_finds_what_has_arrived(context):
    push, pull = pair_of(context, zmq.PUSH, zmq.PULL)
    push.send(b"x")
    push.send(b"y")
    until(lambda: pull.events & zmq.POLLIN and pull.stats().incoming.messages == 2)
    assert pull.recv(zmq.DONTWAIT) == b"x"
    assert pull.recv(timeout=0) == b"y"
    with pytest.raises(zmq.Again):
        pull.recv(timeout=0)


def test_a_program_that_only_tries_gets_its_messages(context):
    push, pull = pair_of(context, zmq.PUSH, zmq.PULL)
    got = []
    deadline = time.monotonic() + SOON
    for n in range(200):
        push.send(b"%d" % n, zmq.DONTWAIT)
    while len(got) < 200 and time.monotonic() < deadline:
        try:
            got.append(pull.recv(zmq.DONTWAIT))
        except zmq.Again:
            continue
    assert got == [b"%d" % n for n in range(200)]


def test_waiting_for_a_peer_that_never_comes_says_where_and_why(context):
    push = context.socket(zmq.PUSH)
    endpoint = f"tcp://127.0.0.1:{free_port()}"
    push.connect(endpoint)
    with pytest.raises(zmq.Again) as late:
        push.wait_connected(0.2)
    assert endpoint in late.value.__notes__[0]
    with pytest.raises(zmq.Again) as alone:
        context.socket(zmq.PUB).wait_for_subscribers("news", 2, timeout=0.01)
    assert "0 of 2" in alone.value.__notes__[0]


# -- several threads


@pytest.mark.parametrize("transport", ["tcp", "inproc"])
def test_every_message_reaches_exactly_one_of_the_threads_that_receive(context, transport):
    push, pull = pair_of(context, zmq.PUSH, zmq.PULL, transport)
    senders, receivers, each = 4, 8, 500
    total = senders * each

    def send(base):
        for n in range(each):
            push.send(b"%d" % (base + n))

    def receive():
        got = []
        while True:
            message = pull.recv()
            if message == b"end":
                return got
            got.append(int(message))

    receiving = [in_thread(receive) for _ in range(receivers)]
    for join in [in_thread(send, base * each) for base in range(senders)]:
        join()
    for _ in receiving:
        push.send(b"end")
    parts = [join() for join in receiving]
    assert sorted(n for part in parts for n in part) == list(range(total))
    for part in parts:
        for base in range(senders):
            own = [n for n in part if n // each == base]
            assert own == sorted(own)


def test_many_sockets_in_many_threads(context):
    endpoint = f"tcp://127.0.0.1:{free_port()}"
    rep = context.socket(zmq.ROUTER)
    rep.bind(endpoint)
    clients = 10

    def serve():
        for _ in range(clients * 50):
            sender, empty, body = rep.recv_multipart()
            rep.send_multipart([sender, empty, body])

    def ask(name):
        with context.socket(zmq.REQ) as req:
            req.connect(endpoint)
            for n in range(50):
                req.send(b"%d %d" % (name, n))
                assert req.recv() == b"%d %d" % (name, n)

    serving = in_thread(serve)
    for join in [in_thread(ask, name) for name in range(clients)]:
        join()
    serving()


def test_a_thread_that_keeps_the_interpreter_busy_stops_nobody(context):
    push, pull = pair_of(context, zmq.PUSH, zmq.PULL)
    stop = threading.Event()

    def hog():
        while not stop.is_set():
            sum(range(1000))

    hogs = [in_thread(hog) for _ in range(2)]
    try:
        for n in range(20):
            push.send(b"%d" % n)
            assert pull.recv() == b"%d" % n
    finally:
        stop.set()
        for join in hogs:
            join()


@pytest.mark.parametrize("number", [errno.ENOTSOCK, zmq.ETERM], ids=["close", "term"])
@pytest.mark.parametrize("verb", ["recv", "recv_multipart", "send", "poll"])
def test_the_end_of_a_socket_wakes_every_thread_that_waits_in_it(context, verb, number):
    own = zmq.Context()
    pair = own.socket(zmq.PAIR)
    pair.linger = 0
    pair.bind(f"tcp://127.0.0.1:{free_port()}")
    call = (lambda: pair.send(b"x")) if verb == "send" else getattr(pair, verb)
    joins = [in_thread(call) for _ in range(3)]
    until(lambda: len(pair._front.waiters.waiting) == 3)
    if number == zmq.ETERM:
        ending = in_thread(own.term)
    else:
        pair.close()
    for join in joins:
        with pytest.raises(zmq.ZMQError) as ended:
            join()
        assert ended.value.errno == number
    pair.close()
    if number == zmq.ETERM:
        ending()
    own.term()


def test_iteration_ends_with_the_socket(context):
    push, pull = pair_of(context, zmq.PUSH, zmq.PULL)
    push.send(b"a")
    push.send_multipart([b"b", b"c"])
    seen = []

    def iterate():
        for message in pull:
            seen.append(message)  # noqa: PERF402 - seen from outside while it grows

    join = in_thread(iterate)
    until(lambda: len(seen) == 2)
    pull.close()
    join()
    assert seen == [b"a", [b"b", b"c"]]


def test_iteration_passes_on_that_nothing_came_in_time(context):
    pull = context.socket(zmq.PULL)
    pull.bind("inproc://silent")
    pull.rcvtimeo = 1
    with pytest.raises(zmq.Again):
        next(iter(pull))


def test_a_message_that_arrives_as_a_waiting_thread_gives_up_is_kept(context):
    push, pull = pair_of(context, zmq.PUSH, zmq.PULL)
    sent = got = 0
    for n in range(60):
        join = in_thread(lambda: push.send(b"x"))
        sent += 1
        try:
            pull.recv(timeout=0.0005 * (n % 4))
            got += 1
        except zmq.Again:
            pass
        join()
    for _ in range(sent - got):
        assert pull.recv() == b"x"
    assert pull.poll(20) == 0


# -- the garbage collector


def test_a_socket_that_is_dropped_is_closed_with_a_warning():
    own = zmq.Context()
    push, pull = pair_of(own, zmq.PUSH, zmq.PULL)
    push.send(b"last words")
    sockets = [push]
    del push
    with pytest.warns(ResourceWarning, match="Unclosed socket"):
        sockets.clear()
    assert pull.recv() == b"last words"
    until(lambda: not pull.peers())
    own.destroy()


def test_a_context_that_is_dropped_leaves_nothing_behind():
    own = zmq.Context()
    push = own.socket(zmq.PUSH)
    push.bind(f"tcp://127.0.0.1:{free_port()}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # one that is caught keeps its source
        del push, own
        gc.collect()
        until(lambda: not [t for t in threading.enumerate() if t.name == "zerohop"])


# -- everything else that pyzmq's calls take and give


def test_texts_and_values_part_by_part_and_whole(context):
    push, pull = pair_of(context, zmq.PUSH, zmq.PULL)
    push.send_string("a", zmq.SNDMORE)
    push.send_json({"b": [1, None]}, zmq.SNDMORE)
    push.send_pyobj(("c", 2.5))
    assert pull.recv_string() == "a"
    assert pull.recv_json() == {"b": [1, None]}
    assert pull.recv_pyobj() == ("c", 2.5)
    push.send_serialized(["x", "y"], lambda parts: [part.encode() for part in parts])
    assert pull.recv_serialized(lambda parts: b"-".join(parts)) == b"x-y"


def test_a_text_may_come_by_the_lane_or_be_waited_for(context):
    push, pull = pair_of(context, zmq.PUSH, zmq.PULL)
    for _ in range(2):
        sending = in_thread(lambda: push.send_string("text"))
        assert pull.recv_string() == "text"
        sending()
    push.send_multipart([b"one", b"two"])
    until(lambda: pull.stats().incoming.messages)
    assert [pull.recv_string(), pull.recv_string()] == ["one", "two"]


@pytest.mark.parametrize("argument", [{"routing_id": 1}, {"group": "g"}])
def test_what_only_draft_types_take_is_refused_and_nothing_is_sent(context, argument):
    push, pull = pair_of(context, zmq.PUSH, zmq.PULL)
    with pytest.raises(RuntimeError, match="draft"):
        push.send(b"x", **argument)
    with pytest.raises(RuntimeError, match="draft"):
        push.send_multipart([b"x"], **argument)
    assert pull.poll(10) == 0


def test_frames_of_a_whole_message(context):
    push, pull = pair_of(context, zmq.PUSH, zmq.PULL)
    push.send_multipart([b"a", zmq.Frame(b"b")])
    frames = pull.recv_multipart(copy=False)
    assert [(frame.bytes, frame.more) for frame in frames] == [(b"a", True), (b"b", False)]


def test_over_inproc_a_lent_buffer_arrives_as_octets(context):
    push, pull = pair_of(context, zmq.PUSH, zmq.PULL, "inproc")
    buffer = bytearray(b"z" * 70_000)
    tracker = push.send(buffer, copy=False, track=True)
    assert not tracker.done
    assert pull.recv() == bytes(buffer)
    tracker.wait(SOON)


def test_a_shadow_is_the_same_socket(context):
    push, pull = pair_of(context, zmq.PUSH, zmq.PULL)
    shadow = zmq.Socket.shadow(pull.underlying)
    push.send(b"a")
    push.send(b"b")
    assert {shadow.recv(), pull.recv()} == {b"a", b"b"}
    waiting = in_thread(shadow.recv)
    until(lambda: shadow._front.waiters.waiting)
    pull.close()
    assert shadow.closed
    with pytest.raises(zmq.ZMQError):
        waiting()


def test_who_polls_a_shadow_is_woken_by_what_is_sent_and_received_through_another(context):
    """Of a REP, where a request is received only after the reply to the one before."""
    dealer, rep = pair_of(context, zmq.DEALER, zmq.REP)
    shadow = zmq.Socket.shadow(rep)
    for polled, other in ((shadow, rep), (rep, shadow)):
        asked = in_thread(polled.poll, None, zmq.POLLOUT)
        until(lambda polled=polled: polled._front.waiters.waiting)
        dealer.send_multipart([b"", b"first"])
        dealer.send_multipart([b"", b"second"])
        assert other.recv() == b"first"
        assert asked() == zmq.POLLOUT
        until(lambda: rep.stats().incoming.messages == 1)
        asked = in_thread(polled.poll)
        until(lambda polled=polled: polled._front.waiters.waiting)
        other.send(b"reply")
        assert asked() == zmq.POLLIN
        assert polled.recv() == b"second"
        polled.send(b"reply")
        assert [dealer.recv_multipart()[1] for _ in range(2)] == [b"reply"] * 2


def test_a_blocking_shadow_of_an_asyncio_socket(context):
    """Jupyter sends so: from the loop's thread, through a shadow, without waiting."""
    import asyncio

    import zerohop.asyncio

    async def body():
        own = zerohop.asyncio.Context()
        a, b = own.socket(zmq.PAIR), own.socket(zmq.PAIR)
        b.bind("tcp://127.0.0.1:*")
        a.connect(b.last_endpoint.decode())
        await a.wait_connected(SOON)
        shadow = zmq.Socket.shadow(a.underlying)
        for n in range(100):
            shadow.send(b"%d" % n)
        assert [await b.recv() for _ in range(100)] == [b"%d" % n for n in range(100)]
        receiving = asyncio.get_running_loop().run_in_executor(None, shadow.recv)
        await b.send(b"back")
        assert await receiving == b"back"
        own.destroy(linger=0)

    asyncio.run(body())
