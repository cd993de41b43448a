"""``zerohop kv play``: what was recorded, published again at its own pace or another."""

from __future__ import annotations

import contextlib
import sys

import zerohop as zmq
from zerohop.serving import BatchRecording, play_batches
from zerohop.serving.kv.replies import seq_octets
from zerohop.serving.wording import counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace

    from zerohop.serving.kv.recording import Recorded

__all__ = ["run"]

_LINGER = 10_000  # milliseconds for what is still to be sent at the end
_SHARE = 0.1  # seconds that each topic is waited for at a time


def run(options: Namespace) -> int:
    """Publish all of the file, and end when it is sent."""
    recording = BatchRecording(options.file)
    with zmq.Context() as context, context.socket(zmq.PUB) as pub:
        pub.linger, pub.sndhwm = 0, 0  # nothing of a file is to be dropped
        pub.ipv6 = "[" in options.endpoint
        pub.bind(options.endpoint)
        endpoint = pub.last_endpoint.decode()
        topics = {recorded.topic for recorded in recording}
        if options.wait and topics:
            _say(f"{endpoint} waits for {counted(options.wait, 'subscriber')}")
            _wait(pub, topics, options.wait)
        _say(f"{endpoint} plays")

        def send(recorded: Recorded) -> None:
            pub.send_multipart([recorded.topic, seq_octets(recorded.seq), recorded.payload])

        count = play_batches(recording, send, options.speed)
        pub.close(linger=_LINGER)
    _say(f"{counted(count, 'batch')} played")
    if recording.is_cut_off:
        _say(f"the end of {options.file} is missing")
    return 0


def _wait(pub: zmq.Socket, topics: set[bytes], subscribers: int) -> None:
    """Wait until so many would get what has one of these topics."""
    while True:
        for topic in topics:
            with contextlib.suppress(zmq.Again):
                pub.wait_for_subscribers(topic, subscribers, timeout=_SHARE)
                return


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
