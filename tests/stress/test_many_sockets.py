"""Many threads on many sockets of one Context: who drives for whom changes all the time."""

import itertools
from random import Random

import pytest

import zerohop as zmq
from tests.stress.kit import TRANSPORTS, in_rounds, limited, until
from tests.stress.traffic import END, SENDS, everything, messages, receive_until_end

pytestmark = [limited, pytest.mark.usefixtures("impatient")]

SENDERS, RECEIVERS = 5, 4
MARKS = (0, 1, 3, 1000)


@in_rounds(3)
def test_every_message_in_a_random_net_comes_to_one_receiver_once(new_context, bind, team, random):
    """Each PUSH is connected to some of the PULLs, over any transport; any thread uses any PUSH."""
    context, each = new_context(), 200
    pulls = [context.socket(zmq.PULL) for _ in range(RECEIVERS)]
    for pull in pulls:
        pull.rcvhwm = random.choice(MARKS)
    endpoints = [[bind(pull, transport) for transport in TRANSPORTS] for pull in pulls]
    pushes = [context.socket(zmq.PUSH) for _ in range(4)]
    for push in pushes:
        push.sndhwm = random.choice(MARKS)
        for choices in random.sample(endpoints, random.randint(1, RECEIVERS)):
            push.connect(random.choice(choices))

    def send(name, seed):
        own = Random(seed)
        for message in messages(own, name, each):
            own.choice(SENDS)(own.choice(pushes), message)

    got = [[] for _ in pulls]
    for pull, part in zip(pulls, got):
        team.start(receive_until_end, pull, random.random(), part)
    for sending in [team.start(send, n, random.random()) for n in range(SENDERS)]:
        sending.join()
    until(lambda: sum(map(len, got)) >= SENDERS * each)
    for choices in endpoints:
        with context.socket(zmq.PUSH) as last:
            last.linger = -1
            last.connect(choices[0])
            last.send(END)
    team.join()
    assert sorted(identity for part in got for identity in part) == everything(SENDERS, each)


@pytest.mark.parametrize("transport", TRANSPORTS)
@in_rounds(1)
def test_a_chain_of_threads_passes_everything_on_in_order(
    new_context, bind, team, transport, random
):
    """Each thread waits for the one before it: there is one seat, and everybody wants it."""
    context, length, count = new_context(), 8, 150
    ends = []
    for _ in range(length):
        push, pull = context.socket(zmq.PUSH), context.socket(zmq.PULL)
        push.sndhwm = pull.rcvhwm = random.choice((1, 2, 50))
        push.connect(bind(pull, transport))
        ends.append((push, pull))

    def begin(push, seed):
        for (message,) in messages(Random(seed), 0, count):
            push.send(message)
        push.send(END)

    def pass_on(pull, push):
        while (message := pull.recv()) != END:
            push.send(message)
        push.send(END)

    for (_, pull), (push, _) in itertools.pairwise(ends):
        team.start(pass_on, pull, push)
    team.start(begin, ends[0][0], random.random())
    assert receive_until_end(ends[-1][1], random.random()) == everything(1, count)


@pytest.mark.parametrize("transport", TRANSPORTS)
@in_rounds(1)
def test_clients_and_workers_meet_through_a_proxy_in_a_thread(
    new_context, bind, team, transport, random
):
    """Each client gets the answers to what it has asked, whoever drives; then the context ends."""
    context = new_context()
    front, back = context.socket(zmq.ROUTER), context.socket(zmq.DEALER)
    front_door, back_door = bind(front, transport), bind(back, transport)
    each = random.choice((20, 60))

    def ask(name):
        with context.socket(zmq.REQ) as req:
            req.connect(front_door)
            for n in range(each):
                question = b"%d of %d" % (n, name)
                req.send(question)
                assert req.recv() == b"answer to " + question

    def work():
        with context.socket(zmq.REP) as rep:
            rep.rcvtimeo = -1
            rep.connect(back_door)
            while True:
                rep.send(b"answer to " + rep.recv())

    def pass_on():
        with front, back:
            zmq.proxy(front, back)

    others = [team.start(work) for _ in range(3)] + [team.start(pass_on)]
    for client in [team.start(ask, name) for name in range(6)]:
        client.join()
    context.term()
    for other in others:
        with pytest.raises(zmq.ContextTerminated):
            other.join()
