"""What a token may cost, in calls of Python and of C functions: the same on every machine."""

import asyncio
import sys

import msgspec

from zerohop.serving.engine.columns import Columns
from zerohop.serving.engine.messages import Delta
from zerohop.serving.engine.outbox import Outbox
from zerohop.serving.engine.streams import StreamTable
from zerohop.serving.engine.waking import Wait, Wakes

STREAMS = 256
NUMBERS = list(range(STREAMS))
BESIDE = 30  # calls that have nothing to do with how many streams there are


def calls_during(body):
    """How many there are."""
    count = 0

    def note(frame, event, arg):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        body()
    finally:
        sys.setprofile(None)
    return count


def table_of_streams():
    table = StreamTable()
    for number in NUMBERS:
        table.open(number, "e0", 1, now=0)
    return table


def test_tokens_cost_their_stream_three_calls_in_however_many_steps_they_were_made():
    table = table_of_streams()
    steps = [NUMBERS] * 20
    assert calls_during(lambda: table.deliver(1, NUMBERS, steps)) <= 3 * STREAMS + BESIDE


def test_a_step_like_the_last_one_costs_five_calls_however_many_tokens_it_has():
    columns, numbers = Columns(), msgspec.Raw(msgspec.msgpack.encode(NUMBERS))
    columns.begin(numbers)
    same = []

    def step():
        same.append(columns.have(numbers))
        columns.add(NUMBERS)

    assert calls_during(step) <= 5 + 3  # those of the test
    assert same == [True]
    assert columns.take() == [NUMBERS]


def test_a_token_costs_its_engine_three_calls_before_it_is_encoded():
    outbox = Outbox(slot=0, limit=9)
    outbox.open.update(NUMBERS)
    deltas = [Delta(number, [number]) for number in NUMBERS]
    assert calls_during(lambda: outbox.wanted(deltas)) <= 3 * STREAMS + BESIDE


def test_to_wake_a_reader_that_waits_again_costs_eight_calls():
    async def read(wait):
        while True:
            await wait

    async def body():
        loop = asyncio.get_running_loop()
        wakes, found = Wakes(loop), []
        waits = [Wait(wakes) for _ in range(100)]
        tasks = [loop.create_task(read(wait)) for wait in waits]
        await asyncio.sleep(0)

        def run():
            wakes.add(waits)
            found.append(calls_during(wakes.run))

        loop.call_soon(run)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        print(found[0])
        assert found[0] <= 10 * len(waits) + BESIDE

    with asyncio.Runner(debug=False) as runner:
        runner.run(body())
