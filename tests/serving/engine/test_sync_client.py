"""What only the client for threads does; what both do is in ``test_client``."""

import contextlib
import os
import random
import signal
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

import zerohop as zmq
from tests.serving.engine.engines import (
    PATIENT,
    engine_in_thread,
    engine_process,
)
from tests.stress.kit import until
from zerohop.serving import (
    EngineDead,
    EngineServer,
    RequestRefused,
    SyncEngineClient,
)

pytestmark = pytest.mark.timeout(60)


@contextlib.contextmanager
def client_and_engine(directory, **options):
    with (
        SyncEngineClient(f"ipc://{directory}/requests", patience=PATIENT, **options) as client,
        engine_in_thread(client.endpoint) as engine,
    ):
        client.wait_for_engines(timeout=10)
        yield client, engine


def tokens_of(stream):
    return [token for delta in stream for token in delta.token_ids]


@contextlib.contextmanager
def in_thread(function, *arguments):
    """Runs it meanwhile; yields a list that gets what it returns or raises."""
    ended = []

    def body():
        try:
            ended.append(function(*arguments))
        except BaseException as error:  # noqa: BLE001 - the test looks at it
            ended.append(error)

    thread = threading.Thread(target=body)
    thread.start()
    try:
        yield ended
    finally:
        thread.join(10)
        assert not thread.is_alive()


def test_an_empty_endpoint_is_no_endpoint():
    for given in ({"endpoint": ""}, {"outputs": ""}):
        with pytest.raises(zmq.ZMQError, match="Invalid argument"):
            SyncEngineClient(**given)


def test_many_threads_ask_and_leave_at_once_and_each_has_its_own(ipc_directory):
    def ask(client, seed):
        chance = random.Random(seed)
        for _ in range(20):
            count = chance.randrange(1, 9)
            match chance.randrange(4):
                case 0:
                    with client.generate({"tokens": None}) as stream:
                        next(stream)
                case 1:
                    for _ in client.generate({"tokens": None}):
                        break
                case 2:
                    assert client.call("add", seed, count) == seed + count
                case _:
                    wanted = list(range(count - 1, -1, -1))
                    assert tokens_of(client.generate({"tokens": count})) == wanted

    with client_and_engine(ipc_directory) as (client, _), ThreadPoolExecutor(24) as threads:
        assert list(threads.map(ask, [client] * 24, range(24))) == [None] * 24
        until(lambda: client.call("open") == 0)
        assert client.engines["e0"].open == 0


def test_an_engine_that_is_killed_ends_the_request_of_each_thread(ipc_directory):
    def ask(client, begun):
        answers = Counter()
        with contextlib.suppress(RequestRefused):  # there is no engine, after a while
            while True:
                try:
                    for _ in client.generate({"tokens": None}):
                        begun.release()
                except EngineDead as error:
                    answers[error.reason] += 1
        return answers

    begun = threading.Semaphore(0)
    with (
        SyncEngineClient(f"ipc://{ipc_directory}/requests", patience=PATIENT) as client,
        engine_process(client.endpoint) as process,
        ThreadPoolExecutor(16) as threads,
    ):
        client.wait_for_engines(timeout=20)
        answers = threads.map(ask, [client] * 16, [begun] * 16)
        for _ in range(64):
            assert begun.acquire(timeout=10)
        process.kill()
        killed = time.monotonic()
        for counted in answers:
            assert counted["its connection broke"] >= 1
        assert time.monotonic() - killed < 5  # well below gone_after
        assert client.engines == {}


def test_a_request_goes_to_another_engine_where_the_chosen_one_has_just_gone(ipc_directory):
    with client_and_engine(ipc_directory) as (client, _):
        with engine_process(client.endpoint, engine="e1") as process:
            client.wait_for_engines(2, timeout=20)
            held = [client.generate({"tokens": None}) for _ in range(2)]
            process.kill()
            process.wait(10)
            for _ in range(100):
                stream = client.generate({"tokens": 1})
                if stream.engine == "e0":
                    assert tokens_of(stream) == [0]
        for stream in held:
            stream.close()


class Interrupted(BaseException):
    """Of a signal's handler."""


def _interrupt(*_):
    raise Interrupted


@contextlib.contextmanager
def interrupts(handle=_interrupt):
    """Has a signal handled; yields what sends it after some time. Not SIGALRM, which is the test's
    own timeout."""

    def send_after(seconds):
        timer = threading.Timer(seconds, os.kill, [os.getpid(), signal.SIGUSR1])
        timers.append(timer)
        timer.start()
        return timer

    timers = []
    before = signal.signal(signal.SIGUSR1, handle)
    try:
        yield send_after
    finally:
        for timer in timers:
            timer.join()
        signal.signal(signal.SIGUSR1, before)


def test_a_signal_ends_the_wait_for_a_delta_and_aborts_the_request(ipc_directory):
    with client_and_engine(ipc_directory) as (client, engine), interrupts() as send_after:
        with in_thread(client.call, "hang") as ended:
            until(engine.hanging.is_set)
            stream = client.generate({"tokens": None})
            send_after(0.05)
            with pytest.raises(Interrupted):
                next(stream)
            assert client.engines["e0"].open == 0
            engine.hanging.clear()
        assert ended == [None]
        until(lambda: engine.aborted == [stream.number])


@pytest.mark.parametrize("wait", ["call", "engines"])
def test_a_signal_ends_every_other_wait(ipc_directory, wait):
    with client_and_engine(ipc_directory) as (client, engine), interrupts() as send_after:
        send_after(0.05)
        with pytest.raises(Interrupted):
            client.call("hang") if wait == "call" else client.wait_for_engines(2)
        engine.hanging.clear()
        assert client.call("add", 1, 2) == 3


def test_a_signals_handler_may_ask_while_its_thread_waits(ipc_directory):
    def handle(*_):
        answers.append(tokens_of(client.generate({"tokens": 3}, engine="e1", deadline=5)))
        answers.append(client.call("add", 1, 2, engine="e1", timeout=5))
        engine.hanging.clear()

    def interrupt(client, send_after):
        until(lambda: client._channel.readers._waiting)
        send_after(0)

    answers = []
    with (
        client_and_engine(ipc_directory) as (client, engine),
        engine_in_thread(client.endpoint, engine="e1"),
        interrupts(handle) as send_after,
    ):
        client.wait_for_engines(2, timeout=10)
        with in_thread(interrupt, client, send_after):
            client.call("hang", engine="e0")
    assert answers == [[2, 1, 0], 3]


def test_a_handler_that_interrupts_what_it_would_wait_for_is_told(ipc_directory):
    with client_and_engine(ipc_directory) as (client, _):
        for ask in (
            lambda: tokens_of(client.generate({"tokens": 3})),
            lambda: client.call("add", 1, 2),
            lambda: client.wait_for_engines(2),
        ):
            with client._channel.held(), pytest.raises(RuntimeError, match="from another thread"):
                ask()
        assert tokens_of(client.generate({"tokens": 3})) == [2, 1, 0]
        until(lambda: client.call("open") == 0)


# One that comes in a weak reference's callback goes nowhere: Python says so, and goes on.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_signals_at_any_moment_mix_nothing_up(ipc_directory):
    """What they break ends with its engine, which joins anew; what is not broken is whole."""

    def ask_on(client, over):
        asked = 0
        while not over.is_set():
            with contextlib.suppress(EngineDead, RequestRefused):
                assert tokens_of(client.generate({"tokens": 5})) == [4, 3, 2, 1, 0]
                asked += 1
        return asked

    def ask_while(client, timer):
        with contextlib.suppress(EngineDead, RequestRefused):
            while timer.is_alive():
                assert tokens_of(client.generate({"tokens": 2})) == [1, 0]
                with client.generate({"tokens": None}) as stream:
                    next(stream)
                assert client.call("add", 1, 2) == 3
        timer.join()

    chance, over = random.Random(7), threading.Event()
    with client_and_engine(ipc_directory) as (client, _), interrupts() as send_after:
        with in_thread(ask_on, client, over) as asked:
            for _ in range(100):
                with contextlib.suppress(Interrupted):
                    ask_while(client, send_after(chance.uniform(0.0005, 0.01)))
            over.set()
        client.wait_for_engines(timeout=10)
        assert tokens_of(client.generate({"tokens": 3})) == [2, 1, 0]
        until(lambda: client.call("open") == 0)
        assert client.engines["e0"].open == 0
    assert asked[0] > 0


def test_a_client_that_is_closed_ends_every_wait_at_once(ipc_directory):
    with client_and_engine(ipc_directory) as (client, engine):
        stream = client.generate({"tokens": None})
        next(stream)
        with (
            in_thread(client.call, "hang") as called,
            in_thread(tokens_of, stream) as read,
            in_thread(client.wait_for_engines, 2) as waited,
        ):
            until(engine.hanging.is_set)
            began = time.monotonic()
            client.close()
            assert time.monotonic() - began < 5
        engine.hanging.clear()
        assert [str(each) for each in (*called, *read, *waited)] == [
            "engine e0 is gone (this API server was closed; it was asked for 'hang')",
            f"engine e0 is gone (this API server was closed); request e0/{stream.number} is lost",
            "this SyncEngineClient is closed; make another one",
        ]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_where_its_threads_fail_whoever_waits_is_told(ipc_directory, monkeypatch):
    with client_and_engine(ipc_directory) as (client, engine):
        with in_thread(client.call, "hang") as called:
            until(engine.hanging.is_set)
            stream = client.generate({"tokens": None})
            with (
                in_thread(tokens_of, stream) as read,
                in_thread(client.wait_for_engines, 2) as ready,
            ):
                monkeypatch.setattr(client._channel.exchange, "give", None)
            engine.hanging.clear()
        for each in (*called, *read, *ready):
            assert isinstance(each, RuntimeError)
        with pytest.raises(RuntimeError, match="was closed"):
            client.generate({"tokens": 1})


def test_a_client_that_is_closed_says_so_and_may_be_closed_again(ipc_directory):
    with client_and_engine(ipc_directory) as (client, _):
        client.close()
        client.close()
        for use in (
            client.__enter__,
            client.wait_for_engines,
            lambda: client.generate({"tokens": 1}),
            lambda: client.call("add", 1, 2),
        ):
            with pytest.raises(RuntimeError, match="this SyncEngineClient is closed"):
                use()
        assert client.engines == {}


def test_a_stream_that_another_thread_closes_ends(ipc_directory):
    with client_and_engine(ipc_directory) as (client, engine):
        with in_thread(client.call, "hang"):
            until(engine.hanging.is_set)
            stream = client.generate({"tokens": None})
            with in_thread(tokens_of, stream) as read:
                until(lambda: stream._stream.waiter.is_waited)
                stream.close()
            engine.hanging.clear()
        assert read == [[]]


def test_a_forked_child_may_not_use_it_and_the_parent_goes_on(ipc_directory):
    with client_and_engine(ipc_directory) as (client, _):
        stream = client.generate({"tokens": None})
        next(stream)
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            said = []
            for use in (
                lambda: next(stream),
                lambda: client.generate({"tokens": 1}),
                lambda: client.call("add", 1, 2),
                client.wait_for_engines,
                lambda: client.engines,
            ):
                try:
                    use()
                except RuntimeError as error:
                    said.append("forked child" in str(error))
            stream.close()
            client.close()
            os.write(writing, repr(said).encode())
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert os.read(reading, 1000) == b"[True, True, True, True, True]"
        os.close(reading)
        os.close(writing)
        next(stream)
        stream.close()
        assert client.call("add", 1, 2) == 3


def test_an_engine_that_does_not_read_makes_nobody_wait(ipc_directory):
    """Neither who asks nor who closes."""
    with SyncEngineClient(f"ipc://{ipc_directory}/requests", patience=PATIENT) as client:
        ready, over = threading.Event(), threading.Event()

        def loop():
            with EngineServer(client.endpoint, engine="e0") as server:
                while not ready.is_set():
                    server.receive(0.01)
                over.wait(20)

        with in_thread(loop):
            client.wait_for_engines(timeout=10)
            ready.set()
            streams = [client.generate("x" * 100_000) for _ in range(200)]
            began = time.monotonic()
            client.close()
            assert time.monotonic() - began < 5
            over.set()
        for stream in streams:
            with pytest.raises(EngineDead):
                next(stream)
