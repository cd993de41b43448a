"""Stream: octets of one connection, however few of them the system takes or gives at a time."""

import contextlib
import errno
import socket as plain

import pytest

import zerohop as zmq
from tests.io.hand import Peer, endpoint_of, server
from tests.kit.raw import message
from zerohop.io import stream as stream_module
from zerohop.io.stream import READ_SIZE


@pytest.fixture(params=[plain.AF_INET, plain.AF_UNIX], ids=["tcp", "ipc"])
def listening(request):
    made = server(request.param)
    yield made
    made.close()


@pytest.fixture
def join(world, listening):
    """Makes a socket that is connected to a peer of octets."""
    made = Join(world, listening)
    yield made
    for peer in made.peers:
        peer.raw.close()


class Join:
    def __init__(self, world, listening):
        self.world, self.listening, self.peers = world, listening, []

    def __call__(self, kind, other, **options):
        sock = self.world.socket(kind, linger=0, **options)
        sock.connect(endpoint_of(self.listening))
        peer = self.next_peer(sock)
        peer.handshake(other)
        return sock, peer

    def next_peer(self, sock):
        """The other end of the socket's next connection."""
        self.peers.append(Peer(self.world, sock, self.listening))
        return self.peers[-1]


class Interrupted:
    """An OS socket at whose next call, of these, a signal handler runs first, or right after."""

    def __init__(self, sock, handler, *, after=False):
        self._sock, self._handler, self._after = sock, handler, after

    def __getattr__(self, name):
        found = getattr(self._sock, name)
        if self._handler is None or name not in ("recv", "send", "sendmsg"):
            return found

        def call(*args):
            handler, self._handler = self._handler, None
            if not self._after:
                handler()
            result = found(*args)
            if self._after:
                handler()
            return result

        return call


class Stingy:
    """An OS socket that takes and gives only so many octets at a time, and now and then none."""

    def __init__(self, sock, size, *, none_every=0):
        self._sock, self._size, self._every, self._count = sock, size, none_every, 0

    def __getattr__(self, name):
        return getattr(self._sock, name)

    def _refuse_now_and_then(self):
        self._count += 1
        if self._every and self._count % self._every == 0:
            raise BlockingIOError(errno.EAGAIN, "not now")

    def send(self, data):
        self._refuse_now_and_then()
        return self._sock.send(bytes(data[: self._size]))

    def sendmsg(self, buffers):
        self._refuse_now_and_then()
        return self._sock.send(b"".join(buffers)[: self._size])

    def recv(self, size):
        self._refuse_now_and_then()
        return self._sock.recv(min(size, self._size))

    def recv_into(self, view):
        self._refuse_now_and_then()
        return self._sock.recv_into(view, min(len(view), self._size))

    def recvmsg_into(self, buffers):
        self._refuse_now_and_then()
        left, fitting = self._size, []
        for buffer in buffers:
            fitting.append(memoryview(buffer)[:left])
            left -= len(fitting[-1])
        return self._sock.recvmsg_into(fitting)


def stream_of(sock):
    (stream,) = sock._driver._streams.values()
    return stream


def make_stingy(sock, size, **options):
    stream = stream_of(sock)
    stream._sock = Stingy(stream._sock, size, **options)


MESSAGES = [b"", b"1", bytes(300), [b"2", bytes(70_000), b""], b"3" * 20_000, [b"4", b"5"]]
WIRE = b"".join(message(*(m if isinstance(m, list) else [m])) for m in MESSAGES)


# -- writing


@pytest.mark.parametrize("size", [1000, 7777, 65536, 10_000_000])
@pytest.mark.parametrize("none_every", [0, 2, 3])
def test_a_system_that_takes_little_at_a_time_gets_every_octet_in_order(join, size, none_every):
    push, peer = join(zmq.PUSH, b"PULL")
    make_stingy(push, size, none_every=none_every)
    for each in MESSAGES:
        push.send_multipart(each if isinstance(each, list) else [each])
    peer.sees(WIRE)


@pytest.mark.parametrize("size", range(1, 20))
def test_a_short_message_may_leave_octet_by_octet(join, size):
    push, peer = join(zmq.PUSH, b"PULL")
    make_stingy(push, size)
    for each in (b"", b"1", b"22"):
        push.send(each)
    push.send_multipart([b"333", b"4"])
    peer.sees(message(b"") + message(b"1") + message(b"22") + message(b"333", b"4"))


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("writing", [False, True], ids=["reading", "writing"])
def test_what_a_signal_handler_sends_in_the_middle_of_a_move_is_written_after_it(
    join, world, writing, after
):
    dealer, peer = join(zmq.DEALER, b"ROUTER")
    stream = stream_of(dealer)
    stream._sock = Interrupted(stream._sock, lambda: dealer.send(b"handler"), after=after)
    if writing:
        dealer.send(b"1")
        peer.sees(message(b"1") + message(b"handler"))
    else:
        peer.raw.sendall(message(b"1"))
        world.loop.settle()
        peer.sees(message(b"handler"))


@pytest.mark.parametrize("after", [False, True])
def test_a_socket_that_a_signal_handler_closes_in_the_middle_of_a_move_leaves_after_it(
    join, world, after
):
    dealer, peer = join(zmq.DEALER, b"ROUTER")
    dealer.linger = -1
    stream = stream_of(dealer)
    stream._sock = Interrupted(stream._sock, dealer.close, after=after)
    dealer.send(b"1")
    world.loop.until(lambda: not peer.pull())
    assert peer.came == message(b"1")


def test_a_large_message_goes_out_through_a_small_buffer(join):
    push, peer = join(zmq.PUSH, b"PULL", sndbuf=4096)
    body = bytes(range(256)) * 2000
    push.send(body)
    peer.sees(message(body))


def test_a_connection_that_takes_nothing_is_watched_and_one_that_takes_all_is_not(join, world):
    push, peer = join(zmq.PUSH, b"PULL")
    fd = stream_of(push)._fd
    assert fd not in world.loop.writers
    push.send(bytes(30_000_000))
    world.loop.settle(3)
    assert fd in world.loop.writers
    world.loop.until(lambda: peer.pull() and fd not in world.loop.writers)


def test_many_messages_to_a_quick_reader_leave_others_their_turns(join, world):
    push, peer = join(zmq.PUSH, b"PULL", sndhwm=0)
    for _ in range(20):
        push._core.send_lane.messages.extend([bytes(60_000)] * 10)
    push._driver.lock.acquire()
    push._core.links.to_flush.append(next(iter(push._core.links.peers)))
    push._driver.pump()
    push._driver.lock.release()
    written = [link.messages_out for link in push._core.links.open_links]
    assert written[0] < 200
    world.loop.until(lambda: peer.pull() and len(peer.came) >= 200 * 60_000)


@pytest.mark.parametrize("end", ["reset", "close"])
def test_a_connection_that_ends_while_it_is_full_leaves_the_loop(join, world, end):
    push, peer = join(zmq.PUSH, b"PULL", sndbuf=4096, reconnect_ivl=-1)
    fd = stream_of(push)._fd
    for _ in range(20):
        push.send(bytes(1_000_000))
    world.loop.settle(3)
    peer.reset() if end == "reset" else peer.raw.close()
    world.loop.until(lambda: not push._driver._streams)
    assert fd not in world.loop.readers
    assert fd not in world.loop.writers


def test_a_full_connection_that_is_given_up_when_it_is_writable_again_leaves_the_loop(join, world):
    """Its last write succeeds, and the watch for room must go all the same."""
    push, peer = join(zmq.PUSH, b"PULL", sndbuf=4096)
    stream = stream_of(push)
    for _ in range(5):
        push.send(bytes(1_000_000))
    world.loop.settle(3)
    assert stream._fd in world.loop.writers
    stream._sock = Swallowing(stream._sock)
    push.close(linger=0)
    assert not world.loop.writers
    assert peer.raw.fileno() > 0


class Swallowing(Stingy):
    """An OS socket that takes everything."""

    def __init__(self, sock):
        super().__init__(sock, 0)

    def send(self, data):
        return len(data)

    def sendmsg(self, buffers):
        return sum(map(len, buffers))


# -- reading


@pytest.mark.parametrize("size", [1, 2, 3, 10, 1000, 65536])
@pytest.mark.parametrize("none_every", [0, 2])
def test_a_system_that_gives_little_at_a_time_gives_every_message(join, world, size, none_every):
    pull, peer = join(zmq.PULL, b"PUSH")
    make_stingy(pull, size, none_every=none_every)
    small = size < 1000
    peer.raw.sendall(message(b"1") + message(b"2", b"3") if small else WIRE[:100_000])
    expected = [[b"1"], [b"2", b"3"]] if small else [[b""], [b"1"], [bytes(300)]]
    world.loop.until(lambda: pull.stats().incoming.messages >= len(expected))
    assert [pull.recv_multipart() for _ in expected] == expected


def test_who_has_room_again_reads_what_has_come_without_waiting_for_the_loop(join, world):
    pull, peer = join(zmq.PULL, b"PUSH", rcvhwm=10)
    peer.raw.sendall(message(b"x") * 10)
    world.loop.until(lambda: pull.stats().incoming.messages == 10)
    peer.raw.sendall(message(b"y") * 4)
    for left in (9, 8, 7, 6):
        assert pull.recv() == b"x"
        assert pull.stats().incoming.messages == left
    assert pull.recv() == b"x"
    assert pull.stats().incoming.messages == 5 + 4


def test_who_has_room_again_watches_for_more_only_where_what_has_come_leaves_room(join, world):
    pull, peer = join(zmq.PULL, b"PUSH", rcvhwm=10)
    fd = stream_of(pull)._fd
    peer.raw.sendall(message(b"x") * 10)
    world.loop.until(lambda: pull.stats().incoming.messages == 10)
    assert fd not in world.loop.readers
    watched, add_reader = [], world.loop.add_reader
    world.loop.add_reader = lambda *args: (watched.append(args), add_reader(*args))
    peer.raw.sendall(message(b"y") * 10)
    for _ in range(5):
        pull.recv()
    assert pull.stats().incoming.messages == 5 + 10
    assert not watched, "the pipe is full again"
    for _ in range(10):
        pull.recv()
    assert len(watched) == 1
    assert fd in world.loop.readers


LARGE = bytes(range(256)) * 1200  # 300 KiB


@pytest.mark.parametrize("scatters", [True, False], ids=["scattered", "one by one"])
@pytest.mark.parametrize("size", [77, 900, 30_000, 65_536, 1_000_000])
@pytest.mark.parametrize("none_every", [0, 3])
def test_large_messages_are_read_however_little_comes_at_a_time(
    join, world, monkeypatch, scatters, size, none_every
):
    monkeypatch.setattr(stream_module, "_SCATTERS", scatters)
    pull, peer = join(zmq.PULL, b"PUSH")
    make_stingy(pull, size, none_every=none_every)
    large = LARGE[: 40_000 if size < 100 else None]
    expected = [[b"a"], [large], [b"b", large], [large, b"c"], [b"d"], [large], [large], [b"e"]]
    pass_on(peer, world, pull, b"".join(message(*parts) for parts in expected))
    assert [pull.recv_multipart() for _ in expected] == expected


class Noting(Stingy):
    """An OS socket that notes what it is asked for: octets, and into how large a view."""

    def __init__(self, sock):
        super().__init__(sock, 10_000_000)
        self.asked = []

    def recv(self, size):
        self.asked.append(size)
        return super().recv(size)

    def recvmsg_into(self, buffers):
        self.asked.append([len(buffer) for buffer in buffers])
        return super().recvmsg_into(buffers)


def note_reads(sock):
    stream = stream_of(sock)
    stream._sock = Noting(stream._sock)
    return stream._sock.asked


def pass_on(peer, world, pull, octets):
    """The peer sends these octets, and the socket receives as many."""
    goal = pull.stats().octets_received + len(octets)
    octets = memoryview(octets)
    while octets:
        with contextlib.suppress(BlockingIOError):
            octets = octets[peer.raw.send(octets) :]
        world.loop.turn(0)
    world.loop.until(lambda: pull.stats().octets_received == goal)


def test_a_large_body_is_read_into_its_place_with_what_follows_it(join, world):
    pull, peer = join(zmq.PULL, b"PUSH")
    asked = note_reads(pull)
    pass_on(peer, world, pull, message(LARGE)[:100_000])
    assert asked[0] == READ_SIZE
    del asked[:]
    pass_on(peer, world, pull, message(LARGE)[100_000:] + message(b"small"))
    assert [sizes[1:] for sizes in asked] == [[1024]] * len(asked)
    assert [pull.recv(), pull.recv()] == [LARGE, b"small"]


def test_behind_a_large_message_little_is_read_and_behind_small_ones_much(join, world):
    pull, peer = join(zmq.PULL, b"PUSH")
    pass_on(peer, world, pull, message(LARGE))
    asked = note_reads(pull)
    pass_on(peer, world, pull, message(b"id", LARGE))
    assert asked[:2] == [1024, [13 + len(LARGE) - 1024, 1024]], "a place for all that is missing"
    del asked[:]
    pass_on(peer, world, pull, message(bytes(100)))
    pass_on(peer, world, pull, message(bytes(1000)) * 50)
    pass_on(peer, world, pull, message(bytes(100)))
    assert asked[:2] == [1024, 1024]
    assert asked[2:] == [READ_SIZE] * len(asked[2:])


def test_a_stream_is_read_in_larger_pieces_and_an_answer_is_not(join, world):
    pull, peer = join(zmq.PULL, b"PUSH", rcvhwm=0)
    asked = note_reads(pull)
    pass_on(peer, world, pull, message(bytes(1000)) * 2000)
    assert asked[0] == READ_SIZE
    assert max(asked) == 4 * READ_SIZE
    for _ in range(2):
        pass_on(peer, world, pull, message(b"answer"))
    assert asked[-1] == READ_SIZE


def test_a_reader_that_lags_behind_is_given_no_larger_pieces(join, world):
    pull, peer = join(zmq.PULL, b"PUSH", rcvhwm=30)
    asked = note_reads(pull)
    octets = memoryview(message(bytes(1000)) * 3000)
    while octets or pull._core.ready() & zmq.POLLIN:
        if octets:
            with contextlib.suppress(BlockingIOError):
                octets = octets[peer.raw.send(octets) :]
        world.loop.turn(0)
        while pull._core.ready() & zmq.POLLIN:
            pull.recv()
    assert max(asked) == READ_SIZE


def test_a_peer_that_announces_much_and_leaves_costs_nothing(join, world):
    pull, peer = join(zmq.PULL, b"PUSH")
    peer.raw.sendall(b"\2" + (2**62).to_bytes(8) + bytes(2000))
    world.loop.until(lambda: stream_of(pull)._view is not None)
    assert len(stream_of(pull)._view) <= READ_SIZE
    peer.raw.close()
    world.loop.until(lambda: not pull._driver._streams)
    assert pull.stats().incoming.messages == 0


def test_what_is_received_of_a_large_message_when_writing_fails_is_gathered(join, world):
    """The rest is read another way then: the connection is about to end."""
    pair, peer = join(zmq.PAIR, b"PAIR")
    pass_on(peer, world, pair, message(LARGE)[:100_000])
    assert stream_of(pair)._view is not None
    stream = stream_of(pair)

    class Broken(Stingy):
        def send(self, data):
            raise OSError(errno.EPIPE, "Broken pipe")

    stream._sock = Broken(stream._sock, 10_000_000)
    peer.raw.sendall(message(LARGE)[100_000:])
    peer.raw.close()
    pair.send(b"too late")
    world.loop.settle(5)
    assert pair.recv() == LARGE


def test_a_slow_reader_holds_no_more_than_its_mark_and_one_read(join, world):
    pull, peer = join(zmq.PULL, b"PUSH", rcvhwm=10, rcvbuf=4096)
    octets = message(bytes(1000)) * 1000
    sent = 0
    world.loop.settle(3)
    for _ in range(200):
        with contextlib.suppress(BlockingIOError):
            sent += peer.raw.send(octets)
        world.loop.turn(0)
    stats = pull.stats().incoming
    assert 10 <= stats.messages <= 10 + READ_SIZE // 1000
    assert stream_of(pull)._fd not in world.loop.readers
    assert sent < 20_000_000


def test_a_slow_reader_that_reads_again_goes_on(join, world):
    pull, peer = join(zmq.PULL, b"PUSH", rcvhwm=10)
    octets = memoryview(b"".join(message(b"%d" % n, bytes(500)) for n in range(5000)))
    got = []
    while len(got) < 5000:
        if octets:
            with contextlib.suppress(BlockingIOError):
                octets = octets[peer.raw.send(octets) :]
        world.loop.turn(0)
        while pull._core.ready() & zmq.POLLIN:
            got.append(int(pull.recv_multipart()[0]))
    assert got == list(range(5000))


# -- the end of a connection


def test_what_the_peer_sent_before_it_closed_is_received_although_writing_fails(join, world):
    """libzmq: an engine goes on reading when it cannot write any more."""
    pair, peer = join(zmq.PAIR, b"PAIR")
    peer.raw.sendall(message(b"the last words") + message(b"really"))
    peer.raw.close()
    for _ in range(50):  # tcp: the first write only provokes the reset
        pair.send(b"too late")
        if not pair._driver._streams:
            break
    world.loop.settle(5)
    assert [pair.recv(), pair.recv()] == [b"the last words", b"really"]


def test_messages_that_were_not_wholly_written_go_to_the_next_connection(join, world):
    push, peer = join(zmq.PUSH, b"PULL", reconnect_ivl=1)
    for n in range(20):
        push.send_multipart([b"%d" % n, bytes(SIZE)])
    world.loop.until(lambda: peer.pull() and 2 in numbers_in(peer.came))
    peer.pull()
    got = numbers_in(peer.came)
    assert 0 < len(got) < 20
    peer.reset()
    second = join.next_peer(push)
    second.handshake(b"PULL")
    world.loop.until(lambda: second.pull() and 19 in numbers_in(second.came))
    rest = numbers_in(second.came)
    assert got == list(range(len(got)))
    assert len(got) <= rest[0]  # what the system had taken is lost with it
    assert rest == list(range(rest[0], 20))


SIZE = 1_000_000


def numbers_in(octets):
    """The numbers of the two-part messages that are wholly there."""
    numbers, at = [], 0
    while at + 11 + SIZE <= len(octets):
        end = at + 2 + octets[at + 1]
        number, at = int(octets[at + 2 : end]), end + 9 + SIZE
        if at <= len(octets):
            numbers.append(number)
    return numbers


def test_an_error_of_the_system_is_what_the_endpoint_tells(join, world):
    push, peer = join(zmq.PUSH, b"PULL", reconnect_ivl=-1)
    stream = stream_of(push)

    class Broken(Stingy):
        def send(self, data):
            raise OSError(errno.EHOSTUNREACH, "No route to host")

    stream._sock = Broken(stream._sock, 1)
    push.send(b"x")
    world.loop.until(lambda: not push._driver._streams)
    (dialer,) = push._core.links.dialers
    assert dialer.last_error.errno == errno.EHOSTUNREACH
    world.loop.until(lambda: not peer.pull())
