"""Readers are woken many at a time: each once, cancelled ones at once, and the loop goes on."""

import asyncio

import pytest

from zerohop.serving.engine.waking import Wait, Wakes


async def wait(each, done):
    await each
    done.append(each)


def waiting(count):
    """So many tasks that wait, and what is noted when they wait no more."""
    wakes, done = Wakes(asyncio.get_running_loop()), []
    waits = [Wait(wakes) for _ in range(count)]
    return wakes, waits, done, [asyncio.create_task(wait(each, done)) for each in waits]


def test_those_who_wait_are_woken_in_their_order_and_others_are_not():
    async def body():
        wakes, waits, done, tasks = waiting(3)
        await asyncio.sleep(0)
        wakes.soon([waits[1], waits[0], waits[1]])
        await asyncio.gather(*tasks[:2])
        assert done == [waits[1], waits[0]]
        assert not tasks[2].done()
        wakes.soon(waits)
        await tasks[2]

    asyncio.run(body())


def test_who_does_not_wait_yet_is_not_woken_later():
    async def body():
        wakes, waits, done, (task,) = waiting(1)
        wakes.soon(waits)
        for _ in range(3):
            await asyncio.sleep(0)
        assert done == []
        wakes.soon(waits)
        await task

    asyncio.run(body())


def test_the_loop_calls_and_they_go_on_within_that_call():
    async def body():
        wakes, waits, done, tasks = waiting(2)
        await asyncio.sleep(0)
        found = []

        def run():
            wakes.add(waits)
            wakes.run()
            found.extend(done)

        asyncio.get_running_loop().call_soon(run)
        await asyncio.gather(*tasks)
        assert found == waits

    asyncio.run(body())


def test_of_very_many_some_are_woken_in_the_loops_next_turn():
    async def body():
        wakes, waits, done, tasks = waiting(300)
        await asyncio.sleep(0)
        wakes.soon(waits)
        await asyncio.sleep(0)
        assert 0 < len(done) < 300
        await asyncio.gather(*tasks)
        assert done == waits

    asyncio.run(body())


def test_a_task_that_is_cancelled_waits_no_more():
    async def body():
        wakes, waits, done, tasks = waiting(2)
        await asyncio.sleep(0)
        wakes.soon(waits[:1])
        tasks[0].cancel()  # it is about to be woken
        tasks[1].cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(each) for each in results] == [asyncio.CancelledError] * 2
        assert done == []
        again = asyncio.create_task(wait(waits[1], done))
        await asyncio.sleep(0)
        wakes.soon(waits)
        await again  # it was cancelled once, not for ever

    asyncio.run(body())


def test_a_time_limit_ends_the_waiting():
    async def body():
        _, _, done, tasks = waiting(1)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(tasks[0], 0.01)
        assert done == []

    asyncio.run(body())


def test_two_tasks_cannot_wait_on_one():
    async def body():
        wakes, waits, done, tasks = waiting(1)
        await asyncio.sleep(0)
        with pytest.raises(RuntimeError, match="another task"):
            await waits[0]
        wakes.soon(waits)
        await tasks[0]
        assert done == waits

    asyncio.run(body())


def test_what_ends_the_loop_in_one_leaves_the_others_to_be_woken():
    loop = asyncio.new_event_loop()
    try:
        wakes = Wakes(loop)
        first, second = Wait(wakes), Wait(wakes)

        async def interrupt():
            await first
            raise KeyboardInterrupt

        done = []
        tasks = [loop.create_task(interrupt()), loop.create_task(wait(second, done))]
        loop.call_soon(wakes.soon, [first, second])
        with pytest.raises(KeyboardInterrupt):
            loop.run_until_complete(tasks[1])
        loop.run_until_complete(tasks[1])
        assert done == [second]
        with pytest.raises(KeyboardInterrupt):
            tasks[0].result()
    finally:
        loop.close()
