"""``zerohop kv record`` and ``zerohop kv play``: what was published is published again."""

import json
import signal

import pytest

import zerohop as zmq
from tests.cli.commands import SECONDS, batch, publishing, running, wait_until
from zerohop.cli import main as cli
from zerohop.cli.main import main
from zerohop.serving import BatchRecorder, BatchRecording, KvEventPublisher

pytestmark = pytest.mark.timeout(60)
ANYWHERE = "tcp://127.0.0.1:*"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "events.kv"


@pytest.fixture
def recorded(path):
    """A file with ten batches in as many seconds."""
    with KvEventPublisher(ANYWHERE) as publisher, BatchRecorder(path) as recorder:
        for number in range(10):
            events = batch(number)
            payload = publisher._encoder.encode_events(float(number), events, 0)
            recorder.record(number, payload, b"kv", at=float(number))
    return path


def endpoint_of(process):
    """Where a player is, as its first line says."""
    return process.stderr.readline().split()[0]


def test_what_is_published_is_in_the_file_octet_for_octet(path, capsys):
    with KvEventPublisher(topic="kv@pod") as publisher, publishing(publisher, batch(3)):
        assert main(["kv", "record", str(path), publisher.endpoint, "--count", "5"]) == 0
        recording = BatchRecording(path)
        found = list(recording)
    assert len(found) == 5
    assert [each.seq for each in found] == list(range(found[0].seq, found[0].seq + 5))
    assert {each.topic for each in found} == {b"kv@pod"}
    assert recording.about["endpoints"] == [publisher.endpoint]
    assert capsys.readouterr().err == f"5 batches in {path}\n"


def ranks_in(path):
    return {each.payload[-1] for each in BatchRecording(path)}


@pytest.mark.parametrize(
    ("number", "status"),
    [(signal.SIGINT, cli.INTERRUPTED), (signal.SIGTERM, cli.TERMINATED)],
    ids=["ctrl_c", "sigterm"],
)
def test_the_ranks_of_a_worker_are_recorded_together_until_a_signal_ends_it(path, number, status):
    with (
        KvEventPublisher(dp_rank=0) as first,
        KvEventPublisher(dp_rank=1) as second,
        publishing(first),
        publishing(second),
        running("kv", "record", str(path), first.endpoint, second.endpoint) as process,
    ):
        wait_until(lambda: path.exists() and path.stat().st_size)  # it begins with nothing in it
        wait_until(lambda: ranks_in(path) == {0, 1})
        process.send_signal(number)
        _, told = process.communicate(timeout=SECONDS)
    recording = BatchRecording(path)
    assert told == f"{len(list(recording))} batches in {path}\n"
    assert not recording.is_cut_off
    assert process.returncode == status


def test_what_is_no_batch_is_told_and_not_recorded(path, capsys, ipc_directory):
    endpoint = f"ipc://{ipc_directory}/record"
    with zmq.Context() as context, context.socket(zmq.PUB) as pub:
        pub.connect(endpoint)
        with running("kv", "record", str(path), endpoint, "--bind", "--count", "1") as process:
            pub.wait_for_subscribers(timeout=SECONDS)
            pub.send(b"hello")
            pub.send_multipart([b"", bytes(8), b"payload"])
            _, told = process.communicate(timeout=SECONDS)
    assert process.returncode == 0
    assert "not recorded: malformed message" in told
    assert [each.payload for each in BatchRecording(path)] == [b"payload"]


def test_a_file_is_played_as_fast_as_wanted_and_in_order(recorded, capsys):
    with running("kv", "play", str(recorded), "--endpoint", ANYWHERE, "--speed", "max") as player:
        endpoint = endpoint_of(player)
        assert main(["kv", "tail", endpoint, "--count", "10", "--json"]) == 0
        _, told = player.communicate(timeout=SECONDS)
    assert player.returncode == 0
    assert told.endswith("10 batches played\n")
    shown = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(each["seq"], each["ts"]) for each in shown] == [(seq, float(seq)) for seq in range(10)]


def test_times_are_kept_and_scaled(recorded, capsys):
    """Nine seconds, a hundred times as fast; the clock itself is that of play_batches' tests."""
    with running("kv", "play", str(recorded), "--endpoint", ANYWHERE, "--speed", "100") as player:
        endpoint = endpoint_of(player)
        assert main(["kv", "tail", endpoint, "--count", "10", "--json"]) == 0
        assert player.wait(SECONDS) == 0
    assert len(capsys.readouterr().out.splitlines()) == 10


def test_a_player_that_waits_for_nobody_plays_to_nobody(recorded, capsys):
    arguments = ["--endpoint", ANYWHERE, "--speed", "max", "--wait", "0"]
    assert main(["kv", "play", str(recorded), *arguments]) == 0
    assert capsys.readouterr().err.endswith("10 batches played\n")


def test_a_file_without_batches_is_played_at_once(path, capsys):
    BatchRecorder(path).close()
    assert main(["kv", "play", str(path), "--endpoint", ANYWHERE]) == 0
    assert capsys.readouterr().err.endswith("0 batches played\n")


def test_a_file_whose_end_is_missing_is_played_as_far_as_it_goes(recorded, capsys):
    recorded.write_bytes(recorded.read_bytes()[:-3])
    arguments = ["--endpoint", ANYWHERE, "--speed", "max", "--wait", "0"]
    assert main(["kv", "play", str(recorded), *arguments]) == 0
    told = capsys.readouterr().err.splitlines()
    assert told[-2:] == ["9 batches played", f"the end of {recorded} is missing"]


def test_what_is_no_recording_is_told(path, capsys):
    path.write_bytes(b"PK\x03\x04 something else")
    assert main(["kv", "play", str(path), "--endpoint", ANYWHERE]) == cli.FAILED
    assert capsys.readouterr().err == f"zerohop: {path} is no recording of KV events\n"


def test_one_batch_and_one_subscriber_are_told_in_the_singular(path, capsys):
    with BatchRecorder(path) as recorder:
        recorder.record(0, b"payload")
    with running("kv", "play", str(path), "--endpoint", ANYWHERE) as player:
        line = player.stderr.readline()
        assert main(["kv", "record", f"{path}-2", line.split()[0], "--count", "1"]) == 0
        _, told = player.communicate(timeout=SECONDS)
    assert line.endswith(" waits for 1 subscriber\n")
    assert told.endswith("1 batch played\n")
    assert capsys.readouterr().err == f"1 batch in {path}-2\n"


def test_ctrl_c_ends_a_player(recorded):
    with running("kv", "play", str(recorded), "--endpoint", ANYWHERE, "--wait", "2") as player:
        endpoint_of(player)
        player.send_signal(signal.SIGINT)
        _, told = player.communicate(timeout=SECONDS)
    assert player.returncode == cli.INTERRUPTED
    assert "Traceback" not in told
