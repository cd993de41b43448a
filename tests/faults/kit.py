"""Campaigns: who is killed, how often, and by which chance.

A campaign is a test with a parameter ``seed``, which it has in its name: each seed is a round of
``KILLS`` kills, and everything random in it follows from the seed. Here a round or two are run;
``make faults`` runs as many as have a hundred kills (``FAULTS=100``), and ``SEED=7`` the round of
that seed alone.
"""

import contextlib
import os
import random
import time
from pathlib import Path

import pytest

from tests.faults.lives import SOON

FAULTS = int(os.environ.get("FAULTS", "0"))  # kills in a campaign; 0: those of one round
SEED = os.environ.get("SEED")
KILLS = 4  # in a round


def campaign(test):
    """Run a test for each seed; it has ``chance`` in its place."""
    rounds = max(-(-FAULTS // KILLS), 1)
    seeds = range(rounds) if SEED is None else [int(SEED)]
    test = pytest.mark.parametrize("chance", seeds, indirect=True)(test)
    return pytest.mark.timeout(90)(test)


def wait_for(condition, within=SOON):
    """Wait until a condition is true; return what it gave."""
    give_up = time.monotonic() + within
    while not (value := condition()):
        assert time.monotonic() < give_up, "it did not come about in time"
        time.sleep(0.005)
    return value


def children():
    """The processes that this one has started and not waited for, zombies among them."""
    found = set()
    for each in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):  # a thread that has just ended
            found.update(each.read_text().split())
    return found


def chance_of(seed):
    """Return what is random in a round."""
    print(f"SEED={seed}")
    return random.Random(seed)
