"""Files of batches: what is written is read, whatever the end of the file looks like."""

import os

import pytest

from tests.serving.kv import samples
from zerohop.serving import BatchRecorder, BatchRecording, Malformed, play_batches
from zerohop.serving.codec import pack
from zerohop.serving.kv.recording import Recorded


@pytest.fixture
def path(tmp_path):
    return tmp_path / "events.kv"


def record(path, count=3):
    with BatchRecorder(path, {"model": "m"}) as recorder:
        for seq in range(count):
            recorder.record(seq, b"payload %d" % seq, b"kv", at=seq / 2)
    return recorder


def test_what_is_recorded_is_read_in_order_and_again(path):
    assert record(path).count == 3
    recording = BatchRecording(path)
    expected = [Recorded(seq / 2, b"kv", seq, b"payload %d" % seq) for seq in range(3)]
    assert list(recording) == expected
    assert list(recording) == expected
    assert recording.about["model"] == "m"
    assert recording.about["began"] > 1e9
    assert not recording.is_cut_off


def test_times_are_since_the_beginning(path):
    with BatchRecorder(path) as recorder:
        recorder.record(0, samples.CAPTURED[0][-1])
        recorder.flush()
        [found] = BatchRecording(path)
    assert found.payload == samples.CAPTURED[0][-1]
    assert 0 <= found.at < 10


def test_a_file_that_is_cut_off_has_what_was_before_the_cut(path):
    record(path)
    whole = path.read_bytes()
    ends = {len(list(_cut(path, whole, size))) for size in range(len(whole) - 40, len(whole) + 1)}
    assert ends == {1, 2, 3}
    recording = BatchRecording(_write(path, whole[:-1]))
    assert len(list(recording)) == 2
    assert recording.is_cut_off


def _write(path, octets):
    path.write_bytes(octets)
    return path


def _cut(path, whole, size):
    return BatchRecording(_write(path, whole[:size]))


@pytest.mark.parametrize(
    "octets",
    [
        b"",
        b"\x00\x00\x00\x01\x80",
        b"\x00\x00\x00\x01\xc1",
        b"\xff\xff\xff\xffrest",
        b"PK\x03\x04 something else",
    ],
)
def test_what_is_no_recording_is_refused(path, octets):
    with pytest.raises(Malformed, match="is no recording of KV events"):
        BatchRecording(_write(path, octets))


def test_another_version_is_refused(path):
    record(path)
    octets = path.read_bytes().replace(b"\xa7version\x01", b"\xa7version\x02")
    with pytest.raises(Malformed, match="version 2"):
        BatchRecording(_write(path, octets))


def test_a_damaged_record_is_told_after_those_before_it(path):
    record(path, 1)
    with path.open("ab") as file:
        file.write(b"\x00\x00\x00\x01\xc1")
    records = iter(BatchRecording(path))
    assert next(records).seq == 0
    with pytest.raises(Malformed, match=f"{path} is damaged: "):
        next(records)


def test_what_can_be_read_once_is_no_file_to_play(path):
    record(path)
    octets = path.read_bytes()
    reader, writer = os.pipe()
    with os.fdopen(writer, "wb") as pipe:
        pipe.write(octets)
    with os.fdopen(reader), pytest.raises(OSError, match="it is read more than once"):
        BatchRecording(f"/dev/fd/{reader}")


@pytest.mark.parametrize(
    ("at", "seq"), [(-1.0, 0), (1e300, 0), (float("nan"), 0), (float("inf"), 0), (0.0, -1)]
)
def test_times_that_cannot_be_waited_for_and_numbers_that_cannot_be_sent_are_malformed(
    path, at, seq
):
    with BatchRecorder(path):
        pass
    record = pack([at, b"kv", seq, b""])
    with path.open("ab") as file:
        file.write(len(record).to_bytes(4) + record)
    with pytest.raises(Malformed):
        list(BatchRecording(path))


class Clock:
    def __init__(self):
        self.now = 100.0

    def sleep(self, seconds):
        self.now += seconds

    def __call__(self):
        return self.now


@pytest.mark.parametrize(
    ("speed", "times"), [(1.0, [0, 0.5, 1]), (2.0, [0, 0.25, 0.5]), (None, [0, 0, 0])]
)
def test_playing_keeps_the_times_scaled(path, speed, times):
    record(path)
    clock, played = Clock(), []

    def send(recorded):
        played.append((recorded.seq, clock.now - 100))

    options = {"sleep": clock.sleep, "clock": clock}
    assert play_batches(BatchRecording(path), send, speed, **options) == 3
    assert played == list(enumerate(times))


@pytest.mark.parametrize("speed", [0, -1.0, float("nan")])
def test_a_speed_is_above_zero(path, speed):
    record(path)
    with pytest.raises(ValueError, match="speed"):
        play_batches(BatchRecording(path), print, speed)
