"""What the two processes agree on, beyond the engine channel.

request       Prompt
delta         its tokens, and as `extra` their text
info          model, block_size, and kv_events and kv_replay: the endpoints of its KV events
utility       status() -> {"load_s": float, "answered": int, "next_seq": int}
"""

from __future__ import annotations

import msgspec


class Prompt(msgspec.Struct, array_like=True):
    """Answer `text` in at most `max_tokens` tokens."""

    text: str
    max_tokens: int
