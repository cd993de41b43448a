"""Many threads on one socket: nothing is lost, nothing comes twice, each sender's order holds."""

import pytest

import zerohop as zmq
from tests.stress.kit import TRANSPORTS, in_rounds, limited
from tests.stress.traffic import (
    END,
    assert_in_order,
    everything,
    receive_until_end,
    send_all,
)

pytestmark = [limited, pytest.mark.usefixtures("impatient")]

SENDERS, RECEIVERS = 4, 4
MARKS = (0, 1, 2, 7, 1000)


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("kinds", ["PUSH-PULL", "PAIR-PAIR", "DEALER-DEALER"])
@in_rounds(2)
def test_each_message_comes_to_one_of_the_threads_once_and_in_order(
    new_context, bind, team, kinds, transport, random
):
    sender, receiver = joined(new_context, bind, random, kinds, transport)
    count, parts = random.choice((100, 300)), random.choice((1, 1, 3))
    receiving = [team.start(receive_until_end, receiver, random.random()) for _ in range(RECEIVERS)]
    sending = [
        team.start(send_all, sender, random.random(), number, count, parts)
        for number in range(SENDERS)
    ]
    for each in sending:
        each.join()
    for _ in receiving:
        sender.send(END)
    got = [each.join() for each in receiving]
    assert sorted(each for part in got for each in part) == everything(SENDERS, count)
    for part in got:
        assert_in_order(part)


def joined(new_context, bind, random, kinds, transport):
    """Two sockets, of one context or of two, whose queues are short or long."""
    mine = new_context()
    other = mine if transport == "inproc" or random.random() < 0.5 else new_context()
    sender, receiver = (
        context.socket(getattr(zmq, kind)) for context, kind in zip((mine, other), kinds.split("-"))
    )
    sender.sndhwm, receiver.rcvhwm = random.choice(MARKS), random.choice(MARKS)
    ends = [sender, receiver]
    random.shuffle(ends)
    ends[1].connect(bind(ends[0], transport))
    return sender, receiver


@pytest.mark.parametrize("transport", TRANSPORTS)
@in_rounds(1)
def test_threads_that_share_a_router_answer_threads_that_share_a_dealer(
    new_context, bind, team, transport, random
):
    dealer, router = joined(new_context, bind, random, "DEALER-ROUTER", transport)
    count, askers = 60, 3

    def ask(name):
        got = []
        for number in range(count):
            dealer.send_multipart([b"%d" % name, b"%d" % number])
            got.append(tuple(map(int, dealer.recv_multipart())))
        return got

    def answer():
        answered = 0
        while True:
            peer, *parts = router.recv_multipart()
            if parts == [END]:
                return answered
            router.send_multipart([peer, *parts])
            answered += 1

    answering = [team.start(answer) for _ in range(3)]
    got = [each.join() for each in [team.start(ask, name) for name in range(askers)]]
    for _ in answering:
        dealer.send(END)
    assert sum(each.join() for each in answering) == askers * count
    assert sorted(each for part in got for each in part) == everything(askers, count)


@pytest.mark.parametrize("transport", TRANSPORTS)
@in_rounds(1)
def test_threads_publish_through_one_socket_and_subscribe_and_cancel_at_another(
    new_context, bind, team, transport, random
):
    context = new_context()
    pub, sub = context.socket(zmq.PUB), context.socket(zmq.SUB)
    pub.sndhwm = sub.rcvhwm = 0
    for name in range(SENDERS):
        sub.subscribe(b"%d " % name)
    sub.subscribe(END)
    sub.connect(bind(pub, transport))
    pub.wait_for_subscribers(END, timeout=8)

    def change():
        """Subscriptions that nobody publishes to come and go meanwhile."""
        for n in range(100):
            sub.subscribe(b"other %d" % (n % 7))
            sub.unsubscribe(b"other %d" % (n % 7))

    receiving = [team.start(receive_until_end, sub, random.random()) for _ in range(3)]
    sending = [team.start(send_all, pub, random.random(), n, 80) for n in range(SENDERS)]
    sending.append(team.start(change))
    for each in sending:
        each.join()
    for _ in receiving:
        pub.send(END)
    got = [each.join() for each in receiving]
    assert sorted(each for part in got for each in part) == everything(SENDERS, 80)
    for part in got:
        assert_in_order(part)
