"""Stream: octets of one connection, however few of them the system takes or gives at a time."""

import contextlib
import errno
import socket as plain

import pytest

import zerohop as zmq
from tests.io.hand import Peer, endpoint_of, server
from tests.kit.raw import message
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


def test_what_is_read_at_a_time_grows_with_a_large_message_and_shrinks_again(join, world):
    pull, peer = join(zmq.PULL, b"PUSH")
    stream = stream_of(pull)
    body = bytes(3_000_000)
    octets = memoryview(message(body) + message(b"small"))
    largest = 0
    while octets:
        octets = octets[peer.raw.send(octets[:200_000]) :]
        world.loop.turn(0.001)
        world.loop.turn(0.001)
        largest = max(largest, stream._read_size)
    world.loop.until(lambda: pull.stats().incoming.messages == 2)
    assert largest > READ_SIZE
    assert stream._read_size == READ_SIZE
    assert pull.recv() == body


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
