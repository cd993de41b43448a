"""Lives of a worker whose truth is known: what it does follows from the life and the number."""

import random
import sys
import time

from tests.faults.lives import told
from zerohop.serving import AllBlocksCleared, BlockRemoved, BlockStored, KvEventPublisher
from zerohop.serving.kv.blocks import PresentBlocks

LIFE = 1_000_000  # a block's hash is its life, and the number of the batch that stored it


def step(life, seq):
    """The events of a batch: one block comes; most go after some batches; now and then all go."""
    block = life * LIFE + seq
    if seq % 97 == 96:
        return [AllBlocksCleared()]
    stored = BlockStored([block], None, [seq], 1, medium="GPU")
    goes = seq >= 5 and (seq - 5) % 97 < 91 and (seq - 5) % 3
    return [stored, BlockRemoved([block - 5], "GPU")] if goes else [stored]


def life_of(batch):
    """Which life a batch is of; ``None``: it does not say."""
    stored = [event for event in batch.events if isinstance(event, BlockStored)]
    return stored[0].block_hashes[0] // LIFE if stored else None


class Truths:
    """What was present in a life before each of its batches."""

    def __init__(self):
        self._known = {}

    def __call__(self, life, next_seq):
        blocks, found = self._known.setdefault(life, (PresentBlocks(), [{}]))
        while len(found) <= next_seq:
            blocks.apply(step(life, len(found) - 1), 0)
            found.append(blocks.copies())
        return found[next_seq]


def live(life, endpoint, replay):
    """Be a worker until killed; on a line of standard input, publish no more and say how many.

    On another one, end.
    """
    publisher = KvEventPublisher(endpoint, replay=replay, bind=True, buffer=200)
    print(publisher.endpoint, publisher.replay_endpoint)
    enough = told()
    chance = random.Random(life)
    while not enough.is_set():
        for _ in range(chance.randint(1, 20)):
            publisher.publish(step(life, publisher.next_seq))
        time.sleep(chance.random() * 0.004)
    publisher.flush()
    print(publisher.next_seq)
    sys.stdin.readline()
    publisher.close()
