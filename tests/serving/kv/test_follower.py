"""One worker, whose frames become deliveries; its ranks apart."""

import pytest

from tests.serving.kv import samples
from zerohop.serving.kv.deliveries import Applied, Health, HealthChanged, Lost, Undecodable
from zerohop.serving.kv.encode import BatchEncoder
from zerohop.serving.kv.events import AllBlocksCleared, BlockRemoved
from zerohop.serving.kv.follower import KvFollower
from zerohop.serving.kv.questions import OrderOptions
from zerohop.serving.kv.replies import (
    END,
    answer_replay,
    parse_request,
    replay_request,
    seq_octets,
)
from zerohop.serving.kv.ring import ReplayRing

encode = BatchEncoder().encode_events
VLLM_END = [b"", b"", END, b""]


def payload(seq, rank=0, events=()):
    return encode(float(seq), list(events), rank)


def live(seq, rank=0):
    return [b"kv", seq_octets(seq), payload(seq, rank)]


def follower(**options):
    made = KvFollower("w", OrderOptions(check=None, **options))
    made.start(0.0)
    return made


def kinds(deliveries):
    return [type(each).__name__ for each in deliveries]


def test_what_a_running_vllm_sends_is_applied():
    worker = follower(replay=False)
    deliveries = [d for frames in samples.CAPTURED for d in worker.receive_live(frames, 0.0)]
    assert kinds(deliveries) == ["Applied", "HealthChanged", "Applied"]
    assert [d.seq for d in deliveries if isinstance(d, Applied)] == [0, 1]
    assert {(d.worker, d.dp_rank) for d in deliveries} == {("w", 0)}
    assert worker.health == {0: Health.LIVE}


def test_a_question_and_its_answer():
    worker, ring = follower(), ReplayRing()
    ring.append(0, payload(0, events=[AllBlocksCleared()]))
    worker.connected(0.0)
    [ask] = worker.asks
    request = parse_request(ask.frames)
    deliveries = []
    for frames in answer_replay(request, ring.replay(request.start), b"i" * 16, b"kv"):
        deliveries += worker.receive_reply(ask.id, frames, 0.0)
    assert kinds(deliveries) == ["Applied", "HealthChanged"]
    assert deliveries[0].batch.events == [AllBlocksCleared()]
    assert worker.asks == []


def test_an_answer_to_an_old_question_is_ignored():
    worker = follower()
    [ask] = worker.asks
    worker.connected(0.0)
    assert worker.receive_reply(ask.id, VLLM_END, 0.0) == []
    assert [each.frames for each in worker.asks] == [replay_request(0, worker.asks[0].id)]


def test_each_rank_has_numbers_of_its_own():
    worker = follower(replay=False)
    deliveries = []
    for frames in (live(0, 0), live(0, 1), live(1, 0), live(2, 1)):
        deliveries += worker.receive_live(frames, 0.0)
    assert [(d.dp_rank, d.seq) for d in deliveries if isinstance(d, Applied)] == [
        *((0, 0), (1, 0), (0, 1), (1, 2)),
    ]
    assert [d.dp_rank for d in deliveries if isinstance(d, Lost)] == [1]
    assert worker.health == {0: Health.LIVE, 1: Health.LOST}


def test_each_rank_asks_and_is_answered_apart():
    worker = follower()
    worker.receive_live(live(0, 0), 0.0)
    worker.receive_live(live(0, 1), 0.0)
    assert len(worker.asks) == len({ask.id for ask in worker.asks}) == 2
    second = worker.asks[1].id
    assert worker.receive_reply(second, [b"", b"kv", seq_octets(0), payload(0, 0)], 0.0) == []
    assert worker.foreign == 1
    worker.connected(0.0)
    assert len(worker.asks) == 2
    assert worker.next_deadline() == 5.0
    worker.handle_deadline(5.0)
    assert len(worker.asks) == 2


def test_a_rank_that_a_replay_tells_first_is_that_of_the_live_stream():
    worker = follower()
    [ask] = worker.asks
    worker.receive_reply(ask.id, [b"", b"kv", seq_octets(0), payload(0, 3)], 0.0)
    worker.receive_live(live(1, 3), 0.0)
    assert list(worker.health) == [3]


def test_a_rank_that_a_replay_tells_is_that_of_its_answer_before_anything_is_applied():
    worker = follower()
    [ask] = worker.asks
    worker.receive_reply(ask.id, [b"", b"kv", seq_octets(1), payload(1, 3)], 0.0)
    assert worker.receive_reply(ask.id, [b"", b"kv", seq_octets(0), payload(0, 4)], 0.0) == []
    assert worker.foreign == 1


def test_without_ranks_there_is_one_order():
    worker = follower(replay=False)
    frames = [b"", seq_octets(0), samples.GOLDEN["0.9.0.1"]]
    assert worker.receive_live(frames, 0.0)[0].batch.events[1] == BlockRemoved([1])
    assert worker.health == {None: Health.LIVE}


def test_ranks_are_bounded():
    worker = follower(replay=False)
    for rank in range(1100):
        out = worker.receive_live(live(0, rank), 0.0)
    assert len(worker.health) == 1024
    assert out[0].error.reason == "dp rank 1099 is one too many: the limit is 1024"


# ---- what cannot be read ----


def test_a_batch_that_can_not_be_decoded_closes_nothing_and_has_its_bytes():
    worker = follower(replay=False)
    worker.receive_live(live(0), 0.0)
    deliveries = worker.receive_live([b"kv", seq_octets(1), b"\xc1"], 0.0)
    assert kinds(deliveries) == ["Undecodable", "Lost", "HealthChanged"]
    assert (deliveries[0].seq, deliveries[0].error.data) == (1, b"\xc1")
    assert kinds(worker.receive_live(live(2), 0.0)) == ["Applied"]
    assert worker.decoder.malformed == 1


def test_of_several_ranks_nobody_knows_whose_it_was_until_the_gap_shows():
    worker = follower(replay=False)
    worker.receive_live(live(0, 0), 0.0)
    worker.receive_live(live(0, 1), 0.0)
    deliveries = worker.receive_live([b"kv", seq_octets(1), b"\xc1"], 0.0)
    assert kinds(deliveries) == ["Undecodable"]
    assert deliveries[0].dp_rank is None
    assert Lost in map(type, worker.receive_live(live(2, 1), 0.0))
    assert worker.health[0] is Health.LIVE


@pytest.mark.parametrize("frames", [[], [b"x"], [b"kv", b"short", b"x"], [b""] * 5])
def test_a_message_that_is_none_changes_nothing(frames):
    worker = follower(replay=False)
    [delivery] = worker.receive_live(frames, 0.0)
    assert isinstance(delivery, Undecodable)
    assert delivery.seq is None
    assert kinds(worker.receive_live(live(0), 0.0)) == ["Applied", "HealthChanged"]


def test_a_reply_that_is_none_does_not_end_the_question():
    worker = follower()
    [ask] = worker.asks
    assert kinds(worker.receive_reply(ask.id, [b"nonsense"], 0.0)) == ["Undecodable"]
    assert worker.asks == [ask]


def test_a_batch_of_a_replay_that_can_not_be_decoded_is_reported_in_its_place():
    worker = follower()
    [ask] = worker.asks
    deliveries = worker.receive_reply(ask.id, [b"", b"kv", seq_octets(0), b"\xc1"], 0.0)
    assert kinds(deliveries) == ["Undecodable", "Lost", "HealthChanged"]


def test_nothing_is_due_where_nothing_is_asked():
    worker = follower(replay=False)
    assert worker.next_deadline() is None
    assert worker.handle_deadline(99.0) == []
    assert HealthChanged("w", 0, Health.LIVE) in worker.receive_live(live(0), 0.0)
