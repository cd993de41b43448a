"""RFC 37, "Framing", the receiving side: one sentence of the RFC, one test; then its breaches."""

import os
import subprocess
import sys
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.kit import calls_during, cuts, octet_by_octet, octets, parts, pieces, traffic
from zerohop.errors import ProtocolError
from zerohop.wire import body as body_module
from zerohop.wire import decoder as decoder_module
from zerohop.wire.decoder import SMALL_COMMAND, FrameDecoder
from zerohop.wire.frames import Command, encode

FRAMING = pytest.mark.rfc(37, "Framing")
COMMANDS = pytest.mark.rfc(37, "Commands")
MESSAGES = pytest.mark.rfc(37, "Messages")


def wire(*messages) -> bytes:
    return b"".join(encode(messages))


def decode(*chunks: bytes, limit: int | None = None) -> list:
    decoder = FrameDecoder(limit)
    return [item for chunk in chunks for item in decoder.receive_data(chunk)]


def outcome(chunks: list[bytes], limit: int | None) -> tuple[list, str | None]:
    """All that came out, and what was raised in the end."""
    decoder = FrameDecoder(limit)
    items = []
    try:
        for chunk in chunks:
            items += decoder.receive_data(chunk)
    except ProtocolError as error:
        return items + decoder.completed, str(error)
    return items, None


@FRAMING
def test_a_message_of_one_frame_is_bare_bytes():
    assert decode(octets("00 05 68656c6c6f")) == [b"hello"]


@FRAMING
def test_frames_with_more_and_a_last_one_are_one_message():
    assert decode(octets("01 01 61  01 00  00 01 62")) == [[b"a", b"", b"b"]]


@MESSAGES
def test_a_message_is_delivered_only_when_it_is_whole():
    decoder = FrameDecoder()
    assert decoder.receive_data(octets("01 01 61")) == []
    assert decoder.receive_data(octets("00 01 62")) == [[b"a", b"b"]]


@FRAMING
@pytest.mark.parametrize("size", [0, 1, 255])
def test_a_long_frame_may_have_a_short_body(size):
    assert decode(octets("02") + size.to_bytes(8) + bytes(size)) == [bytes(size)]


@FRAMING
@pytest.mark.parametrize(
    "flags", [pytest.param("04", id="command"), pytest.param("05", id="command with MORE")]
)
def test_a_command_is_its_body(flags):
    """MORE shall be zero there; libzmq accepts it (measured), and so do we."""
    decoder = FrameDecoder()
    [command] = decoder.receive_data(octets(flags + "02 6162"))
    assert command == b"ab"
    assert type(command) is Command
    assert decoder.saw_command


@FRAMING
def test_a_long_command():
    assert decode(octets("06 0000000000000002 6162")) == [Command(b"ab")]


@COMMANDS
def test_a_command_may_stand_between_the_frames_of_a_message():
    assert decode(octets("01 01 61  04 02 0000  00 01 62")) == [b"\0\0", [b"a", b"b"]]


def test_commands_are_announced_for_one_call():
    decoder = FrameDecoder()
    decoder.receive_data(wire(b"x", Command(b"c")))
    assert decoder.saw_command
    decoder.receive_data(wire(b"x"))
    assert not decoder.saw_command


def test_a_command_that_was_cut_is_announced_when_it_is_whole():
    decoder = FrameDecoder()
    decoder.receive_data(octets("04 02 61"))
    assert not decoder.saw_command
    assert decoder.receive_data(octets("62")) == [b"ab"]
    assert decoder.saw_command


@pytest.mark.parametrize(
    "messages",
    [
        pytest.param([b"x" * 40] * 500, id="a run"),
        pytest.param([b"x" * 40] * 100 + [b"y" * 41] * 100, id="a run after a run"),
        pytest.param([b"x" * 1000] * 60, id="a run of long frames"),
        pytest.param([b"x" * 40] * 40 + [[b"a", b"b"]] + [b"x" * 40] * 40, id="a message in a run"),
        pytest.param([b"", *[b"x"] * 5] * 100, id="no run"),
        pytest.param([[b"id", b"", b"x" * 60]] * 100, id="messages of three frames"),
        pytest.param(
            [[b"id", b"", b"x" * 60]] * 100 + [b"y" * 60] * 100 + [[b"a", b"bc"]] * 50,
            id="runs of one and of more frames in turn",
        ),
        pytest.param([[b"id", b"x" * 60], [b"id", b"x" * 61]] * 100, id="frames that nearly fit"),
        pytest.param([[b"x" * 600, b"y" * 300]] * 60, id="a run of messages of long frames"),
        pytest.param([[b"x" * 600, b"y" * 300], b"z"] * 60, id="long messages, never two alike"),
        pytest.param([[b"x"] * 16, [b"y"] * 17] * 40, id="messages of many frames"),
        pytest.param([[b"x"] * 17] * 40, id="a run of messages of too many frames"),
        pytest.param([[b"id", b"x" * 600]] * 50, id="short and long frames in turn"),
        pytest.param([b"x" * 200, Command(b"c")] * 50, id="commands and messages in turn"),
        pytest.param([[b"x"] * 200], id="one message of many frames"),
    ],
)
def test_every_way_through_the_data_gives_the_same(messages):
    stream = wire(*messages)
    assert decode(stream) == messages
    assert decode(*octet_by_octet(stream)) == messages
    assert decode(stream, limit=100_000) == messages


def test_frames_that_only_begin_like_a_run_are_told_apart():
    """The last header of the window is equal; one between is not."""
    short = octets("00 04") + bytes(4)
    disguised = octets("00 01 ff  00 01 ff")  # six octets, too, but two messages
    stream = short * 40 + disguised + short * 40
    expected = [bytes(4)] * 40 + [b"\xff", b"\xff"] + [bytes(4)] * 40
    assert decode(stream) == expected


@pytest.mark.parametrize(
    "other",
    [
        pytest.param("01 02 6162  01 01 63", id="MORE where it was the last"),
        pytest.param("00 02 6162  00 01 63", id="last where more were to follow"),
        pytest.param("01 01 61  01 00  00 00", id="other sizes"),
        pytest.param("01 02 6162  04 01 63", id="a command instead of a frame"),
    ],
)
def test_messages_of_several_frames_that_only_begin_like_a_run_are_told_apart(other):
    """All messages have seven octets; the headers of one are not where those of the others are."""
    usual = octets("01 02 7879  00 01 7a")
    stream = usual * 40 + octets(other) + usual * 40
    assert decode(stream) == decode(*octet_by_octet(stream))


def test_a_run_of_several_frames_ends_where_the_peer_breaks_the_protocol():
    usual = octets("01 02 7879  00 01 7a")
    items, problem = outcome([usual * 40 + octets("81 02 7879  00 01 7a") + usual * 40], None)
    assert items == [[b"xy", b"z"]] * 40
    assert "reserved bits" in problem


@pytest.mark.parametrize("cut", [0, 1, 2, 50])
def test_a_run_goes_on_in_the_next_data(cut):
    """Wherever the first data ends: its header is known, and nothing is tried frame by frame."""
    decoder, stream = FrameDecoder(), wire(*[b"x" * 64] * 2000)
    middle = len(stream) // 2 + cut
    assert decoder.receive_data(stream[:middle]) == [b"x" * 64] * 1000
    assert calls_during(decoder.receive_data, stream[middle:]) <= 60


@pytest.mark.parametrize("cut", [0, 1, 2, 50])
def test_the_last_part_of_a_message_does_not_go_on_with_a_run_of_frames_like_it(cut):
    run, between = [b"x" * 64] * 40, [[b"a", b"y" * 64]]
    begun = wire(*run) + octets("01 01 61")  # a part, and behind it the end of the data
    stream = wire(*run, *between, *run)
    edge = len(begun) + cut
    assert decode(stream[:edge], stream[edge:]) == run + between + run


# Breaches


@FRAMING
@pytest.mark.parametrize(
    ("stream", "problem"),
    [
        pytest.param("08 00", "reserved bits .* 0x08", id="bit 3"),
        pytest.param("80 00", "reserved bits .* 0x80", id="bit 7"),
        pytest.param("0c 00", "reserved bits .* 0x0c", id="bit 3 of a command"),
        pytest.param("02 8000000000000000", "2\\^63", id="top bit of the size"),
        pytest.param("06 ffffffffffffffff", "2\\^63", id="top bit of a command's size"),
    ],
)
def test_the_peer_may_not_send(stream, problem):
    """Reserved bits: the RFC says MUST be zero; libzmq ignores them, and never sends them."""
    for chunks in ([octets(stream)], octet_by_octet(octets(stream)), [octets(stream) + bytes(600)]):
        with pytest.raises(ProtocolError, match=problem) as caught:
            decode(*chunks)
        assert caught.value.source == "RFC 37, Framing"


@pytest.mark.parametrize(
    ("stream", "size"),
    [
        pytest.param(wire(bytes(101)), 101, id="a short frame"),
        pytest.param(octets("02 00000000ffffffff"), 2**32 - 1, id="announced"),
        pytest.param(wire([bytes(60), bytes(41)]), 101, id="the last frame"),
        pytest.param(wire([bytes(60), bytes(41), b""]), 101, id="a frame with MORE"),
        pytest.param(octets("06 0000000000000258"), 600, id="a command"),
    ],
)
def test_a_message_over_the_limit_is_refused(stream, size):
    for chunks in ([stream], octet_by_octet(stream)):
        with pytest.raises(ProtocolError, match=f"{size} octets, over the limit of 100") as caught:
            decode(*chunks, limit=100)
        assert "MAXMSGSIZE" in caught.value.__notes__[0]


@pytest.mark.parametrize("behind", [0, 1000])
@pytest.mark.parametrize(
    "message", [[bytes(200), bytes(101)], [bytes(200), bytes(101), b""]], ids=["last", "more"]
)
def test_the_limit_holds_on_the_fast_way_too(message, behind):
    with pytest.raises(ProtocolError, match="301 octets, over the limit of 300"):
        decode(wire(message) + bytes(behind), limit=300)


@pytest.mark.parametrize("message", [b"1234", [b"", b"1234"]], ids=["alone", "enveloped"])
@pytest.mark.parametrize("limit", [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, None])
def test_an_answer_is_held_against_the_limit(message, limit):
    accepted = limit is None or limit >= 4
    assert outcome([wire(message)], limit)[0] == ([message] if accepted else [])


@pytest.mark.parametrize("begun", ["01 01 61", "01", "01 02 61", "00 02 61", "02 00"])
@pytest.mark.parametrize("answer", [b"", b"1", b"1234", [b"", b"1234"], bytes(255)])
def test_what_looks_like_an_answer_may_be_the_rest_of_something_else(begun, answer):
    begun = octets(begun)
    assert outcome([begun, wire(answer)], 1000) == outcome(
        octet_by_octet(begun + wire(answer)), 1000
    )


def test_a_message_at_the_limit_is_accepted():
    assert decode(wire([bytes(60), bytes(40)]), limit=100) == [[bytes(60), bytes(40)]]
    assert decode(wire([bytes(200), bytes(100)]) + wire(b"x") * 2000, limit=300)[1] == b"x"


def test_a_message_over_the_limit_is_refused_before_its_body_comes():
    with pytest.raises(ProtocolError):
        decode(octets("02 0000000000000065"), limit=100)


def test_a_limit_is_for_each_message_anew():
    assert decode(wire([bytes(60), bytes(40)]) * 3, limit=100) == [[bytes(60), bytes(40)]] * 3


def test_a_small_command_is_no_matter_of_the_limit():
    assert decode(wire(Command(bytes(SMALL_COMMAND))), limit=1) == [bytes(SMALL_COMMAND)]


@pytest.mark.parametrize("limit", [None, 1_000_000])
def test_endless_frames_of_one_message_come_to_an_end(monkeypatch, limit):
    monkeypatch.setattr(decoder_module, "MAX_FRAMES", 500)
    just = octets("01 00") * 499 + octets("00 00")
    over = octets("01 00") * 500
    for cut in (1, 7, 300, len(over)):
        chunks = [over[i : i + cut] for i in range(0, len(over), cut)]
        with pytest.raises(ProtocolError, match="over 500 frames"):
            decode(*chunks, limit=limit)
        chunks = [just[i : i + cut] for i in range(0, len(just), cut)]
        assert decode(*chunks, limit=limit) == [[b""] * 500]


def test_what_was_whole_before_the_offence_is_not_lost():
    decoder = FrameDecoder()
    with pytest.raises(ProtocolError):
        decoder.receive_data(wire(b"a", Command(b"c"), [b"b", b"d"]) + octets("80 00"))
    assert decoder.completed == [b"a", b"c", [b"b", b"d"]]
    assert decoder.saw_command


def test_what_was_whole_is_not_kept_longer_than_needed():
    decoder = FrameDecoder()
    decoder.receive_data(wire(b"a"))
    assert not decoder.completed


# Large frames


def test_a_reader_can_ask_for_just_the_rest_of_a_frame():
    decoder = FrameDecoder()
    assert decoder.wanted() == 0
    decoder.receive_data(octets("02 00000000"))
    assert decoder.wanted() == 0, "the header is not whole"
    decoder.receive_data(octets("000003e8") + bytes(400))
    assert decoder.wanted() == 600
    assert decoder.receive_data(bytes(600)) == [bytes(1000)]
    assert decoder.wanted() == 0


@pytest.mark.parametrize("chunk", [1, 100, 5_000, 70_000])
def test_a_large_body_arrives_in_any_pieces(chunk):
    body = bytes(range(256)) * 400
    stream = wire(b"before", body, b"after")
    chunks = [stream[i : i + chunk] for i in range(0, len(stream), chunk)]
    assert decode(*chunks) == [b"before", body, b"after"]


def put(decoder: FrameDecoder, octets: bytes) -> list:
    """As a network does: into the place where they belong, and what comes after them beside it."""
    view = decoder.buffer()
    count = min(len(view), len(octets))
    view[:count] = octets[:count]
    decoder.filled(count)
    return decoder.receive_data(octets[count:])


@pytest.mark.parametrize("flags", ["02", "03"], ids=["last", "more"])
def test_a_large_body_is_put_where_it_belongs(flags):
    decoder, body = FrameDecoder(), bytes(range(250)) * 400
    assert decoder.receive_data(octets(flags + "00000000000186a0") + body[:1000]) == []
    assert put(decoder, body[1000:50_000]) == []
    items = put(decoder, body[50_000:] + wire(b"end"))
    assert items == ([[body, b"end"]] if flags == "03" else [body, b"end"])
    assert decoder.buffer() is None


def test_a_large_command_is_put_where_it_belongs_too():
    decoder = FrameDecoder()
    decoder.receive_data(octets("06 00000000000186a0"))
    [command] = [*put(decoder, bytes(65_536)), *put(decoder, bytes(100_000 - 65_536))]
    assert type(command) is Command
    assert decoder.saw_command


def test_who_has_a_buffer_need_not_use_it():
    decoder, body = FrameDecoder(), bytes(range(250)) * 400
    stream = wire(body, b"next")
    decoder.receive_data(stream[:1000])
    assert decoder.buffer() is not None
    assert decoder.receive_data(stream[1000:]) == [body, b"next"]


def test_small_frames_have_no_buffer():
    decoder = FrameDecoder()
    assert decoder.buffer() is None
    decoder.receive_data(octets("02 000000000000ffff"))
    assert decoder.buffer() is None
    assert decoder.wanted() == 65_535
    decoder.receive_data(bytes(65_535) + octets("02 00000000"))
    assert decoder.buffer() is None, "the header is not whole"


def test_a_peer_that_sends_large_frames_needs_fewer_cautious_steps():
    decoder, body = FrameDecoder(), bytes(200_000)
    decoder.receive_data(wire(body)[:9])
    assert len(decoder.buffer()) == 65_536
    decoder.receive_data(body)
    decoder.receive_data(wire(body)[:9])
    assert len(decoder.buffer()) == 200_000


def test_nor_does_it_get_more_than_it_has_sent_in_one_frame_or_four_mebibytes():
    decoder = FrameDecoder()
    decoder.receive_data(wire(bytes(200_000), b"small"))
    decoder.receive_data(octets("02 4000000000000000"))
    assert len(decoder.buffer()) == 65_536, "it came in one piece: nothing is proven"
    decoder = FrameDecoder()
    decoder.receive_data(wire(bytes(6_000_000))[:-1])
    decoder.receive_data(bytes(1) + octets("02 4000000000000000"))
    assert len(decoder.buffer()) == 4 * 2**20


ANNOUNCED = """
from resource import getpagesize
from zerohop.wire.decoder import FrameDecoder

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * getpagesize()

decoders = [FrameDecoder() for _ in range(100)]
for decoder in decoders:
    decoder.receive_data(b"\\2" + (4_000_000).to_bytes(8) + bytes(100_000))
    for _ in range(39):
        decoder.receive_data(bytes(100_000))
before = resident()
for decoder in decoders:
    decoder.receive_data(b"\\2" + (2**62).to_bytes(8) + bytes(1))
    assert len(decoder.buffer()) == 3_999_999
print(resident() - before)
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="asks Linux what is resident")
def test_a_large_frame_does_not_buy_memory_for_those_that_are_only_announced():
    """In a process of its own: development mode writes to all memory that is asked for."""
    environment = {"PYTHONPATH": os.pathsep.join(sys.path)}
    grown = subprocess.check_output([sys.executable, "-c", ANNOUNCED], env=environment)
    assert int(grown) < 100 * 100_000


def held_after(*chunks: bytes) -> int:
    """Octets that a decoder holds when these have come and nothing was whole."""
    tracemalloc.start()
    try:
        decoder = FrameDecoder()
        for chunk in chunks:
            assert decoder.receive_data(chunk) == []
            decoder.buffer()
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("chunk", [1, 2, 100, 4_096, 65_536])
def test_memory_grows_with_what_came_not_with_what_was_announced(chunk):
    header = octets("02 7fffffffffffffff")
    assert held_after(header) < 1.1 * 65_536
    count = 200_000 // chunk
    assert held_after(header, *[bytes(chunk)] * count) < 2.2 * 200_000 + 5_000


# Promises to the network


@given(messages=traffic, places=cuts)
def test_how_the_stream_is_cut_does_not_matter(messages, places):
    items = decode(*pieces(wire(*messages), places))
    assert items == messages
    assert [type(item) for item in items] == [type(item) for item in messages]


@given(
    messages=traffic,
    junk=st.binary(max_size=600),
    places=cuts,
    limit=st.one_of(st.none(), st.integers(0, 600)),
)
def test_nor_does_it_where_the_stream_is_broken(messages, junk, places, limit):
    stream = wire(*messages) + junk
    assert outcome(pieces(stream, places), limit) == outcome([stream], limit)


@given(
    messages=traffic,
    places=cuts,
    ways=st.lists(st.booleans(), min_size=31, max_size=31),
    large=st.sampled_from([1, 250, 600]),
    first=st.sampled_from([1, 100, 65_536]),
)
def test_nor_does_it_matter_how_the_octets_of_a_large_frame_come(
    messages, places, ways, large, first
):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decoder_module, "_LARGE", large)
        patch.setattr(decoder_module, "_SMALL", large)
        patch.setattr(body_module, "_FIRST", first)
        decoder, items = FrameDecoder(), []
        for piece, into_place in zip(pieces(wire(*messages), places), ways, strict=False):
            if into_place and decoder.buffer() is not None:
                items += put(decoder, piece)
            else:
                items += decoder.receive_data(piece)
    assert items == messages
    assert [type(item) for item in items] == [type(item) for item in messages]


@given(message=parts, count=st.integers(20, 120), place=st.integers(0), octet=st.integers(0, 7))
def test_one_wrong_octet_in_a_run_is_seen_wherever_it_is(message, count, place, octet):
    stream = bytearray(wire(*[[part[:40] for part in message]] * count))
    stream[place % len(stream)] = octet
    assert outcome([bytes(stream)], None) == outcome(octet_by_octet(bytes(stream)), None)


@given(st.binary(max_size=2000))
def test_any_octets_decode_or_are_refused_and_hold_no_more_than_came(junk):
    decoder = FrameDecoder(100)
    try:
        decoder.receive_data(junk)
    except ProtocolError:
        return
    assert decoder.wanted() <= SMALL_COMMAND
    assert len(decoder._head) < SMALL_COMMAND + 9
    assert sum(map(len, decoder._parts)) <= 100


class TestBudget:
    """In calls, the same on every machine; bench/micro/frames.py has the clock."""

    def test_messages_of_one_size_cost_no_call_each(self):
        stream = wire(*[b"x" * 64] * 1000)
        assert calls_during(FrameDecoder().receive_data, stream) <= 300

    def test_a_short_message_costs_three_calls(self):
        stream = wire(*[b"x" * (32 + i % 64) for i in range(1000)])
        assert calls_during(FrameDecoder().receive_data, stream) <= 3 * 1000 + 50

    def test_an_answer_costs_two_calls(self):
        assert calls_during(FrameDecoder().receive_data, wire(b"x" * 64)) <= 2
        assert calls_during(FrameDecoder().receive_data, wire([b"", b"x" * 64])) <= 3

    def test_what_is_read_of_a_stream_costs_few_calls_however_many_messages_are_in_it(self):
        """The rest of a message, a run that goes on, and the beginning of another message."""
        decoder, stream = FrameDecoder(), wire(*[b"x" * 1024] * 500)
        decoder.receive_data(stream[:100_000])
        assert calls_during(decoder.receive_data, stream[100_000:165_536]) <= 30
        assert calls_during(decoder.receive_data, stream[165_536:427_680]) <= 40

    def test_a_long_answer_costs_six_calls(self):
        assert calls_during(FrameDecoder().receive_data, wire(b"x" * 1000)) <= 7

    def test_a_long_message_costs_two_calls(self):
        stream = wire(*[b"x" * (300 + i % 64) for i in range(1000)])
        assert calls_during(FrameDecoder().receive_data, stream) <= 2 * 1000 + 150

    @pytest.mark.parametrize("message", [[b"x" * 64] * 5, [b"id", b"", b"x" * 1000]])
    def test_messages_of_frames_of_the_same_sizes_cost_no_call_each(self, message):
        """The lists are made by C, in one call for a whole window."""
        stream = wire(*[message] * 1000)
        assert calls_during(FrameDecoder().receive_data, stream) <= 300

    def test_a_part_costs_three_calls(self):
        stream = wire(*[[b"x" * (64 + i % 8 + j) for j in range(5)] for i in range(200)])
        assert calls_during(FrameDecoder().receive_data, stream) <= 3 * 1000 + 350

    def test_messages_that_are_seldom_alike_are_not_compared_again_and_again(self):
        stream = wire(*[[b"id", b"x" * (1 + i // 4 % 2)] for i in range(2000)])
        assert calls_during(FrameDecoder().receive_data, stream) <= (3 + 4) * 2000 + 300
