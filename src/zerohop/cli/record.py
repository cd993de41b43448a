"""``zerohop kv record``: what publishers send, octet for octet, into a file."""

from __future__ import annotations

import sys

import zerohop as zmq
from zerohop.serving import BatchRecorder, Malformed
from zerohop.serving.kv.replies import parse_live
from zerohop.serving.wording import counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace

__all__ = ["run"]

_HWM = 100_000  # batches that may wait to be written; vLLM's


def run(options: Namespace) -> int:
    """Record until ``--count`` batches are in the file, or for ever."""
    about = {"endpoints": options.endpoints, "topic": options.topic}
    with zmq.Context() as context, context.socket(zmq.SUB) as sub:
        sub.linger, sub.rcvhwm = 0, _HWM
        sub.ipv6 = any("[" in endpoint for endpoint in options.endpoints)
        sub.subscribe(options.topic)
        for endpoint in options.endpoints:
            if options.bind:
                sub.bind(endpoint)
            else:
                sub.connect(endpoint)
        with BatchRecorder(options.file, about) as recorder:
            try:
                _record(sub, recorder, options.count)
            finally:
                sys.stderr.write(f"{counted(recorder.count, 'batch')} in {options.file}\n")
    return 0


def _record(sub: zmq.Socket, recorder: BatchRecorder, count: int | None) -> None:
    while count is None or recorder.count < count:
        if not sub.poll(0):
            recorder.flush()  # what is in the file stays, whatever ends this process
        try:
            live = parse_live(sub.recv_multipart())
        except Malformed as error:
            sys.stderr.write(f"not recorded: {error}\n")
            continue
        recorder.record(live.seq, live.payload, live.topic)
