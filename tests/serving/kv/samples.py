"""Batches for the tests, and strategies that draw them."""

import json
from pathlib import Path

from hypothesis import strategies as st

from zerohop.serving.kv.events import AllBlocksCleared, BlockRemoved, BlockStored, EventBatch

DATA = Path(__file__).parents[2] / "data" / "kv_events"
GOLDEN = {
    version: bytes.fromhex(octets)
    for version, octets in json.loads((DATA / "vllm_golden.json").read_text()).items()
    if version != "about"
}
CAPTURED = [
    [bytes.fromhex(frame) for frame in message]
    for message in json.loads((DATA / "vllm_0_32_capture.json").read_text())["messages"]
]

TOKENS = list(range(100, 132))
HASHES = [1, 2**63 + 5]  # of the golden batch

# Drawn from few values: what is drawn freely and by the dozen takes seconds.
_text = st.sampled_from([None, "GPU", "CPU_PINNED", "a"])
_small = st.sampled_from([None, 0, 1, 200, 70_000])
hashes = st.sampled_from([0, 1, -(2**63), 2**64 - 1, 2**63 + 5, b"\x01" * 8, b"\xff" * 32])
tokens = st.sampled_from(
    [[], [0, 1, 127, 128, 2**32], ["a", ""], [[1, 2], [2, 3]], list(range(40))]
)
stored = st.builds(
    BlockStored,
    st.lists(hashes, max_size=3),
    st.none() | hashes,
    tokens,
    st.integers(0, 64),
    _small,
    *(_text, _text),
    st.sampled_from([None, [], [None, ["salt", b"\xff"]]]),
    *(_small, _text, _small, _text, _text, _text, _text),
    st.sampled_from([None, [[{"type": "mm_key", "hash": "ab"}], []]]),
)
removed = st.builds(
    BlockRemoved, st.lists(hashes, max_size=3), _text, _small, locality=_text, ownership=_text
)
events = stored | removed | st.builds(AllBlocksCleared)
batches = st.builds(
    EventBatch,
    st.sampled_from([0.0, 1.5, 1.8e9]),
    st.lists(events, max_size=3),
    _small,
)
