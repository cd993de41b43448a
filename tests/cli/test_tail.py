"""``zerohop kv tail``: lines, JSON, and a table that is drawn over itself."""

import contextlib
import io
import json
import os
import pty
import re
import signal
import threading

import pytest
import zmq as pyzmq

import zerohop as zmq
from tests.cli.commands import SECONDS, batch, publishing, running
from tests.serving.kv import samples
from zerohop.cli import main as cli
from zerohop.cli import tail
from zerohop.cli.main import main
from zerohop.serving import EventBatch, KvEventPublisher, Lost, Snapshot
from zerohop.serving.kv.replies import seq_octets

pytestmark = pytest.mark.timeout(60)
ANYWHERE = "tcp://127.0.0.1:*"


@pytest.fixture
def publisher():
    """One that has published ten batches, which can be replayed."""
    with KvEventPublisher(replay=ANYWHERE) as it:
        for number in range(10):
            it.publish(batch(number), float(number))
        assert it.flush(SECONDS)
        yield it


def replayed(publisher):
    return [publisher.endpoint, "--replay", publisher.replay_endpoint]


def test_json_has_an_object_a_line_and_batch_and_ends_after_count(publisher, capsys):
    assert main(["kv", "tail", *replayed(publisher), "--count", "7", "--json"]) == 0
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [each["seq"] for each in told] == list(range(7))
    assert [each["ts"] for each in told] == [float(seq) for seq in range(7)]
    assert {each["dp_rank"] for each in told} == {0}
    assert [event["type"] for event in told[6]["events"]] == ["BlockStored", "BlockRemoved"]
    assert told[6]["events"][0]["block_hashes"] == [12, 13]
    assert told[6]["events"][0]["medium"] == "GPU"
    assert told[6]["events"][1]["block_hashes"] == [2]


def test_lines_tell_each_batch_and_the_totals_at_the_end(publisher, capsys):
    assert main(["kv", "tail", *replayed(publisher), "--count", "10"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "0 rank 0: 2 stored (GPU)"
    assert lines[9] == "9 rank 0: 2 stored (GPU), 1 removed (GPU)"
    head, totals = lines[10:]
    assert head.split()[:4] == ["worker", "rank", "health", "seq"]
    assert totals.startswith(publisher.endpoint)
    assert "GPU 15" in totals


def test_what_vllm_sends_is_read_from_libzmq(capsys):
    with pyzmq.Context() as context, context.socket(pyzmq.XPUB) as pub:
        pub.bind(ANYWHERE)

        def publish():
            assert pub.recv() == b"\x01kv"  # the subscription
            for frames in samples.CAPTURED:
                pub.send_multipart(frames)

        thread = threading.Thread(target=publish)
        thread.start()
        endpoint = pub.last_endpoint.decode()
        assert main(["kv", "tail", endpoint, "--topic", "kv", "--count", "2", "--json"]) == 0
        thread.join()
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [each["seq"] for each in told] == [0, 1]
    stored = told[0]["events"][0]
    assert stored["type"] == "BlockStored"
    assert stored["block_size"] * len(stored["block_hashes"]) == len(stored["token_ids"])


def test_without_a_replay_what_was_missed_is_told_beside_the_batches(publisher, capsys):
    with publishing(publisher):
        assert main(["kv", "tail", publisher.endpoint, "--count", "2", "--json"]) == 0
    shown = capsys.readouterr()
    first, second = (json.loads(line) for line in shown.out.splitlines())
    assert first["seq"] >= 10
    assert second["seq"] == first["seq"] + 1
    assert "lost: " in shown.err


def test_only_the_topics_that_are_asked_for_are_shown(capsys):
    with zmq.Context() as context, context.socket(zmq.PUB) as pub:
        pub.bind(ANYWHERE)

        def publish():
            pub.wait_for_subscribers(b"kv@b", timeout=SECONDS)
            for topic, seq in ((b"kv@a", 0), (b"kv@b", 0), (b"kv@a", 1), (b"kv@b", 1)):
                pub.send_multipart([topic, seq_octets(seq), b"\x93\xcb" + bytes(8) + b"\x90\x00"])

        thread = threading.Thread(target=publish)
        thread.start()
        endpoint = pub.last_endpoint.decode()
        assert main(["kv", "tail", endpoint, "--topic", "kv@b", "--count", "2", "--json"]) == 0
        thread.join()
    assert [json.loads(line)["seq"] for line in capsys.readouterr().out.splitlines()] == [0, 1]


def test_a_publisher_that_connects_is_waited_for(tmp_path, ipc_directory, capsys):
    endpoint = f"ipc://{ipc_directory}/tail"
    with KvEventPublisher(endpoint, bind=False) as publisher, publishing(publisher):
        assert main(["kv", "tail", endpoint, "--bind", "--count", "1", "--json"]) == 0
    assert '"seq":' in capsys.readouterr().out


def test_every_line_is_out_at_once(publisher):
    with running("kv", "tail", *replayed(publisher), "--json") as process:
        lines = [json.loads(process.stdout.readline()) for _ in range(10)]
        assert [each["seq"] for each in lines] == list(range(10))
        assert process.poll() is None


def test_ctrl_c_leaves_the_totals(publisher):
    with running("kv", "tail", *replayed(publisher)) as process:
        for _ in range(10):
            process.stdout.readline()
        process.send_signal(signal.SIGINT)
        shown, complaints = process.communicate(timeout=SECONDS)
    assert process.returncode == cli.INTERRUPTED
    assert shown.startswith("worker")
    assert "Traceback" not in complaints


@pytest.mark.parametrize("arguments", [[], ["--json"]], ids=["lines", "json"])
def test_a_reader_that_goes_away_ends_it_quietly(publisher, arguments):
    with (
        publishing(publisher),
        running("kv", "tail", *replayed(publisher), *arguments) as process,
    ):
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(SECONDS) == cli.NOBODY_READS
        assert "Error" not in process.stderr.read()


def test_in_a_terminal_a_table_is_drawn_over_itself(publisher):
    ours, theirs = pty.openpty()
    with publishing(publisher), running("kv", "tail", *replayed(publisher), stdout=theirs) as it:
        os.close(theirs)
        shown = b""
        while shown.count(b"\x1b[2F\x1b[J") < 2:
            shown += os.read(ours, 65536)
        it.send_signal(signal.SIGINT)
        with contextlib.suppress(OSError):  # EIO: nobody writes any more
            while data := os.read(ours, 65536):
                shown += data
        it.wait(SECONDS)
    os.close(ours)
    assert it.returncode == cli.INTERRUPTED
    assert b"live" in shown.rpartition(b"\x1b[J")[2]


def test_a_notice_in_a_terminal_stands_above_the_table():
    out = io.StringIO()
    table = tail.LiveTable(out)
    table.refresh(1.0)
    table.deliver(Lost("w", 0, "too old"), 1.0)
    table.refresh(1.1)  # too soon
    table.refresh(2.0)
    table.end(3.0)
    head, notice, last = re.split("\x1b\\[.F\x1b\\[J", out.getvalue())
    assert head.startswith("worker")
    assert notice.startswith("w rank 0: lost: too old\nworker")
    assert "too old" not in last
    assert last.startswith("worker")


def test_a_snapshot_is_told_as_batches_without_a_number(capsys):
    screen = tail.JsonLines(io.StringIO())
    screen.deliver(Snapshot("w", 0, 9, (EventBatch(1.0, [], 0), EventBatch(2.0, [], 0))), 0.0)
    told = [json.loads(line) for line in screen._out.getvalue().splitlines()]
    assert [(each["seq"], each["ts"]) for each in told] == [(None, 1.0), (None, 2.0)]
    assert "a snapshot of 0 blocks, before batch 9" in capsys.readouterr().err


def test_where_nothing_comes_it_is_said_how_to_find_out_why(monkeypatch, capsys, listener):
    monkeypatch.setattr(tail, "_QUIET", 0.0)
    endpoint, _ = listener
    shown = threading.Event()

    class Impatient(tail.Lines):
        def say(self, line):
            super().say(line)
            shown.set()
            raise KeyboardInterrupt

    monkeypatch.setattr(tail, "Lines", Impatient)
    assert main(["kv", "tail", endpoint, "--topic", "kv@b"]) == cli.INTERRUPTED
    assert shown.is_set()
    told = capsys.readouterr().err
    assert told.startswith(f"nothing with topic kv@b from {endpoint} for 0 s; `zerohop ping")
