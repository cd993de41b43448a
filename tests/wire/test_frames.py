"""RFC 37, "Framing", the sending side: what a frame looks like, and what is joined or copied."""

import array

import pytest
from hypothesis import given

from tests.wire.kit import calls_during, octets, traffic
from zerohop.wire.decoder import FrameDecoder
from zerohop.wire.frames import BY_REFERENCE, Command, encode, encoded_size

FRAMING = pytest.mark.rfc(37, "Framing")


def wire(*messages) -> bytes:
    return b"".join(encode(messages))


@FRAMING
def test_a_short_frame_is_flags_size_body():
    assert wire(b"hello") == octets("""
        00          # flags: last frame, short, message
        05          # size
        68656c6c6f  # "hello"
    """)


@FRAMING
@pytest.mark.parametrize(
    ("size", "header"),
    [
        pytest.param(0, octets("00 00"), id="empty body"),
        pytest.param(255, octets("00 ff"), id="largest short frame"),
        pytest.param(256, octets("02 0000000000000100"), id="smallest long frame"),
        pytest.param(70_000, octets("02 0000000000011170"), id="long frame"),
    ],
)
@pytest.mark.parametrize("count", [1, 20])
def test_size_takes_eight_octets_from_256_on(size, header, count):
    assert wire(*[bytes(size)] * count) == (header + bytes(size)) * count


@FRAMING
def test_all_frames_of_a_message_but_the_last_have_more():
    assert wire([b"a", b"", bytes(256), b"d"]) == octets("""
        01 01 61
        01 00
        03 0000000000000100
    """) + bytes(256) + octets("00 01 64")  # fmt: skip


@FRAMING
def test_the_last_frame_may_be_long():
    assert wire([b"a", bytes(300)]) == octets("01 01 61  02 000000000000012c") + bytes(300)


@FRAMING
@pytest.mark.parametrize(
    ("size", "header"), [(3, octets("04 03")), (300, octets("06 000000000000012c"))]
)
def test_a_command_is_one_frame_with_the_command_flag(size, header):
    assert wire(Command(bytes(size))) == header + bytes(size)


@pytest.mark.parametrize("count", [1, 7, 8, 100])
def test_commands_together_are_what_they_are_alone(count):
    commands = [Command(bytes(53 * number)) for number in range(count)]  # short ones and long ones
    assert wire(*commands) == b"".join(map(wire, commands))


def test_commands_and_messages_keep_their_order():
    batch = [b"a", Command(b"c"), b"b"] * 10
    assert wire(*batch) == octets("00 01 61  04 01 63  00 01 62") * 10


def test_nothing_to_encode_gives_no_buffers():
    assert encode([]) == []


@pytest.mark.parametrize("count", [1, 7, 8, 100])
@pytest.mark.parametrize(
    "sizes", [(5,), (5, 6), (5, 300), (300,), (0, 255, 256)], ids=lambda sizes: f"sizes {sizes}"
)
def test_small_messages_are_joined_into_one_buffer(count, sizes):
    batch = [bytes(size) for size in sizes] * count
    buffers = encode(batch)
    assert len(buffers) == 1
    assert buffers[0] == b"".join(wire(message) for message in batch)


@pytest.mark.parametrize("count", [1, 7, 8, 100])
@pytest.mark.parametrize(
    "sizes",
    [
        ((5, 6), (5, 6)),
        ((5, 0, 64), (4, 0, 65)),
        ((300, 2), (2, 300)),
        ((1, 300), (2, 301)),
        ((5, 6), (5, 6, 7)),
        ((5, 6), (37,)),
        ((5,), (6,)),
    ],
    ids=lambda sizes: f"sizes {sizes}",
)
def test_small_messages_of_several_parts_are_joined_into_one_buffer(count, sizes):
    batch = [[bytes(size) for size in message] for message in sizes] * count
    buffers = encode(batch)
    assert len(buffers) == 1
    assert buffers[0] == b"".join(wire(message) for message in batch)


@pytest.mark.parametrize("count", [1, 20])
@pytest.mark.parametrize("small", [5, 6], ids=["equal", "mixed"])
def test_a_large_part_of_a_batch_of_equally_many_parts_is_not_copied(count, small):
    body = bytes(BY_REFERENCE)
    batch = [[b"12345", body], [bytes(small), body]] * count
    buffers = encode(batch)
    assert [buffer for buffer in buffers if buffer is body] == [body] * 2 * count
    assert b"".join(buffers) == b"".join(wire(message) for message in batch)


def test_views_among_the_parts_of_a_batch():
    batch = [[b"ab", memoryview(b"cd")], [bytearray(b"ef"), b"gh"]] * 10
    assert wire(*batch) == octets("01 02 6162  00 02 6364  01 02 6566  00 02 6768") * 10


@pytest.mark.parametrize("count", [1, 20])
def test_a_large_body_is_a_buffer_of_its_own_and_is_not_copied(count):
    body = bytes(BY_REFERENCE)
    buffers = encode([b"before", *[body] * count, b"after"])
    assert [buffer for buffer in buffers if buffer is body] == [body] * count
    assert b"".join(buffers) == wire(b"before") + wire(body) * count + wire(b"after")


def test_a_batch_of_equal_large_bodies_is_not_joined():
    body = bytes(BY_REFERENCE)
    assert encode([body] * 10)[1::2] == [body] * 10


def test_a_large_part_is_not_copied_either():
    body = bytes(BY_REFERENCE)
    buffers = encode([[b"id", body, b"end"]])
    assert buffers == [octets("01 02 6964  03 0000000000004000"), body, octets("00 03 656e64")]
    assert buffers[1] is body


def test_a_body_just_below_is_joined():
    assert len(encode([bytes(BY_REFERENCE - 1)] * 2)) == 1


@pytest.mark.parametrize("code", ["B", "d"])
@pytest.mark.parametrize("length", [0, 3, 100_000])
def test_a_view_is_sent_as_its_octets_whatever_its_format(code, length):
    numbers = array.array(code, range(3)) * (length // 3)
    view = memoryview(numbers)
    assert wire(view) == wire(numbers.tobytes())
    assert wire([view, b"end"]) == wire([numbers.tobytes(), b"end"])
    assert encoded_size(view) == len(wire(view))


def test_a_large_view_is_handed_on_as_flat_octets():
    """A writer slices what the network did not take at once, by octets."""
    numbers = array.array("d", [1.0]) * BY_REFERENCE
    header, body = encode([memoryview(numbers)])
    assert header == octets("02 0000000000020000")
    assert isinstance(body, memoryview)
    assert body[8:16] == numbers.tobytes()[8:16]
    numbers[1] = 2.0
    assert body[8:16] == numbers.tobytes()[8:16], "it was copied"


def test_views_among_a_batch_of_bytes():
    batch = [b"ab", memoryview(b"cd"), bytearray(b"ef")] * 4
    assert wire(*batch) == octets("00 02 6162  00 02 6364  00 02 6566") * 4


def test_any_iterable_is_taken():
    assert b"".join(encode(iter([b"a", b"b"]))) == wire(b"a", b"b")


@given(traffic)
def test_what_is_encoded_is_decoded_again(batch):
    decoded = FrameDecoder().receive_data(wire(*batch))
    assert decoded == batch
    assert [type(item) for item in decoded] == [type(item) for item in batch]


@given(traffic)
def test_the_size_is_known_beforehand(batch):
    assert len(wire(*batch)) == sum(map(encoded_size, batch))


def test_overhead_counts_once_a_frame():
    assert encoded_size(b"x" * 250, 6) == 9 + 256
    assert encoded_size([b"x", b"y"], 10) == 2 * (2 + 11)


class TestBudget:
    """In calls, the same on every machine; bench/micro/frames.py has the clock."""

    def test_an_answer_costs_three_calls(self):
        assert calls_during(encode, [b"x" * 64]) <= 3
        assert calls_during(encode, [b"x" * 1000]) <= 4
        assert calls_during(encode, [[b"", b"x" * 64]]) <= 5

    def test_messages_of_one_size_cost_no_call_each(self):
        assert calls_during(encode, [b"x" * 64] * 1000) <= 20

    def test_messages_of_mixed_sizes_cost_no_call_each(self):
        assert calls_during(encode, [b"x" * (i % 200) for i in range(1000)]) <= 20

    def test_a_short_message_in_a_mixed_batch_costs_four_calls(self):
        batch = [[b"x", b"y"], *[b"x" * 64] * 1000]
        assert calls_during(encode, batch) <= 4 * 1000 + 30  # two lengths, two appends

    @pytest.mark.parametrize("sizes", [(64,) * 5, (5, 0, 64), (5, 0, 1000)])
    def test_messages_of_equally_many_parts_cost_no_call_each(self, sizes):
        assert calls_during(encode, [[bytes(size) for size in sizes]] * 1000) <= 25
        longer = [[bytes(size + i % 9) for size in sizes] for i in range(1000)]
        assert calls_during(encode, longer) <= 25 + (2000 if max(sizes) > 255 else 0)

    def test_a_part_costs_four_calls(self):
        assert calls_during(encode, [[b"x" * 64] * (5 + i % 2) for i in range(200)]) <= (
            (4 * 6 + 1) * 200
        )
