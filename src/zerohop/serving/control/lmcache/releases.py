"""The number of each operation of LMCache's MP server, in each release.

Up to 0.5.3 the numbers were counted anew with each operation that was put in between, so what is
one operation in one release is another in the next: 0.4.6's PING runs CLEAR on 0.5.0. From 0.5.6 on
those that have a number keep it, and new operations have none: they go by their name. So a
number means nothing without a release, and none is ever tried to see what it does.
"""

from __future__ import annotations

__all__ = [
    "LATEST",
    "OPERATIONS",
    "RELEASES",
    "check_release",
    "operation_name",
    "operation_number",
]

RELEASES = (
    *("0.3.9.post2", "0.3.12", "0.3.15", "0.4.1", "0.4.2", "0.4.3", "0.4.4", "0.4.5"),
    *("0.4.6", "0.4.7", "0.5.0", "0.5.3", "0.5.6"),
)
LATEST = RELEASES[-1]

# One line an operation, one column a release; 0.4.4 and 0.4.5 number as 0.4.3 does.
_COLUMNS = (*RELEASES[:6], *RELEASES[8:])
_SAME = {"0.4.4": "0.4.3", "0.4.5": "0.4.3"}
_TABLE = """
register_kv_cache                          1  1  1  1  1  1  1  1  1  1  1
unregister_kv_cache                        2  2  2  2  2  2  2  2  2  2  2
store                                      3  3  3  3  3  3  3  3  3  6  6
retrieve                                   4  4  4  4  4  4  4  4  4  7  7
lookup                                     5  5  5  5  5  5  5  5  5  8  8
noop                                       6  8  9 11 12 14 19 20 21 24 24
clear                                      -  6  7  9  9 10 15 16 17 20 20
get_chunk_size                             -  7  8 10 10 11 16 17 18 21 21
end_session                                -  -  6  8  8  9  9  9 10 13 13
cb_register_kv_cache                       -  - 10 12 13 15 20 21 22 25  -
cb_unregister_kv_cache                     -  - 11 13 14 16 21 22 23 26  -
cb_store_pre_computed                      -  - 12 14 15 17 22 23 24 27  -
cb_lookup_pre_computed                     -  - 13 15 16 18 23 24 25 28  -
cb_retrieve_pre_computed                   -  - 14 16 17 19 24 25 26 29 27
cb_store_final                             -  - 15 17 18 20 25 26 27 30  -
query_prefetch_status                      -  -  -  6  6  6  6  6  6  9  9
free_lookup_locks                          -  -  -  7  7  8  8  8  9 12 12
cb_lookup_pre_computed_v2                  -  -  - 18 19 21 26 27 28 31  -
cb_retrieve_pre_computed_v2                -  -  - 19 20 22 27 28 29 32  -
ping                                       -  -  -  - 11 12 17 18 19 22 22
query_prefetch_lookup_hits                 -  -  -  -  -  7  7  7  8 11  -
report_block_allocation                    -  -  -  -  - 13 18 19 20 23 23
register_kv_cache_non_gpu_context          -  -  -  -  -  - 10 10  -  -  -
prepare_store                              -  -  -  -  -  - 11 12 13 16 16
commit_store                               -  -  -  -  -  - 12 13 14 17 17
prepare_retrieve                           -  -  -  -  -  - 13 14 15 18 18
commit_retrieve                            -  -  -  -  -  - 14 15 16 19 19
unregister_kv_cache_non_gpu_context        -  -  -  -  -  -  - 11  -  -  -
cb_register_rope_v3                        -  -  -  -  -  -  - 29 30 33  -
cb_unregister_rope_v3                      -  -  -  -  -  -  - 30 31 34  -
cb_retrieve_pre_computed_v3                -  -  -  -  -  -  - 31 32 35  -
cb_unified_lookup                          -  -  -  -  -  -  - 32 33 36 28
wait_prefetch_status                       -  -  -  -  -  -  -  -  7 10 10
register_kv_cache_engine_driven_context    -  -  -  -  -  -  -  - 11 14 14
unregister_kv_cache_engine_driven_context  -  -  -  -  -  -  -  - 12 15 15
p2p_lookup_and_lock                        -  -  -  -  -  -  -  - 34 37 29
p2p_query_lookup_results                   -  -  -  -  -  -  -  - 35 38 30
p2p_unlock_objects                         -  -  -  -  -  -  -  - 36 39 31
register_q_cache                           -  -  -  -  -  -  -  -  -  3  3
unregister_q_cache                         -  -  -  -  -  -  -  -  -  4  4
store_q                                    -  -  -  -  -  -  -  -  -  5  5
get_experimental                           -  -  -  -  -  -  -  -  - 40 32
cb_register_rope                           -  -  -  -  -  -  -  -  -  - 25
cb_unregister_rope                         -  -  -  -  -  -  -  -  -  - 26
cb_protocol_handshake                      -  -  -  -  -  -  -  -  -  - 33
"""


def _read_table() -> dict[str, dict[str, int]]:
    numbers: dict[str, dict[str, int]] = {release: {} for release in _COLUMNS}
    for line in _TABLE.strip().splitlines():
        name, *cells = line.split()
        for release, cell in zip(_COLUMNS, cells, strict=True):
            if cell != "-":
                numbers[release][name] = int(cell)
    return {release: numbers[_SAME.get(release, release)] for release in RELEASES}


OPERATIONS = _read_table()
"""Of each release: the operations by name, with their numbers."""

_NAMES = {
    release: {number: name for name, number in operations.items()}
    for release, operations in OPERATIONS.items()
}


def check_release(release: str) -> str:
    """Return the release, if it is one that is known here.

    Raises:
        ValueError: it is not.
    """
    if release not in RELEASES:
        raise ValueError(f"no release {release!r:.64} of LMCache is known: {', '.join(RELEASES)}")
    return release


def operation_number(name: str, release: str = LATEST) -> int | None:
    """Return the number that an operation has in a release.

    Returns:
        ``None`` where it has none: the release knows it by its name alone, or not at all.

    Raises:
        KeyError: a release that is not in :data:`RELEASES`.
    """
    return OPERATIONS[release].get(name)


def operation_name(number: int, release: str = LATEST) -> str | None:
    """Return the operation that a number stands for in a release, ``None`` where it is nobody's.

    Raises:
        KeyError: a release that is not in :data:`RELEASES`.
    """
    return _NAMES[release].get(number)
