import array

import pytest

from zerohop.constants import RCVMORE, SNDMORE
from zerohop.errors import Again


def test_text_travels_encoded(pair):
    a, b = pair
    a.send_string("é")
    assert b.recv() == "é".encode()
    a.send_string("é", encoding="latin-1")
    assert b.recv_string(encoding="latin-1") == "é"
    a.send_unicode("x", SNDMORE)
    a.send_unicode("y")
    assert (b.recv_unicode(), b.get(RCVMORE), b.recv_unicode()) == ("x", 1, "y")


def test_text_is_text(pair):
    with pytest.raises(TypeError, match=r"^str objects only$"):
        pair[0].send_string(b"x")


def test_json_travels_as_pyzmq_writes_it(pair):
    a, b = pair
    a.send_json({"é": [1.0, None]})
    assert b.recv() == b'{"\\u00e9": [1.0, null]}'
    a.send_json([1], SNDMORE, indent=1)
    a.send_json(2)
    assert b.recv_json() == [1]
    assert b.recv_json(parse_int=str) == "2"


def test_a_message_that_is_not_json_is_gone_all_the_same(pair):
    a, b = pair
    a.send(b"{")
    a.send_json(1)
    with pytest.raises(ValueError, match="Expecting"):
        b.recv_json()
    assert b.recv_json() == 1


def test_pickles_travel(pair):
    a, b = pair
    a.send_pyobj({1: {2}})
    a.send_pyobj("old", 0, 2)
    assert b.recv_pyobj() == {1: {2}}
    octets = b.recv()
    assert octets.startswith(b"\x80\x02")


def test_a_message_may_have_a_form_of_its_own(pair):
    a, b = pair
    a.send_serialized("abc", lambda text: [c.encode() for c in text])
    assert b.recv_serialized(b"".join) == b"abc"
    a.send_serialized("abc", lambda text: [c.encode() for c in text])
    frames = b.recv_serialized(list, copy=False)
    assert [(f.bytes, f.more) for f in frames] == [(b"a", True), (b"b", True), (b"c", False)]


def test_a_part_can_be_received_into_a_buffer(pair):
    a, b = pair
    numbers = array.array("H", [0, 0])
    a.send(b"abcdef")
    assert b.recv_into(numbers) == 6
    assert numbers.tobytes() == b"abcd"
    buffer = bytearray(4)
    a.send(b"abcdef")
    assert b.recv_into(buffer, nbytes=2) == 6
    assert buffer == b"ab\0\0"


def test_a_buffer_that_cannot_be_filled_costs_no_message(pair):
    a, b = pair
    a.send(b"abc")
    with pytest.raises(BufferError):
        b.recv_into(b"read-only")
    assert b.recv() == b"abc"


@pytest.mark.parametrize(
    "receive", ["recv_string", "recv_json", "recv_pyobj"]
)  # fmt: skip
def test_nothing_to_receive_is_again(pair, receive):
    with pytest.raises(Again):
        getattr(pair[1], receive)()


def test_a_lent_part_comes_out_as_octets_and_frees_the_sender(pair):
    a, b = pair
    data = bytearray(70_000)
    tracker = a.send(data, copy=False, track=True)
    assert not tracker.done
    received = b.recv()
    assert (type(received), len(received)) == (bytes, 70_000)
    assert tracker.done
    data.append(0)  # nobody has a view of it any more


def test_a_lent_part_that_is_thrown_away_frees_the_sender(pair):
    a, b = pair
    tracker = a.send_multipart([bytes(70_000), b"small"], copy=False, track=True)
    assert not tracker.done
    b.close()
    a.close()
    assert tracker.done
