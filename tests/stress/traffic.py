"""Messages that say who sent them and when, and all the ways to send and to receive them.

A message is ``b"sender number ..."``, with octets behind it that make it long or short.
"""

from random import Random

import zerohop as zmq

SIZES = (0, 0, 0, 1, 60, 200, 300, 2_000, 40_000, 200_000)
END = b"end"


def messages(random, sender, count, parts=1):
    """The messages of one sender, in order."""
    for number in range(count):
        first = b"%d %d " % (sender, number) + bytes(random.choice(SIZES))
        yield [first, *[b"part"] * (parts - 1)]


# Ways to send a whole message. Each returns when it is sent.


def wait(socket, message):
    if len(message) == 1:
        socket.send(message[0])
    else:
        socket.send_multipart(message)


def lend(socket, message):
    socket.send_multipart(message, copy=False)


def try_and_poll(socket, message):
    while True:
        try:
            socket.send_multipart(message, zmq.DONTWAIT)
        except zmq.Again:
            assert socket.poll(socket.sndtimeo, zmq.POLLOUT), "no room came"
        else:
            return


def try_for_a_moment(socket, message):
    for _ in range(2 * socket.sndtimeo):
        try:
            socket.send_multipart(message, timeout=0.001)
        except zmq.Again:
            continue
        return
    raise AssertionError("no room came")


SENDS = (wait, wait, lend, try_and_poll, try_for_a_moment)


# Ways to receive a whole message.


def await_one(socket):
    return socket.recv_multipart()


def await_frames(socket):
    return [frame.bytes for frame in socket.recv_multipart(copy=False)]


def poll_and_try(socket):
    while True:
        assert socket.poll(socket.rcvtimeo), "nothing came"
        try:
            return socket.recv_multipart(zmq.DONTWAIT)
        except zmq.Again:  # somebody else was quicker
            continue


def await_for_a_moment(socket):
    for _ in range(2 * socket.rcvtimeo):
        try:
            return socket.recv_multipart(timeout=0.001)
        except zmq.Again:
            continue
    raise AssertionError("nothing came")


def iterate(socket):
    message = next(iter(socket))
    return message if isinstance(message, list) else [message]


RECEIVES = (await_one, await_one, await_frames, poll_and_try, await_for_a_moment, iterate)


def send_all(socket, seed, sender, count, parts=1):
    """Send ``count`` messages as ``sender``, each in some way."""
    random = Random(seed)
    for message in messages(random, sender, count, parts):
        random.choice(SENDS)(socket, message)


def receive_until_end(socket, seed, got=None):
    """Receive, each message in some way, until one says ``end``; return who sent what."""
    random = Random(seed)
    got = [] if got is None else got
    while True:
        message = random.choice(RECEIVES)(socket)
        if message[0] == END:
            return got
        got.append(identify(message))


def identify(message):
    """Sender and number of a message."""
    sender, number, _ = message[0].split(b" ", 2)
    return int(sender), int(number)


def everything(senders, count):
    """What ``senders`` senders have sent, if nothing was lost and nothing came twice."""
    return [(sender, number) for sender in range(senders) for number in range(count)]


def assert_in_order(got):
    """Of each sender's messages, those that one receiver got came in the order of sending."""
    latest = {}
    for sender, number in got:
        assert number > latest.get(sender, -1), (sender, number, latest)
        latest[sender] = number
