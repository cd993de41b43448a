"""What is held is bounded, and which of it stays; what is kept of a snapshot."""

from itertools import count

from zerohop.serving.errors import Malformed
from zerohop.serving.kv.events import EventBatch
from zerohop.serving.kv.questions import Held, Item, OrderOptions, Questions


def item(seq, payload=b"1234"):
    return Item(seq, payload, EventBatch(0.0, []), True)


def numbers(held, upto=10):
    return [seq for seq in range(upto) if held.get(seq) is not None]


def test_what_is_held_is_there_until_it_is_taken():
    held = Held(9, 99)
    held.add(item(3))
    held.add(item(5))
    assert (len(held), held.lowest(), held.octets) == (2, 3, 8)
    assert held.take(3).seq == 3
    assert held.take(3) is None
    assert (numbers(held), held.octets) == ([5], 4)


def test_the_newest_is_let_go_of_where_there_are_too_many():
    held = Held(2, 99)
    for seq in (3, 4, 5):
        held.add(item(seq))
    assert numbers(held) == [3, 4]


def test_the_newest_is_let_go_of_where_there_are_too_many_octets():
    held = Held(9, 8)
    for seq in (3, 4, 5):
        held.add(item(seq))
    assert (numbers(held), held.octets) == ([3, 4], 8)


def test_of_two_with_one_number_the_first_stays():
    held = Held(9, 99)
    held.add(item(3, b"first"))
    held.add(item(3, b"other"))
    assert (held.get(3).payload, held.octets) == (b"first", 5)


def test_lower_numbers_go():
    held = Held(9, 99)
    for seq in (3, 4, 5):
        held.add(item(seq))
    held.drop_below(5)
    assert (numbers(held), held.octets) == ([5], 4)
    held.clear()
    assert (len(held), held.octets) == (0, 0)


def test_of_a_publisher_that_has_restarted_nothing_was_asked_in_vain():
    questions = Questions(count(), OrderOptions(attempts=1))
    questions.fruitless = 1
    assert not questions.may_ask()
    questions.forget()
    assert questions.may_ask()


def snapshot():
    questions = Questions(count(), OrderOptions())
    questions.ask_snapshot(0, False, 0.0)
    return questions.open


def test_the_parts_of_a_snapshot_are_kept_in_their_order():
    question = snapshot()
    parts = [item(0), item(1)]
    for each in parts:
        question.take_part(each, 8)
    assert question.parts == [each.batch for each in parts]


def test_a_snapshot_of_too_many_octets_is_none_whatever_comes_then():
    question = snapshot()
    for seq in range(3):
        question.take_part(item(seq), 7)
    assert question.parts is None


def test_a_snapshot_with_a_part_that_can_not_be_read_is_none():
    question = snapshot()
    question.take_part(Item(0, b"!", Malformed(b"!", "why"), False), 99)
    question.take_part(item(1), 99)
    assert question.parts is None
