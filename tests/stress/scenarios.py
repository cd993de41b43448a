"""What the main thread may be interrupted in, and how to see that afterwards the program goes on.

A scenario is a class: its constructor makes the world, ``act()`` is what is interrupted, and
``go_on()``, called in a thread after that, must succeed.
"""

import contextlib
import itertools
import threading
import time

import zerohop as zmq
from tests.stress.kit import TRANSPORTS

PATIENCE = 5.0  # seconds
NOW_MS = 200  # for what has been sent; a trace function makes everything slow


class World:
    """Sockets of one context, whose connections come back at once."""

    options = ()  # names and values
    transports = TRANSPORTS

    def __init__(self, bind, transport):
        self.bind, self.transport = bind, transport
        self.context = zmq.Context()
        self.context.linger = 0
        self.context.reconnect_ivl = 1
        self.context.sndtimeo = self.context.rcvtimeo = int(PATIENCE * 1000)
        self.sockets = []
        self.got = []
        self.build()

    def build(self):
        """Make the sockets."""

    def socket(self, kind):
        made = self.context.socket(getattr(zmq, kind))
        for name, value in self.options:
            setattr(made, name, value)
        self.sockets.append(made)
        return made

    def pair(self, connecting, binding):
        """Two sockets that are connected to each other."""
        ends = self.socket(connecting), self.socket(binding)
        ends[0].connect(self.bind(ends[1], self.transport))
        for end in ends:
            end.wait_connected(PATIENCE)
        return ends

    def go_on(self):
        """What is sent from now on arrives, and what arrived before is in order and not twice."""

    def end(self):
        for socket in self.sockets:
            socket.close(linger=0)
        self.context.term(timeout=PATIENCE)


def resume(send, receive, got):
    """Send until something that was sent now arrives; numbers that come before are ``got``.

    None comes twice, and those that came by one connection came in order: there may have been two.
    """
    for attempt in range(50):
        while True:
            try:
                message = receive()
            except zmq.Again:
                break
            if message.startswith(b"resumed"):
                assert len(set(got)) == len(got), got
                assert not any(a > b > c for a, b, c in itertools.combinations(got, 3)), got
                return
            got.append(int(message))
        send(b"resumed %d" % attempt)
    raise AssertionError("nothing that was sent afterwards has arrived")


class Flood(World):
    """One thread sends and receives batches by turns."""

    def build(self):
        self.push, self.pull = self.pair("PUSH", "PULL")

    def act(self):
        number = 0
        for _ in range(3):
            for _ in range(9):
                self.push.send(b"%d" % number)
                number += 1
            for _ in range(9):
                self.got.append(int(self.pull.recv()))

    def go_on(self):
        resume(self.push.send, lambda: self.pull.recv(timeout=0.1), self.got)


class FloodWithLittleRoom(Flood):
    """As much as there is room for, by sends and receives that do not wait."""

    options = (("sndhwm", 2), ("rcvhwm", 2))

    def act(self):
        number = 0
        for _ in range(4):
            for _ in range(9):
                if not self.push.poll(0, zmq.POLLOUT):
                    break
                self.push.send(b"%d" % number, zmq.DONTWAIT)
                number += 1
            while self.pull.poll(1):
                self.got.append(int(self.pull.recv(zmq.DONTWAIT)))


class LargeMessages(Flood):
    """More than the kernel takes at once."""

    def act(self):
        for number in range(3):
            self.push.send(b"%d" % number + b" " * 6_000_000, copy=False)
            self.got.append(int(self.pull.recv(copy=False).bytes))


class Echo(World):
    """A DEALER asks a ROUTER, in several parts."""

    def build(self):
        self.dealer, self.router = self.pair("DEALER", "ROUTER")

    def act(self):
        for number in range(6):
            self.dealer.send_multipart([b"", b"%d" % number])
            self.router.send_multipart(self.router.recv_multipart())
            self.got.append(int(self.dealer.recv_multipart()[1]))

    def go_on(self):
        def send(message):
            self.dealer.send_multipart([b"", message])

        def receive():
            self.router.send_multipart(self.router.recv_multipart(timeout=0.1))
            return self.dealer.recv_multipart(timeout=0.1)[-1]

        resume(send, receive, self.got)


class News(World):
    """A PUB with two SUBs, whose subscriptions come and go."""

    def build(self):
        self.pub = self.socket("PUB")
        self.subs = [self.socket("SUB") for _ in range(2)]
        endpoint = self.bind(self.pub, self.transport)
        for sub in self.subs:
            sub.subscribe(b"")
            sub.connect(endpoint)
        self.pub.wait_for_subscribers(n=2, timeout=PATIENCE)
        self.each_got = [[], []]

    def act(self):
        for number in range(8):
            for sub in self.subs:
                sub.subscribe(b"%d" % number)
            self.pub.send(b"%d" % number)
            for sub, got in zip(self.subs, self.each_got):
                got.append(int(sub.recv()))
                sub.unsubscribe(b"%d" % number)

    def go_on(self):
        for sub, got in zip(self.subs, self.each_got):
            resume(self.pub.send, lambda sub=sub: sub.recv(timeout=0.1), got)


class Polling(Flood):
    """Everything is waited for in a poll of two sockets and a descriptor."""

    def act(self):
        poller = zmq.Poller()
        poller.register(self.push, zmq.POLLOUT)
        for number in range(6):
            assert dict(poller.poll(NOW_MS * 10)) == {self.push: zmq.POLLOUT}
            self.push.send(b"%d" % number)
            poller.modify(self.push, 0)
            poller.register(self.pull, zmq.POLLIN)
            assert dict(poller.poll(NOW_MS * 10)) == {self.pull: zmq.POLLIN}
            self.got.append(int(self.pull.recv()))
            poller.modify(self.pull, 0)
            poller.register(self.push, zmq.POLLOUT)


class Workers(World):
    """Work for three PULLs with little room, by turns; each has its own connection."""

    options = (("sndhwm", 2), ("rcvhwm", 2))

    def build(self):
        self.push = self.socket("PUSH")
        self.pulls = [self.socket("PULL") for _ in range(3)]
        for pull in self.pulls:
            self.push.connect(self.bind(pull, self.transport))
        self.push.wait_connected(PATIENCE)
        self.each_got = [[] for _ in self.pulls]

    def act(self):
        for number in range(12):
            self.push.send(b"%d" % number)
            if number % 4 == 3:
                for pull, got in zip(self.pulls, self.each_got):
                    while pull.poll(1):
                        got.append(int(pull.recv()))

    def go_on(self):
        """Every worker gets work again."""
        for _ in range(50):
            missing = []
            for pull, got in zip(self.pulls, self.each_got):
                try:
                    while (message := pull.recv(timeout=0.05)) != b"more":
                        got.append(int(message))
                except zmq.Again:
                    missing.append(pull)
            if not missing:
                break
            for _ in self.pulls:
                self.push.send(b"more")
        assert not missing
        everything = [number for got in self.each_got for number in got]
        assert len(set(everything)) == len(everything), self.each_got


class Questions(World):
    """REQ and REP, which take turns; a REQ that is stuck with its turn is replaced."""

    def build(self):
        self.rep = self.socket("REP")
        self.endpoint = self.bind(self.rep, self.transport)
        self.new_req()

    def new_req(self):
        self.req = self.socket("REQ")
        self.req.connect(self.endpoint)
        self.req.wait_connected(PATIENCE)

    def act(self):
        for number in range(5):
            self.req.send(b"%d" % number)
            self.rep.send(self.rep.recv())
            self.got.append(int(self.req.recv()))

    def go_on(self):
        self.req.close()
        self.new_req()
        with contextlib.suppress(zmq.ZMQError):  # it may not be its turn
            self.rep.send(b"to the one that has left")
        self.req.send(b"now")
        while (question := self.rep.recv()) != b"now":
            self.rep.send(question)
        self.rep.send(question)
        assert self.req.recv() == b"now"


class Crowd(World):
    """Other threads receive all the time; what the main thread sends is interrupted."""

    def build(self):
        self.push, self.pull = self.pair("PUSH", "PULL")
        self.lonely = self.socket("PULL")
        self.lonely.rcvtimeo = -1
        self.bind(self.lonely, self.transport)
        self.threads = [
            threading.Thread(target=self.receive, args=(pull,), daemon=True)
            for pull in (self.pull, self.pull, self.lonely)
        ]
        for thread in self.threads:
            thread.start()

    def receive(self, pull):
        try:
            while True:
                self.got.append(pull.recv())
        except zmq.ZMQError:
            return

    def act(self):
        for number in range(12):
            self.push.send(b"%d" % number)
            if number % 3 == 0:
                self.push.poll(1)

    def go_on(self):
        for _ in range(100):
            self.push.send(b"now")
            if b"now" in self.got:
                break
            time.sleep(0.02)
        numbers = [message for message in self.got if message != b"now"]
        assert len(numbers) < len(self.got)
        assert len(set(numbers)) == len(numbers), self.got

    def end(self):
        super().end()
        for thread in self.threads:
            thread.join(PATIENCE)
            assert not thread.is_alive()


class Meeting(World):
    """Sockets are made, bound, connected, used once and closed."""

    def build(self):
        self.life = Flood(self.bind, self.transport)  # goes on in the same thread, and must

    def act(self):
        push, pull = self.pair("PUSH", "PULL")
        push.send(b"once")
        assert pull.recv() == b"once"
        push.close()
        pull.close()

    def go_on(self):
        self.life.go_on()
        self.act()

    def end(self):
        super().end()
        self.life.end()


class Returning(World):
    """A peer leaves and comes back to where it was."""

    transports = ("tcp", "ipc")  # nobody comes back to the name of an inproc socket that has left

    def build(self):
        self.push, self.pull = self.pair("PUSH", "PULL")
        self.endpoint = self.pull.last_endpoint.decode()

    def act(self):
        self.pull.close()
        self.pull = self.socket("PULL")
        self.pull.bind(self.endpoint)
        for number in range(20):
            self.push.send(b"%d" % number)  # perhaps to the one that has left
            if self.pull.poll(NOW_MS):
                self.got.append(int(self.pull.recv()))
                return

    def go_on(self):
        if not self.pull.closed:
            self.pull.close()
        self.pull = self.socket("PULL")
        self.pull.bind(self.endpoint)
        resume(self.push.send, lambda: self.pull.recv(timeout=0.1), self.got)


class End(World):
    """Everything is closed; what was sent is still to be written."""

    def build(self):
        self.push, self.pull = self.pair("PUSH", "PULL")

    def act(self):
        for number in range(5):
            self.push.send(b"%d" % number)
        self.push.close(linger=1000)
        self.got = [int(self.pull.recv()) for _ in range(5)]
        self.pull.close()
        self.context.term()

    def go_on(self):
        pass


SCENARIOS = (
    Flood, FloodWithLittleRoom, LargeMessages, Echo, News, Polling, Workers, Questions, Crowd,
    Meeting, Returning, End,
)  # fmt: skip
