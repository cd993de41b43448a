"""Returned: whatever was taken and given back is received again in the order it came."""

from itertools import chain

from hypothesis import given
from hypothesis import strategies as st

from tests.core.kit import Network
from zerohop.asyncio.returned import Returned
from zerohop.errors import Again


class Taking:
    """A PULL core that has received some messages, and whoever takes and gives back."""

    def __init__(self, messages):
        self.core = Network("PULL").core
        self.returned = Returned(self.core)
        self.number = len(messages)
        for number, message in enumerate(messages):
            self.returned.put(message, number)

    def take(self, *, part):
        begun = self.core.receiving_more
        value = self.core.receive_part() if part else self.core.receive()
        self.number += 1
        return value, self.returned.key(self.number, value, begun=begun)

    def take_all(self, kinds):
        taken = []
        for part in kinds:
            try:
                taken.append(self.take(part=part))
            except Again:
                break
        return taken

    def left(self):
        """What is received from now on: messages, as lists of parts."""
        messages = []
        while True:
            try:
                message = self.core.receive()
            except Again:
                return messages
            messages.append(message if isinstance(message, list) else [message])


def as_messages(sizes):
    """Messages of these sizes, all of whose parts differ."""
    made = [[b"%d.%d" % (n, m) for m in range(size)] for n, size in enumerate(sizes)]
    return [parts if len(parts) > 1 else parts[0] for parts in made]


def as_lists(messages):
    return [message if isinstance(message, list) else [message] for message in messages]


sizes = st.lists(st.integers(1, 3), min_size=1, max_size=5)
kinds = st.lists(st.booleans(), max_size=12)


@given(sizes=sizes, kinds=kinds, data=st.data())
def test_all_that_comes_back_is_received_again_in_order(sizes, kinds, data):
    messages = as_messages(sizes)
    taking = Taking(messages)
    taken = taking.take_all(kinds)
    for value, key in data.draw(st.permutations(taken)):
        taking.returned.put(value, key)
    assert taking.left() == as_lists(messages)


@given(sizes=sizes, kinds=kinds, data=st.data())
def test_what_somebody_got_is_missing_and_nothing_else(sizes, kinds, data):
    messages = as_messages(sizes)
    taking = Taking(messages)
    taken = taking.take_all(kinds)
    got = data.draw(st.sets(st.sampled_from(range(len(taken))))) if taken else set()
    for index in data.draw(st.permutations(range(len(taken)))):
        if index not in got:
            taking.returned.put(*taken[index])
    consumed = [part for index in got for part in as_lists([taken[index][0]])[0]]
    left = taking.left()
    everything = sorted(chain.from_iterable(as_lists(messages)))
    assert sorted(chain(consumed, *left)) == everything
    assert all(message == sorted(message) for message in left)
    assert all(len({part[:1] for part in message}) == 1 for message in left)


@given(sizes=sizes, kinds=kinds, again=kinds, data=st.data())
def test_it_may_come_back_more_than_once(sizes, kinds, again, data):
    messages = as_messages(sizes)
    taking = Taking(messages)
    out = []  # what is out while others are taken
    for some in (kinds, again):
        out = data.draw(st.permutations(out + taking.take_all(some)))
        back = data.draw(st.integers(0, len(out)))
        for value, key in out[:back]:
            taking.returned.put(value, key)
        del out[:back]
    for value, key in out:
        taking.returned.put(value, key)
    assert taking.left() == as_lists(messages)


def test_what_is_back_can_be_taken_again_until_another_has_it():
    taking = Taking([b"1", b"2", b"3"])
    taken = [taking.take(part=False) for _ in range(3)]
    for value, key in taken:
        taking.returned.put(value, key)
    assert taking.returned.take_again(taken[1][1])
    assert not taking.returned.take_again(taken[1][1])
    assert taking.take(part=False)[0] == b"1"
    assert not taking.returned.take_again(taken[0][1])
    assert taking.left() == [[b"3"]]


@given(sizes=sizes, kinds=kinds, data=st.data())
def test_what_is_back_can_be_taken_again_and_given_back_again(sizes, kinds, data):
    messages = as_messages(sizes)
    taking = Taking(messages)
    taken = taking.take_all(kinds)
    for value, key in data.draw(st.permutations(taken)):
        taking.returned.put(value, key)
        assert taking.returned.take_again(key)
        assert not taking.returned.take_again(key)
        taking.returned.put(value, key)
    again = data.draw(st.permutations(taken))
    for _, key in again:
        assert taking.returned.take_again(key)
    for value, key in data.draw(st.permutations(taken)):
        taking.returned.put(value, key)
    assert taking.left() == as_lists(messages)


def test_parts_of_an_older_message_wait_together():
    taking = Taking([[b"1", b"2", b"3"], [b"4", b"5"]])
    taken = [taking.take(part=True) for _ in range(4)]
    for index in (2, 0):
        taking.returned.put(*taken[index])
    assert taking.left() == [[b"5"], [b"1", b"3"]]


def test_a_shadow_may_receive_and_give_back_meanwhile():
    taking = Taking([b"1", b"2", b"3"])
    taken = [taking.take(part=False) for _ in range(2)]
    taking.returned.put(*taken[1])
    assert taking.core.receive() == b"2"
    taking.returned.put(*taken[0])
    taking.core.put_back(b"0")
    third = taking.take(part=False)
    assert third[0] == b"0"
    taking.returned.put(*third)
    assert sorted(taking.left()) == [[b"0"], [b"1"], [b"3"]]
