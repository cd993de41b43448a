"""Which blocks of the KV cache the engine has: those of the prompt that it has read last.

llama.cpp with one slot keeps the sequence before, as far as the next one begins like it. A block's
hash is made of its tokens and of its parent's hash, so equal hashes mean equal beginnings.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from zerohop.serving import BlockRemoved, BlockStored

if TYPE_CHECKING:
    from zerohop.serving.kv.events import BlockHash, KvEvent

BLOCK_SIZE = 8  # tokens; engines have 16 or more, but the questions here are short


class PromptBlocks:
    """The blocks of one prompt, until the next one takes their place."""

    def __init__(self) -> None:
        self._hashes: list[BlockHash] = []

    def replace(self, token_ids: list[int]) -> list[KvEvent]:
        """Take the blocks of this prompt, its full ones, and return the events of what changed."""
        hashes = _hashes(token_ids)
        removed = [each for each in self._hashes if each not in hashes]
        stored = [each for each in hashes if each not in self._hashes]
        kept = len(hashes) - len(stored)
        self._hashes = hashes
        events: list[KvEvent] = []
        if removed:
            events.append(BlockRemoved(removed, "CPU"))
        if stored:
            parent = hashes[kept - 1] if kept else None
            tokens = token_ids[kept * BLOCK_SIZE : len(hashes) * BLOCK_SIZE]
            events.append(BlockStored(stored, parent, [*tokens], BLOCK_SIZE, medium="CPU"))
        return events


def _hashes(token_ids: list[int]) -> list[BlockHash]:
    hashes: list[BlockHash] = []
    parent = b""
    for end in range(BLOCK_SIZE, len(token_ids) + 1, BLOCK_SIZE):
        block = repr(token_ids[end - BLOCK_SIZE : end]).encode()
        parent = hashlib.sha256(parent + block).digest()[:8]
        hashes.append(int.from_bytes(parent))
    return hashes
