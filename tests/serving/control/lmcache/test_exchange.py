"""A controller and a worker without their sockets: what they make of frames, and of nonsense."""

from itertools import repeat

import pytest

from zerohop.serving.control.lmcache.exchange import (
    ControllerExchange,
    WorkerExchange,
    where_to_beat,
)
from zerohop.serving.control.lmcache.messages import (
    Failure,
    Operations,
    Register,
    RegisterReply,
    WorkerOperation,
    decode_message,
    encode_message,
)
from zerohop.serving.control.lmcache.reporter import LmcacheReporter
from zerohop.serving.control.lmcache.table import ControllerTable

WHO = Register("i", 0, "127.0.0.1", 1)
ADMITTED = Operations("i", 0, "cpu", [WorkerOperation("admit", 5, 0)])


@pytest.fixture
def controller():
    return ControllerExchange(ControllerTable("127.0.0.1:9"))


def make_worker(url="127.0.0.1:9"):
    """One that is registered, and has said so."""
    worker = WorkerExchange(LmcacheReporter(WHO, "cpu", repeat(0.5)), "tcp://10.0.0.7:80")
    assert worker.data_to_send(0.0) == [("reply", [b"", encode_message(WHO)])]
    worker.receive([b"", encode_message(RegisterReply({"heartbeat_url": url} if url else {}))], 0.0)
    return worker


class TestController:
    def test_answers_what_is_asked_and_takes_what_is_pushed(self, controller):
        [[route, empty, reply]] = controller.answer([b"r", b"", encode_message(WHO)], 0.0)
        assert (route, empty) == (b"r", b"")
        assert decode_message(reply) == RegisterReply({"heartbeat_url": "127.0.0.1:9"})
        controller.take([encode_message(ADMITTED)], 0.0)
        assert controller.table.keys(("i", 0), "cpu") == {5}

    def test_has_no_reply_to_what_is_no_question(self, controller):
        assert controller.answer([b"r", b"", encode_message(ADMITTED)], 0.0) == []

    def test_counts_what_it_cannot_read_and_takes_what_follows(self, controller):
        controller.answer([b"r", b"", encode_message(WHO)], 0.0)
        controller.take([b"\xc1", encode_message(ADMITTED)], 0.0)
        [[_, _, reply]] = controller.answer([b"r", b"", b"", b""], 0.0)
        assert isinstance(decode_message(reply), Failure)
        assert controller.table.keys(("i", 0), "cpu") == {5}
        assert controller.malformed == 2
        [line] = controller.lines_to_log()
        assert line.startswith("LMCache controller: malformed message of 1 octet")
        assert controller.lines_to_log() == []


class TestWorker:
    def test_pushes_bare_messages_and_asks_with_a_delimiter(self):
        worker = make_worker()
        worker.reporter.admit(5)
        places = dict(worker.data_to_send(0.0))
        assert places["push"] == [encode_message(ADMITTED)]
        assert places["heartbeat"][0] == b""

    @pytest.mark.parametrize(
        ("url", "endpoint"),
        [
            ("10.0.0.8:9", "tcp://10.0.0.8:9"),
            ("0.0.0.0:9", "tcp://10.0.0.7:9"),
            ("tcp://0.0.0.0:9", "tcp://10.0.0.7:9"),
            ("ipc:///tmp/beats", "ipc:///tmp/beats"),
        ],
    )
    def test_is_told_once_where_to_beat(self, url, endpoint):
        worker = make_worker(url)
        assert worker.new_heartbeat() == endpoint
        assert worker.new_heartbeat() is None

    def test_may_have_nowhere_to_beat(self):
        assert make_worker(None).new_heartbeat() is None

    def test_counts_what_it_cannot_read(self):
        worker = make_worker()
        worker.receive([b"", b"\xc1"], 0.0)
        worker.receive([b"", b"", b""], 0.0)
        assert worker.malformed == 2
        [line] = worker.lines_to_log()
        assert line.startswith("LMCache worker: malformed message of 1 octet")


class TestWhereToBeat:
    @pytest.mark.parametrize(
        ("bound", "host", "told"),
        [
            ("tcp://127.0.0.1:9", None, "127.0.0.1:9"),
            ("tcp://0.0.0.0:9", "cache", "cache:9"),
            ("tcp://[::]:9", "[::1]", "[::1]:9"),
            ("ipc:///tmp/beats", None, "ipc:///tmp/beats"),
        ],
    )
    def test_is_a_place_that_can_be_reached(self, bound, host, told):
        assert where_to_beat(bound, host) == told

    @pytest.mark.parametrize("bound", ["tcp://0.0.0.0:9", "tcp://[::]:9"])
    def test_is_asked_of_the_user_where_every_interface_is_bound(self, bound):
        with pytest.raises(ValueError, match="name the host by which workers reach it"):
            where_to_beat(bound, None)
