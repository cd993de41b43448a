"""The operations of LMCache's MP server, as a protocol that handlers are declared against.

How many arguments an operation has is known of the latest release, and of the few that never
changed but for PING; what else is asked for in an older release is taken as it comes.
"""

from __future__ import annotations

from typing import Any

from zerohop.serving.control.lmcache.frames import PING_HAS_NO_ARGUMENT
from zerohop.serving.control.lmcache.releases import LATEST, OPERATIONS, operation_number
from zerohop.serving.control.protocol import Operation, Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["lmcache_protocol"]

_SAME_EVER_SINCE: dict[str, tuple[Any, ...]] = {"noop": (), "get_chunk_size": ()}
_LATEST: dict[str, tuple[Any, ...]] = {
    "register_kv_cache": (int, Any, str, int, Any, Any, Any),
    "unregister_kv_cache": (int,),
    "register_q_cache": (int, Any, str, int, Any, Any, Any),
    "unregister_q_cache": (int,),
    "store_q": (Any, int, Any, bytes),
    "store": (Any, int, Any, bytes),
    "retrieve": (Any, int, Any, bytes, int),
    "lookup": (Any, int),
    "query_prefetch_status": (str,),
    "wait_prefetch_status": (str, float),
    "free_lookup_locks": (Any, int),
    "end_session": (str,),
    "register_kv_cache_engine_driven_context": (dict[str, Any],),
    "unregister_kv_cache_engine_driven_context": (int,),
    "prepare_store": (Any, int),
    "commit_store": (Any, int, bytes),
    "prepare_retrieve": (Any, int),
    "commit_retrieve": (Any, int),
    "clear": (bool,),
    "ping": (int | None,),
    "report_block_allocation": (int, str, Any),
    "cb_register_rope": (int, Any, int, bool, Any, Any, Any, str),
    "cb_unregister_rope": (int,),
    "cb_retrieve_pre_computed": (Any, Any, Any, int, bytes),
    "cb_unified_lookup": (Any, int),
    "cb_reorder_plan": (Any, int, int),
    "cb_protocol_handshake": (int,),
    "p2p_lookup_and_lock": (Any, Any),
    "p2p_query_lookup_results": (int,),
    "p2p_unlock_objects": (Any,),
    "get_experimental": (),
    "server_module_call": (Any,),
    **_SAME_EVER_SINCE,
}


def lmcache_protocol(names: Iterable[str], release: str = LATEST) -> Protocol:
    """Return the protocol of an MP server with these operations, and PING.

    Raises:
        ValueError: the release does not have one of them, or no PING.
    """
    operations = [_operation(name, release) for name in dict.fromkeys([*names, "ping"])]
    return Protocol(f"LMCache {release}", tuple(operations))


def _operation(name: str, release: str) -> Operation:
    number = operation_number(name, release)
    if name not in (_LATEST if release == LATEST else OPERATIONS[release]):
        raise ValueError(f"LMCache {release} has no operation {name!r} that could be served")
    if name == "ping" and release in PING_HAS_NO_ARGUMENT:
        return Operation(name, (), number=number)
    if name == "clear" and release == LATEST:
        return Operation(name, _LATEST[name], optional=1, number=number)
    known = _LATEST if release == LATEST else {"ping": _LATEST["ping"], **_SAME_EVER_SINCE}
    return Operation(name, known.get(name), number=number)
