"""kill -9 of whoever publishes KV events, and of whoever reads them, at random moments.

The view is the truth of one number of one life, or is declared lost; and when all is over, it is
the truth.
"""

import time
from collections import Counter

from tests.faults.kit import KILLS, campaign, wait_for
from tests.faults.kv_lives import Truths, life_of, step
from tests.faults.lives import SOON
from zerohop.serving import (
    Applied,
    Health,
    HealthChanged,
    KvEventPublisher,
    Lost,
    PresentBlocks,
    Restarted,
    Snapshot,
    SyncKvEventSubscriber,
)
from zerohop.serving.kv.questions import OrderOptions

IMPATIENT = OrderOptions(silence=1.0, pause=0.5, check=0.5)
ANY = "tcp://127.0.0.1:*"


class Witness:
    """A view, held to the truth with every delivery."""

    def __init__(self, subscriber):
        self._subscriber = subscriber
        self._truth = Truths()
        self.view = PresentBlocks()
        self.health = Health.CATCHING_UP
        self.life = self.next_seq = None
        self._lost = False

    def look(self, seconds):
        """Take what comes within a time."""
        give_up = time.monotonic() + seconds
        while (left := give_up - time.monotonic()) > 0:
            delivery = self._subscriber.receive(left)
            if delivery is not None:
                self._take(delivery)

    def _take(self, delivery):
        self.view.deliver(delivery)
        match delivery:
            case HealthChanged(health=health):
                self.health = health
                self._lost &= health is Health.LOST
            case Restarted():
                self.life, self._lost = None, False
            case Lost():
                self._lost = True
            case Snapshot(next_seq=next_seq, batches=batches):
                lives = {life_of(batch) for batch in batches} - {None}
                self.life = lives.pop() if lives else self.life
                self.next_seq, self._lost = next_seq, False
                self._check()
            case Applied(seq=seq, batch=batch):
                self.life = life_of(batch) if life_of(batch) is not None else self.life
                self.next_seq = seq + 1
                self._check()

    def _check(self):
        if self.life is None:
            return  # a clear, or nothing, was the first that was heard of it
        truth, view = self._truth(self.life, self.next_seq), self.view.copies()
        if not self._lost:
            assert view == truth, (self.life, self.next_seq)
        for place, blocks in view.items():  # whatever else: no block too many
            assert not Counter(blocks) - Counter(truth.get(place, {}))

    def until_it_has_all(self, life, next_seq):
        give_up = time.monotonic() + SOON
        wanted = self._truth(life, next_seq)
        while self.health is not Health.LIVE or self.view.copies() != wanted:
            assert time.monotonic() < give_up, (self.health, self.life, self.next_seq, next_seq)
            self.look(0.02)


@campaign
def test_a_publisher_that_is_killed_again_and_again(program, chance, ipc_directory):
    endpoint = replay = ANY
    if chance.random() < 0.5:
        endpoint, replay = f"ipc://{ipc_directory}/kv", f"ipc://{ipc_directory}/replay"
    witness = None
    for life in range(1, KILLS + 2):
        worker = program(
            f"from tests.faults.kv_lives import live\nlive({life}, {endpoint!r}, {replay!r})"
        )
        endpoint, replay = worker.line().split()
        if witness is None:
            subscriber = SyncKvEventSubscriber(endpoint, replay, options=IMPATIENT)
            witness = Witness(subscriber)
        if life <= KILLS:
            witness.look(chance.random() * 0.5)
            worker.kill()
        else:
            witness.look(0.2)
            worker.tell("enough")
            witness.until_it_has_all(life, int(worker.line()))
            worker.tell("end")
            assert worker.end() == []
    subscriber.close()


READER = """
from zerohop.serving import SyncKvEventSubscriber
subscriber = SyncKvEventSubscriber({endpoint!r}, {replay!r})
print("here")
for delivery in subscriber:
    time.sleep({pause})
"""


@campaign
def test_readers_that_are_killed_leave_the_publisher_and_the_other_readers_as_they_were(
    program, chance
):
    with KvEventPublisher(ANY, replay=ANY, buffer=500) as publisher:
        places = {"endpoint": publisher.endpoint, "replay": publisher.replay_endpoint}

        def publish(count):
            for _ in range(count):
                publisher.publish(step(1, publisher.next_seq))

        subscriber = SyncKvEventSubscriber(*places.values(), options=IMPATIENT)
        witness = Witness(subscriber)
        for _ in range(KILLS // 2):
            publish(400)
            pauses = chance.sample((0, 0.001, 0.1), 2)
            readers = [program(READER.format(**places, pause=pause)) for pause in pauses]
            assert [reader.line() for reader in readers] == ["here"] * 2
            publish(chance.randint(0, 400))
            for reader in readers:
                witness.look(chance.random() * 0.1)
                reader.kill()
                publish(10)
        witness.until_it_has_all(1, publisher.next_seq)
        answers = publisher.answers
        before = answers.answered
        with SyncKvEventSubscriber(*places.values(), options=IMPATIENT) as late:
            Witness(late).until_it_has_all(1, publisher.next_seq)
        wait_for(lambda: answers.answered > before)
        subscriber.close()
    assert (publisher.dropped, publisher.unencodable, answers.failed) == (0, 0, 0)
