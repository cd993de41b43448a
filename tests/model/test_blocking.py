"""Blocking sockets that come, go, bind, connect, send, receive and poll, from two threads.

The model knows no timing. A message that was sent comes out once, at a receiver that its sender was
connected to; those that one call receives from one sender come in the order they were sent; a send
succeeds where there is a connection and room; and nothing is lost but what was sent by somebody who
was connected to a receiver that has closed.
"""

import os
import queue
import sys
import tempfile
import threading
import traceback

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

import zerohop as zmq

SOAK = float(os.environ.get("SOAK", "0"))  # seconds, about
EXAMPLES = 30 if not SOAK else int(30 + 8 * SOAK)
PATIENCE = 10.0  # seconds for what must come to its end
QUIET_MS = 5  # milliseconds without a message: there may be more, but nobody waits for them now

KINDS = [("PUSH", "PULL"), ("DEALER", "DEALER"), ("DEALER", "ROUTER"), ("PAIR", "PAIR")]


class Worker:
    """A thread that does what it is told, one thing after another."""

    def __init__(self):
        self._tasks, self._outcomes = queue.SimpleQueue(), queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        while (task := self._tasks.get()) is not None:
            try:
                self._outcomes.put((task(), None))
            except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
                self._outcomes.put((None, error))

    def begin(self, task):
        self._tasks.put(task)

    def outcome(self):
        try:
            value, error = self._outcomes.get(timeout=PATIENCE)
        except queue.Empty:
            frame = sys._current_frames()[self._thread.ident]
            raise AssertionError("no end:\n" + "".join(traceback.format_stack(frame))) from None
        if error is not None:
            raise error
        return value

    def end(self):
        self._tasks.put(None)
        self._thread.join(PATIENCE)


class End:
    """A socket, and what the model knows of it."""

    def __init__(self, number, socket):
        self.number, self.socket = number, socket
        self.endpoints = []  # where it is bound
        self.others = set()  # whom it was ever connected to
        self.sent = 0
        self.closed = False

    def __repr__(self):
        return f"{self.socket.type.name} {self.number}"


def send(end, count, *, wait):
    """Send up to ``count`` numbered messages; return how many were."""
    for n in range(count):
        try:
            message = b"%d %d" % (end.number, end.sent + n)
            end.socket.send(message, 0 if wait else zmq.DONTWAIT)
        except zmq.Again:
            return n
    return count


def receive(end, most, how):
    """Receive up to ``most`` messages, as long as there are any soon; return whose and which."""
    got = []
    while len(got) < most:
        try:
            if how == "poll":
                if not end.socket.poll(QUIET_MS):
                    break
                parts = end.socket.recv_multipart(zmq.DONTWAIT)
            elif how == "poller":
                poller = zmq.Poller()
                poller.register(end.socket, zmq.POLLIN)
                if not poller.poll(QUIET_MS):
                    break
                parts = end.socket.recv_multipart(zmq.DONTWAIT)
            else:
                parts = end.socket.recv_multipart(timeout=QUIET_MS / 1000)
        except zmq.Again:
            break
        got.append(tuple(map(int, parts[-1].split())))
    return got


which = st.integers(0, 1)
counts = st.integers(1, 9)
ways = st.sampled_from(["poll", "poller", "recv"])
transports = st.sampled_from(["tcp", "ipc", "inproc"])
connections = st.tuples(transports, st.booleans())  # over what, and whether the sender binds


class BlockingMachine(RuleBasedStateMachine):
    @initialize(
        kinds=st.sampled_from(KINDS),
        hwm=st.sampled_from([1, 2, 1000]),
        contexts=st.integers(1, 2),
        joined=st.lists(st.tuples(which, which, connections), min_size=1, max_size=4),
    )
    def begin(self, kinds, hwm, contexts, joined):
        self.kinds, self.hwm = kinds, hwm
        self.alone = kinds[0] == "PAIR"  # each has one connection
        self.directory = tempfile.TemporaryDirectory(prefix="zh")
        self.contexts = [zmq.Context() for _ in range(contexts)]
        self.workers = [Worker(), Worker()]
        self.ends = []
        self.received = {}  # by (sender, number): by whom
        self.senders = [self.new_sender(n, n) for n in range(2)]
        self.receivers = [self.new_receiver(n, n) for n in range(2)]
        for sender, receiver, way in joined:
            self.connect(sender, receiver, sender, *way)

    def do(self, n, task):
        self.workers[n].begin(task)
        return self.workers[n].outcome()

    def both(self, n, one, other):
        """Two tasks at the same time, the one in thread ``n``, which begins first."""
        workers = self.workers[n], self.workers[1 - n]
        workers[0].begin(one)
        workers[1].begin(other)
        return workers[0].outcome(), workers[1].outcome()

    def new(self, kind, n, context):
        made = self.do(n, lambda: self.contexts[context % len(self.contexts)].socket(kind))
        made.sndhwm = made.rcvhwm = self.hwm
        made.linger = -1
        made.sndtimeo = int(PATIENCE / 2 * 1000)
        made.reconnect_ivl = 1
        self.ends.append(End(len(self.ends), made))
        return self.ends[-1]

    def new_sender(self, n, context):
        return self.new(getattr(zmq, self.kinds[0]), n, context)

    def new_receiver(self, n, context):
        return self.new(getattr(zmq, self.kinds[1]), n, context)

    # Rules

    @rule(sender=which, receiver=which, n=which, transport=transports, turned=st.booleans())
    def connect(self, sender, receiver, n, transport, turned):
        """One end binds and the other connects; there is at most one connection between two."""
        sender, receiver = self.senders[sender], self.receivers[receiver]
        if sender.closed or receiver.closed or receiver in sender.others:
            return
        if self.alone and (sender.others or receiver.others):
            return
        if transport == "inproc" and sender.socket.context is not receiver.socket.context:
            transport = "ipc"
        binding, connecting = (sender, receiver) if turned else (receiver, sender)
        place = {
            "tcp": "tcp://127.0.0.1:*",
            "ipc": f"ipc://{self.directory.name}/{len(binding.endpoints)}-{binding.number}",
            "inproc": f"inproc://{len(binding.endpoints)}-{binding.number}",
        }[transport]

        def join():
            binding.socket.bind(place)
            endpoint = binding.socket.last_endpoint.decode()
            connecting.socket.connect(endpoint)
            return endpoint

        binding.endpoints.append(self.do(n, join))
        sender.others.add(receiver)
        receiver.others.add(sender)

    @rule(sender=which, n=which, count=counts)
    def send(self, sender, n, count):
        sender = self.senders[sender]
        self.note_sent(sender, count, self.do(n, lambda: self.may_send(sender, count)))

    @rule(receiver=which, n=which, most=counts, how=ways)
    def receive(self, receiver, n, most, how):
        receiver = self.receivers[receiver]
        self.note_received(receiver, self.do(n, lambda: self.may_receive(receiver, most, how)))

    @rule(sender=which, receiver=which, n=which, count=counts, how=ways)
    def send_and_receive_at_once(self, sender, receiver, n, count, how):
        sender, receiver = self.senders[sender], self.receivers[receiver]
        sent, got = self.both(
            n, lambda: self.may_send(sender, count), lambda: self.may_receive(receiver, 99, how)
        )
        self.note_sent(sender, count, sent)
        self.note_received(receiver, got)

    @rule(one=which, other=which, n=which, count=counts)
    def send_by_two_at_once(self, one, other, n, count):
        """Each its own socket, perhaps to the same receiver."""
        if one != other:
            one, other = self.senders[one], self.senders[other]
            results = self.both(
                n, lambda: self.may_send(one, count), lambda: self.may_send(other, count)
            )
            for sender, sent in zip((one, other), results):
                self.note_sent(sender, count, sent)

    @rule(one=which, other=which, n=which, how=ways)
    def receive_by_two_at_once(self, one, other, n, how):
        """Perhaps from the same socket: then each message comes to one of the two."""
        ends = self.receivers[one], self.receivers[other]
        results = self.both(
            n,
            lambda: self.may_receive(ends[0], 9, "recv"),
            lambda: self.may_receive(ends[1], 9, how),
        )
        for end, got in zip(ends, results):
            self.note_received(end, got)

    @rule(sender=which, n=which, context=which, other=which, way=connections)
    def a_sender_closes_and_another_takes_its_place(self, sender, n, context, other, way):
        self.do(n, self.senders[sender].socket.close)
        self.senders[sender].closed = True
        self.senders[sender] = self.new_sender(n, context)
        self.connect(sender, other, n, *way)

    @rule(receiver=which, n=which, context=which, other=which, way=connections)
    def a_receiver_closes_and_another_takes_its_place(self, receiver, n, context, other, way):
        self.do(n, self.receivers[receiver].socket.close)
        self.receivers[receiver].closed = True
        self.receivers[receiver] = self.new_receiver(n, context)
        self.connect(other, receiver, n, *way)

    @rule(sender=which, n=which, count=counts, context=which, other=which, way=connections)
    def a_sender_closes_beside_its_call(self, sender, n, count, context, other, way):
        end = self.senders[sender]
        sent, _ = self.both(n, lambda: self.may_send(end, count), end.socket.close)
        end.closed = True
        end.sent += sent or 0
        self.senders[sender] = self.new_sender(n, context)
        self.connect(sender, other, n, *way)

    @rule(receiver=which, n=which, how=ways, context=which, other=which, way=connections)
    def a_receiver_closes_beside_its_call(self, receiver, n, how, context, other, way):
        end = self.receivers[receiver]
        got, _ = self.both(n, lambda: self.may_receive(end, 9, how), end.socket.close)
        end.closed = True
        self.note_received(end, got)
        self.receivers[receiver] = self.new_receiver(n, context)
        self.connect(other, receiver, n, *way)

    def may_send(self, sender, count):
        """None: the socket is closed."""
        there = any(not other.closed for other in sender.others)
        try:
            return send(sender, count, wait=there and self.hwm == 1000)
        except zmq.ZMQError as error:
            if error.errno == zmq.ENOTSOCK:
                return None
            raise

    def may_receive(self, receiver, most, how):
        """None: the socket is closed."""
        try:
            return receive(receiver, most, how)
        except zmq.ZMQError as error:
            if error.errno in (zmq.ENOTSOCK, zmq.ENOTSUP):
                return None
            raise

    # What is seen

    def note_sent(self, sender, count, sent):
        assert (sent is None) == sender.closed
        if sent is None:
            return
        if not sender.others:
            assert sent == 0
        elif self.hwm == 1000 and not any(other.closed for other in sender.others):
            assert sent == count
        sender.sent += sent

    def note_received(self, receiver, got):
        assert got is not None or receiver.closed
        latest = {}
        for sender, number in got or ():
            assert number > latest.get(sender, -1), (receiver, got)
            latest[sender] = number
            assert (sender, number) not in self.received, "twice"
            assert receiver in self.ends[sender].others
            self.received[sender, number] = receiver

    def teardown(self):
        if not hasattr(self, "ends"):
            return
        try:
            self.everything_arrives()
        finally:
            for end in self.ends:
                end.socket.close(linger=0)
            for worker in self.workers:
                worker.end()
            for context in self.contexts:
                context.term(timeout=PATIENCE)
            self.directory.cleanup()

    def everything_arrives(self):
        due = {
            (sender.number, number)
            for sender in self.ends
            if not any(receiver.closed for receiver in sender.others)
            for number in range(sender.sent)
        }
        open_ends = [end for end in self.ends if not end.closed and self.receives(end)]
        for _ in range(int(PATIENCE * 1000 / QUIET_MS)):
            if due <= self.received.keys():
                return
            for end in open_ends:
                self.note_received(end, receive(end, 9, "recv"))
        raise AssertionError(f"lost: {sorted(due - self.received.keys())}")

    def receives(self, end):
        return end.socket.type.name == self.kinds[1]


TestBlocking = BlockingMachine.TestCase
TestBlocking.settings = settings(
    max_examples=EXAMPLES, stateful_step_count=25, deadline=None, print_blob=True
)
TestBlocking = pytest.mark.timeout(60 + 3 * SOAK)(TestBlocking)
