"""What is closed is not begun again, whatever part of serving it is."""

import pytest

from tests.serving.control.running import run
from zerohop.serving import (
    BatchRecorder,
    ControlClient,
    ControlServer,
    ControlWorker,
    KvEventPublisher,
    KvEventSubscriber,
    LmcacheClient,
    LmcacheController,
    LmcacheServer,
    LmcacheWorker,
    SyncControlClient,
    SyncControlServer,
    SyncControlWorker,
    SyncKvEventSubscriber,
    SyncLmcacheClient,
    SyncLmcacheController,
    SyncLmcacheServer,
    SyncLmcacheWorker,
)
from zerohop.serving.control.lmcache.messages import Register

NOBODY = "tcp://127.0.0.1:1"
WORKER = (NOBODY, NOBODY, Register("instance", 0, "127.0.0.1", 1))

BLOCKING = [
    (SyncControlServer, ()),
    (SyncControlClient, (NOBODY,)),
    (SyncControlWorker, (NOBODY, "w")),
    (SyncLmcacheServer, ()),
    (SyncLmcacheClient, (NOBODY,)),
    (SyncLmcacheController, ()),
    (SyncLmcacheWorker, WORKER),
    (SyncKvEventSubscriber, (NOBODY,)),
    (KvEventPublisher, ()),
    (BatchRecorder, ("/dev/null",)),
]
ON_A_LOOP = [
    (ControlServer, ()),
    (ControlClient, (NOBODY,)),
    (ControlWorker, (NOBODY, "w")),
    (LmcacheServer, ()),
    (LmcacheClient, (NOBODY,)),
    (LmcacheController, ()),
    (LmcacheWorker, WORKER),
    (KvEventSubscriber, (NOBODY,)),
]


def named(value):
    return getattr(value, "__name__", "")


@pytest.mark.parametrize(("kind", "arguments"), BLOCKING, ids=named)
def test_what_is_closed_says_so_where_it_is_to_be_used_again(kind, arguments):
    with kind(*arguments) as it:
        with it:  # is in use, and is closed at the end of this
            pass
        with pytest.raises(RuntimeError, match=f"^this {kind.__name__} is closed; make another"):
            it.__enter__()
    it.close()


@pytest.mark.parametrize(("kind", "arguments"), ON_A_LOOP, ids=named)
def test_on_a_loop_what_is_closed_says_so_likewise(kind, arguments):
    async def body():
        async with kind(*arguments) as it:
            pass
        with pytest.raises(RuntimeError, match=f"^this {kind.__name__} is closed; make another"):
            async with it:
                pass
        await it.aclose()

    run(body())
