"""The floor's framing is ZMTP's."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.floor.frames import CHUNK, LARGE_CHUNK, Decoder, encode

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


@pytest.mark.parametrize("step", [1000, CHUNK, LARGE_CHUNK])
def test_large_frames_are_collected_and_what_follows_is_not_swallowed(step):
    large = bytes(range(256)) * 1000
    sent = [b"first", large, [b"head", large, b"tail"], b"last"]
    wire = wire_of(sent)
    assert decode(wire[at : at + step] for at in range(0, len(wire), step)) == sent


def test_a_reader_asks_for_more_while_a_large_frame_is_on_its_way():
    decoder = Decoder([].append)
    assert decoder.wanted == CHUNK
    decoder.receive_data(encode([bytes(1 << 20)])[:CHUNK])
    assert decoder.wanted == LARGE_CHUNK
