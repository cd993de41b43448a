"""What the tests of the control channel wait with."""

import asyncio
import time

SECONDS = 20.0  # what must come may take so long on a loaded machine


def wait_for(condition):
    give_up = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < give_up, "it did not come about in time"
        time.sleep(0.005)


async def until(condition):
    while not condition():  # noqa: ASYNC110 - nothing else tells
        await asyncio.sleep(0.005)


def run(body):
    """Run a coroutine to its end, within the time that it may take."""

    async def within():
        asyncio.get_running_loop().slow_callback_duration = SECONDS  # a loaded machine is no fault
        async with asyncio.timeout(SECONDS):
            await body

    asyncio.run(within(), debug=True)
