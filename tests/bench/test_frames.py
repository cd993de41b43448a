"""The floor's framing is ZMTP's."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.floor.frames import CHUNK, LONG_HEADER, Decoder, encode

messages = st.lists(
    st.one_of(st.binary(max_size=300), st.lists(st.binary(max_size=300), min_size=2, max_size=4)),
    max_size=8,
)


def wire_of(sent):
    return b"".join(encode(m if isinstance(m, list) else [m]) for m in sent)


def decode(chunks):
    came = []
    decoder = Decoder(came.append)
    for chunk in chunks:
        decoder.receive_data(chunk)
    return came


def test_a_short_frame_is_flags_size_body():
    assert encode([b"hello"]) == bytes.fromhex("00 05") + b"hello"


def test_a_long_frame_has_eight_octets_of_size():
    assert encode([b"x" * 256]) == bytes.fromhex("02 00000000 00000100") + b"x" * 256


def test_all_frames_but_the_last_say_that_more_follow():
    assert encode([b"a", b"bc"]) == bytes.fromhex("01 01 61 00 02 6263")


@settings(deadline=None)  # a busy machine is not a bug
@given(messages, st.lists(st.integers(0, 3000), max_size=20))
def test_how_the_stream_is_cut_does_not_matter(sent, cuts):
    wire = wire_of(sent)
    edges = [0, *sorted(min(cut, len(wire)) for cut in cuts), len(wire)]
    assert decode(wire[a:b] for a, b in zip(edges, edges[1:])) == sent


@pytest.mark.parametrize("step", [1000, CHUNK, 1 << 18])
def test_large_frames_are_collected_and_what_follows_is_not_swallowed(step):
    large = bytes(range(256)) * 1000
    sent = [b"first", large, [b"head", large, b"tail"], b"last"]
    wire = wire_of(sent)
    assert decode(wire[at : at + step] for at in range(0, len(wire), step)) == sent


def test_a_reader_asks_for_the_rest_of_a_large_frame_and_then_for_the_next_header():
    large, came = bytes(1 << 20), []
    decoder, wire = Decoder(came.append), encode([large])
    assert decoder.wanted == CHUNK
    decoder.receive_data(wire[:CHUNK])
    assert decoder.wanted == decoder.missing == len(wire) - CHUNK
    decoder.receive_data(wire[CHUNK:])
    assert (came, decoder.wanted) == ([large], LONG_HEADER)
    decoder.receive_data(wire[:LONG_HEADER])
    assert decoder.wanted == len(large)


def test_what_is_no_header_of_a_large_frame_is_read_as_usual_again():
    decoder = Decoder([].append)
    decoder.receive_data(encode([bytes(1 << 20)]))
    decoder.receive_data(encode([b"longer than nine"])[:LONG_HEADER])
    assert decoder.wanted == CHUNK


def test_a_body_that_came_in_one_piece_is_not_copied():
    body, came = bytes(1 << 20), []
    decoder = Decoder(came.append)
    decoder.receive_data(encode([body])[:LONG_HEADER])
    decoder.receive_data(body)
    assert came[0] is body


def test_whoever_collects_a_large_body_elsewhere_brings_it():
    large, came = bytes(range(256)) * 1000, []
    decoder, wire = Decoder(came.append), encode([large])
    decoder.receive_data(encode([b"first"]) + wire[:1000])
    body = bytearray(decoder.head()) + wire[1000:]
    assert len(body) == len(decoder.head()) + decoder.missing
    decoder.finish_large(body)
    decoder.receive_data(encode([b"last"]))
    assert came == [b"first", large, b"last"]
