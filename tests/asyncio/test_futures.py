"""Awaitables: however one is used the value comes once; however it is dropped nothing is lost."""

import asyncio
import contextlib
import contextvars
import gc
import json
import random

import pytest

import zerohop as zmq
from zerohop.asyncio import turns
from zerohop.asyncio.futures import SENT, SENT_LAST, ReceivedLast, done_with_later

pytestmark = [pytest.mark.on("asyncio", "uvloop"), pytest.mark.over("inproc")]


@pytest.fixture
def hurried(monkeypatch):
    """Turns are over as soon as they have begun: every other receive is the last of its turn."""
    monkeypatch.setattr(turns, "TURN", 0.0)
    monkeypatch.setattr(turns, "CREDIT", 1)
    monkeypatch.setattr(turns, "_QUICK", 1)
    monkeypatch.setattr(turns, "_ON_ACCOUNT", 1)


async def linked(net):
    """A sender, and a receiver without a time limit."""
    push, pull = net.socket(zmq.PUSH), net.socket(zmq.PULL, rcvtimeo=-1)
    await net.link(pull, push)
    return push, pull


async def sent(net, push, pull, *messages):
    """Send, and wait until all of it is there to be received."""
    for message in messages:
        await push.send_multipart(message if isinstance(message, list) else [message])
    await net.eventually(lambda: pull.stats().incoming.messages >= len(messages))


# -- every way to use one

USES = {}
DROPS = {}


def use(function):
    USES[function.__name__] = function
    return function


def drop(function):
    DROPS[function.__name__] = function
    return function


@use
async def awaited(call):
    return await call()


@use
async def awaited_twice(call):
    receiving = call()
    await receiving
    return await receiving


@use
async def awaited_by_two_tasks(call):
    receiving = call()

    async def wait():
        return await receiving

    first, second = await asyncio.gather(wait(), wait())
    assert first == second
    return first


@use
async def asked_when_done(call):
    receiving = call()
    await asyncio.wait([receiving])
    assert receiving.exception() is None
    assert not receiving.cancelled()
    assert receiving.result() == receiving.result()
    return receiving.result()


@use
async def asked_after_await(call):
    receiving = call()
    await receiving
    return receiving.result()


@use
async def gathered(call):
    return (await asyncio.gather(call()))[0]


@use
async def gathered_beside_an_await(call):
    receiving = call()
    gathering = asyncio.gather(receiving)
    value = await receiving
    assert await gathering == [value]
    return value


@use
async def waited_for(call):
    return await asyncio.wait_for(call(), 8)


@use
async def waited(call):
    done, _ = await asyncio.wait([asyncio.ensure_future(call())])
    return done.pop().result()


@use
async def shielded(call):
    return await asyncio.shield(call())


@use
async def ensured(call):
    return await asyncio.ensure_future(call())


@use
async def as_completed(call):
    (value,) = [await first for first in asyncio.as_completed([call()])]
    return value


@use
async def in_a_task_group(call):
    async def wait():
        return await call()

    async with asyncio.TaskGroup() as group:
        task = group.create_task(wait())
    return task.result()


@use
async def under_a_timeout(call):
    async with asyncio.timeout(8):
        return await call()


@use
async def called_back(call):
    """The callback asks before the task that awaits is resumed."""
    receiving, asked = call(), []
    receiving.add_done_callback(lambda future: asked.append(future.result()))
    value = await receiving
    await asyncio.sleep(0)
    assert asked == [value]
    return value


@use
async def called_back_in_a_context(call):
    variable = contextvars.ContextVar("variable", default=None)
    context = contextvars.copy_context()
    context.run(variable.set, "of the context")
    called = asyncio.get_running_loop().create_future()
    receiving = call()
    receiving.add_done_callback(
        lambda future: called.set_result((future, variable.get())), context=context
    )
    assert await called == (receiving, "of the context")
    return receiving.result()


@use
async def delegated_to(call):
    class Wrapping:
        def __await__(self):
            return (yield from call())

    return await Wrapping()


FORMS = {
    "recv": (lambda pull: pull.recv, b'"%d"', lambda n: b'"%d"' % n),
    "recv_multipart": (lambda pull: pull.recv_multipart, b'"%d"', lambda n: [b'"%d"' % n]),
    "recv_json": (lambda pull: pull.recv_json, b'"%d"', lambda n: str(n)),
}
FORM = pytest.mark.parametrize("form", FORMS)


@pytest.mark.parametrize("how", USES)
@pytest.mark.parametrize("when", ["before", "after"])
@FORM
async def test_the_value_comes_once_however_the_awaitable_is_used(net, how, when, form):
    push, pull = await linked(net)
    method, text, expected = FORMS[form]
    if when == "before":
        await sent(net, push, pull, text % 1, text % 2)
        value = await USES[how](method(pull))
    else:
        using = asyncio.ensure_future(USES[how](method(pull)))
        await asyncio.sleep(0)
        await push.send(text % 1)
        value = await using
        await push.send(text % 2)
    assert value == expected(1)
    assert await method(pull)() == expected(2)
    await nothing_more(pull)


@pytest.mark.parametrize("how", USES)
@FORM
@pytest.mark.usefixtures("hurried")
async def test_the_value_comes_once_also_at_the_end_of_a_turn(net, how, form):
    push, pull = await linked(net)
    method, text, expected = FORMS[form]
    await sent(net, push, pull, *(text % n for n in range(4)))
    assert [await USES[how](method(pull)) for _ in range(4)] == [expected(n) for n in range(4)]
    await nothing_more(pull)


async def nothing_more(pull):
    with pytest.raises(zmq.Again):
        await pull.recv(zmq.DONTWAIT)


# -- every way to drop one


@drop
async def never_awaited(call):
    call()


@drop
async def never_awaited_in_a_cycle(call):
    cycle = [call()]
    cycle.append(cycle)
    del cycle
    gc.collect()


@drop
async def cancelled(call):
    call().cancel()


@drop
async def waited_for_no_time(call):
    receiving = call()
    done, _ = await asyncio.wait([receiving], timeout=0)
    assert done in (set(), {receiving})


@drop
async def task_cancelled_before_it_ran(call):
    await cancel(asyncio.create_task(put([], call())))


@drop
async def tasks_cancelled_while_they_wait(call):
    got = []
    tasks = [asyncio.create_task(put(got, call())) for _ in range(2)]
    await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return got


@drop
async def tasks_cancelled_when_they_have_it(call):
    got, calls = [], [call(), call()]
    calls[0].add_done_callback(lambda _: [task.cancel() for task in tasks])
    tasks = [asyncio.create_task(put(got, receiving)) for receiving in calls]
    await asyncio.sleep(0.01)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return got


async def put(got, receiving):
    got.append(await receiving)


async def cancel(task):
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@drop
async def gather_cancelled(call):
    gathering = asyncio.gather(call(), call(), asyncio.sleep(9))
    await asyncio.sleep(0)
    await cancel(gathering)


@drop
async def gather_given_up_for_another_error(call):
    async def fail():
        raise ValueError

    calls = [call(), call()]
    with pytest.raises(ValueError):
        await asyncio.gather(fail(), *calls)
    for receiving in calls:
        receiving.cancel()


@drop
async def as_completed_left(call):
    calls = [call(), call()]
    for first in asyncio.as_completed(calls):
        first.close()
    for receiving in calls:
        receiving.cancel()


@drop
async def shield_cancelled(call):
    receiving = call()
    shield = asyncio.shield(receiving)
    if shield is not receiving:
        await cancel(shield)
    receiving.cancel()


@drop
async def generator_closed(call):
    waiting = call().__await__()
    waiting.close()


@pytest.mark.parametrize("how", DROPS)
@pytest.mark.parametrize("when", ["before", "meanwhile", "after"])
@FORM
async def test_no_message_is_lost_however_the_awaitable_is_dropped(net, how, when, form):
    push, pull = await linked(net)
    method, text, expected = FORMS[form]
    messages = [text % n for n in range(4)]
    if when == "before":
        await sent(net, push, pull, *messages)
    dropping = asyncio.ensure_future(DROPS[how](method(pull)))
    if when == "meanwhile":
        await asyncio.gather(*map(push.send, messages))
    got = await dropping or []  # what was the caller's before he gave up
    if when == "after":
        await asyncio.gather(*map(push.send, messages))
    while len(got) < len(messages):
        got.append(await method(pull)())
    assert got == [expected(n) for n in range(4)]
    await nothing_more(pull)


@pytest.mark.parametrize("how", DROPS)
@FORM
@pytest.mark.usefixtures("hurried")
async def test_no_message_is_lost_also_at_the_end_of_a_turn(net, how, form):
    push, pull = await linked(net)
    method, text, expected = FORMS[form]
    await sent(net, push, pull, *(text % n for n in range(4)))
    got = await asyncio.ensure_future(DROPS[how](method(pull))) or []
    while len(got) < 4:
        got.append(await method(pull)())
    assert got == [expected(n) for n in range(4)]
    await nothing_more(pull)


@pytest.mark.usefixtures("hurried")
async def test_whoever_gets_the_last_message_of_a_turn_waits_and_so_do_those_after_him(net):
    push, pull = await linked(net)
    await sent(net, push, pull, *(b"%d" % n for n in range(6)))
    got, given = [], []

    async def get():
        call = pull.recv()
        given.append(type(call))
        got.append(await call)

    tasks = [asyncio.create_task(get()) for _ in range(6)]
    await asyncio.sleep(0)
    first = given.index(ReceivedLast)
    assert set(given[first:]) == {ReceivedLast}
    assert len(got) == first
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    while len(got) < 6:
        got.append(await pull.recv())
    assert got == [b"%d" % n for n in range(6)]


@pytest.mark.usefixtures("hurried")
async def test_the_last_message_of_a_turn_suspends_nobody_when_the_loop_has_come_round(net):
    push, pull = await linked(net)
    await sent(net, push, pull, *(b"%d" % n for n in range(6)))
    calls = [pull.recv() for _ in range(6)]
    assert type(calls[-1]) is ReceivedLast
    await asyncio.sleep(0)
    seen = []
    asyncio.get_running_loop().call_soon(seen.append, "another")
    assert [await call for call in calls] == [b"%d" % n for n in range(6)]
    assert seen == []


@pytest.mark.usefixtures("hurried")
async def test_the_last_send_of_a_turn_suspends_whoever_awaits_it(net):
    push, _ = await linked(net)
    sends = [push.send(b"1") for _ in range(4)]
    assert SENT_LAST in sends
    seen = []
    asyncio.get_running_loop().call_soon(seen.append, "another")
    await sends[sends.index(SENT_LAST)]
    assert seen == ["another"]
    assert SENT_LAST.done()
    assert SENT_LAST.result() is None


async def test_any_result_may_be_the_last_of_a_turn(net):
    later = done_with_later(7)
    assert later.done()
    assert later.result() == 7
    seen = []
    asyncio.get_running_loop().call_soon(seen.append, "another")
    assert await later == 7
    assert seen == ["another"]
    assert await asyncio.gather(later, later) == [7, 7]


async def test_messages_dropped_in_the_order_they_came_keep_their_order(net):
    push, pull = await linked(net)
    await sent(net, push, pull, *(b"%d" % n for n in range(6)))

    def drop_forwards():
        first, second, third = pull.recv(), pull.recv_multipart(), pull.recv()
        del first
        del second
        del third

    drop_forwards()
    assert [await pull.recv() for _ in range(6)] == [b"%d" % n for n in range(6)]


async def test_of_two_that_await_the_same_receive_one_may_give_up(net):
    push, pull = await linked(net)
    receiving, got = pull.recv(), []
    receiving.add_done_callback(lambda _: tasks[0].cancel())
    tasks = [asyncio.create_task(put(got, receiving)) for _ in range(2)]
    await asyncio.sleep(0)
    push.send(b"1")
    await asyncio.wait(tasks)
    assert tasks[0].cancelled()
    assert got == [b"1"]
    await nothing_more(pull)


@pytest.mark.over("tcp")
async def test_a_receive_left_over_when_its_loop_ends_gives_its_message_back(net, library):
    """See test_front.py for sockets that move to another loop; here the loop is still open."""
    push, pull = await linked(net)
    left = []

    async def leave():
        left.append(pull.recv())
        push.send(b"1")
        await net.eventually(left[0].done)

    await asyncio.create_task(leave())
    left.clear()
    assert await pull.recv() == b"1"


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_receive_that_is_done_and_cancelled_has_its_message_if_it_asks_first(net, when):
    push, pull = await linked(net)
    receiving = pull.recv()
    if when == "before":
        receiving.cancel()
        await sent(net, push, pull, b"1", b"2")
        receiving = pull.recv()
    else:
        await push.send(b"1")
        await sent(net, push, pull, b"2")
    assert not receiving.cancel()
    assert not receiving.cancel()
    assert receiving.done()
    assert not receiving.cancelled()
    assert receiving.result() == b"1"
    assert await receiving == b"1"
    assert await pull.recv() == b"2"
    await nothing_more(pull)


@pytest.mark.parametrize("when", ["before", "after"])
@FORM
async def test_a_receive_that_is_done_and_cancelled_lets_another_have_its_message(net, when, form):
    push, pull = await linked(net)
    method, text, expected = FORMS[form]
    if when == "before":
        await sent(net, push, pull, text % 1)
    receiving = method(pull)()
    if when == "after":
        await push.send(text % 1)
    receiving.cancel()
    assert await method(pull)() == expected(1)
    for _ in range(2):
        with pytest.raises(asyncio.CancelledError):
            receiving.result()
    with pytest.raises(asyncio.CancelledError):
        await receiving
    del receiving
    await nothing_more(pull)


# -- parts of messages


async def test_parts_return_to_their_message_in_any_order(net):
    push, pull = await linked(net)
    await sent(net, push, pull, [b"1", b"2", b"3"], [b"4", b"5"], b"6")
    calls = [pull.recv() for _ in range(6)]
    for index in (1, 4, 0, 5, 2, 3):
        calls[index] = None
    assert [await pull.recv_multipart() for _ in range(3)] == [
        [b"1", b"2", b"3"], [b"4", b"5"], [b"6"],
    ]  # fmt: skip


async def test_the_rest_of_a_message_stays_when_its_second_part_is_given_back(net):
    push, pull = await linked(net)
    await sent(net, push, pull, [b"1", b"2", b"3"], b"4")
    assert await pull.recv() == b"1"
    pull.recv()
    assert pull.rcvmore
    assert await pull.recv_multipart() == [b"2", b"3"]
    assert not pull.rcvmore
    assert await pull.recv() == b"4"


async def test_tasks_that_wait_for_parts_and_give_up_together_lose_none(net):
    push, pull = await linked(net)
    got, calls = [], [pull.recv() for _ in range(3)]
    calls[0].add_done_callback(lambda _: [task.cancel() for task in tasks])
    tasks = [asyncio.create_task(put(got, receiving)) for receiving in calls]
    await asyncio.sleep(0)
    await push.send_multipart([b"1", b"2", b"3"])
    await asyncio.wait(tasks)
    calls.clear()
    tasks.clear()
    assert got == []
    assert await pull.recv_multipart() == [b"1", b"2", b"3"]


async def test_a_frame_knows_that_its_message_has_more(net):
    push, pull = await linked(net)
    waiting = [pull.recv(copy=False) for _ in range(2)]
    await push.send_multipart([b"1", b"2"])
    await sent(net, push, pull, [b"3", b"4"])
    frames = [await receiving for receiving in waiting]
    frames += [await pull.recv(copy=False) for _ in range(2)]
    assert [(frame.bytes, frame.more) for frame in frames] == [
        (b"1", True), (b"2", False), (b"3", True), (b"4", False),
    ]  # fmt: skip


# -- what cannot be converted


GARBAGE = {}


def garbage(function):
    GARBAGE[function.__name__] = function
    return function


@garbage
async def of_an_await(call):
    await call()


@garbage
async def of_gather(call):
    await asyncio.gather(call(), asyncio.sleep(0))


@garbage
async def of_a_shield(call):
    await asyncio.shield(call())


@garbage
async def of_wait_for(call):
    await asyncio.wait_for(call(), 8)


@garbage
async def of_wait(call):
    done, _ = await asyncio.wait([call()])
    done.pop().result()


@garbage
async def of_first_exception(call):
    other = asyncio.get_running_loop().create_future()
    done, _ = await asyncio.wait([call(), other], return_when=asyncio.FIRST_EXCEPTION)
    done.pop().result()


@garbage
async def of_as_completed(call):
    for first in asyncio.as_completed([call()]):
        await first


@garbage
async def of_exception(call):
    receiving = call()
    await asyncio.wait([receiving])
    raise receiving.exception()


@pytest.mark.parametrize("how", GARBAGE)
@pytest.mark.parametrize("when", ["before", "after"])
async def test_what_is_no_json_is_an_error_that_comes_once(net, how, when):
    push, pull = await linked(net)
    if when == "before":
        await sent(net, push, pull, b"{garbage", b"2")
    using = asyncio.ensure_future(GARBAGE[how](pull.recv_json))
    await asyncio.sleep(0)
    if when == "after":
        await push.send(b"{garbage")
        await push.send(b"2")
    with pytest.raises(json.JSONDecodeError):
        await asyncio.wait_for(using, 8)
    assert await pull.recv_json() == 2
    await nothing_more(pull)


@pytest.mark.parametrize("when", ["before", "after"])
async def test_asking_for_the_exception_takes_no_message(net, when):
    push, pull = await linked(net)
    if when == "before":
        await sent(net, push, pull, b"1")
    receiving = pull.recv_json()
    if when == "after":
        await push.send(b"1")
    assert receiving.exception() is None
    del receiving
    assert await pull.recv_json() == 1


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_message_is_converted_once_however_often_it_is_asked_for(net, when):
    push, pull = await linked(net)
    if when == "before":
        await sent(net, push, pull, b"1")
    converted = []
    receiving = pull.recv_serialized(lambda parts: converted.append(parts) or object())
    if when == "after":
        await push.send(b"1")
    assert receiving.exception() is None
    value = await receiving
    assert receiving.result() is value
    assert await receiving is value
    assert converted == [[b"1"]]


# -- sends


async def test_one_object_stands_for_every_send_that_is_done(net):
    push, pull = await linked(net)
    sends = [push.send(b"1"), push.send(b"2")]
    assert sends == [SENT, SENT]
    assert SENT.done()
    assert SENT
    assert not SENT.cancelled()
    assert not SENT.cancel()
    assert SENT.result() is None
    assert SENT.exception() is None
    assert SENT.get_loop() is asyncio.get_running_loop()
    assert {SENT: 1}[SENT]
    assert repr(SENT) == "<sent>"
    assert await SENT is None
    assert await asyncio.wait_for(SENT, 1) is None
    assert await asyncio.shield(SENT) is None
    assert await asyncio.gather(SENT, SENT, *sends) == [None] * 4
    assert await asyncio.wait(sends) == ({SENT}, set())
    assert [await first for first in asyncio.as_completed(sends)] == [None]
    assert [await pull.recv(), await pull.recv()] == [b"1", b"2"]


async def test_a_send_that_waits_is_sent_though_nobody_awaits_it(net):
    push, pull = net.socket(zmq.PUSH, sndtimeo=-1), net.socket(zmq.PULL)
    push.send(b"1")
    push.send_multipart([b"2", b"3"])
    await net.link(pull, push)
    assert [await pull.recv_multipart() for _ in range(2)] == [[b"1"], [b"2", b"3"]]


async def test_a_cancelled_send_sends_nothing(net):
    push, pull = net.socket(zmq.PUSH, sndtimeo=-1), net.socket(zmq.PULL)
    sends = [push.send(b"%d" % n) for n in range(3)]
    assert sends[1].cancel()
    assert sends[1].cancelled()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.gather(*sends)
    await net.link(pull, push)
    assert [await pull.recv() for _ in range(2)] == [b"0", b"2"]
    assert await sends[0] is None
    assert not sends[0].cancel()


# -- no noise


@pytest.mark.parametrize("close", [True, False])
async def test_waiting_calls_may_be_forgotten(net, close):
    """What is still waiting when the socket is closed, or the loop ends, was nobody's concern."""
    push, pull = net.socket(zmq.PUSH, sndtimeo=-1), net.socket(zmq.PULL, rcvtimeo=-1)
    push.send(b"x")
    pull.recv()
    pull.recv_json()
    pull.poll()
    pull.wait_connected()
    await asyncio.sleep(0)
    if close:
        push.close(0)
        pull.close(0)
    await asyncio.sleep(0)
    gc.collect()


async def test_an_error_that_nobody_asks_for_is_told_as_of_any_future(net, caplog):
    pull = net.socket(zmq.PULL)
    pull.bind(net.endpoint())
    pull.recv(zmq.DONTWAIT)
    pull.recv(timeout=0.001)
    await net.eventually(lambda: len(caplog.records) == 2)
    for record in caplog.records:
        assert record.getMessage().startswith("Future exception was never retrieved")
    caplog.clear()


# -- all of it together


WAYS = {}


def way(function):
    WAYS[function.__name__] = function
    return function


@way
async def by_await(pull, rng):
    return [await pull.recv_multipart()]


@way
async def by_iteration(pull, rng):
    async for message in pull:
        return [message if isinstance(message, list) else [message]]
    raise AssertionError("the iteration has ended")


@way
async def not_at_all(pull, rng):
    forms = [pull.recv, pull.recv_multipart, pull.recv_json]
    calls = [rng.choice(forms)() for _ in range(rng.randrange(1, 4))]
    await asyncio.sleep(0)
    rng.shuffle(calls)
    while calls:
        call = calls.pop()
        if not call.done() or rng.random() < 0.5:
            call.cancel()
    return []


@way
async def by_gather_that_is_given_up(pull, rng):
    waiting = asyncio.gather(pull.recv(), pull.recv_multipart(), asyncio.sleep(9))
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(waiting, rng.choice([0, 0.0001]))
    return []


@way
async def by_tasks_that_are_cancelled(pull, rng):
    got = []
    tasks = [asyncio.create_task(put(got, pull.recv_multipart())) for _ in range(3)]
    for _ in range(rng.randrange(3)):
        await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    return got


@way
async def by_wait_for(pull, rng):
    with contextlib.suppress(asyncio.TimeoutError):
        return [await asyncio.wait_for(pull.recv_multipart(), rng.choice([0, 0.0001, 0.001]))]
    return []


@way
async def by_parts(pull, rng):
    parts = [await pull.recv()]
    while pull.rcvmore:
        pull.recv()  # dropped
        parts.append(await pull.recv())
    return [parts]


@pytest.mark.over("tcp", "inproc")
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("turn", ["long", "short"])
async def test_a_message_is_received_once_and_in_order_whatever_was_given_up_between(
    request, net, seed, turn
):
    if turn == "short":
        request.getfixturevalue("hurried")
    push, pull = await linked(net)
    rng = random.Random(seed)
    messages = [[b"%d" % n] * rng.choice([1, 1, 2, 3]) for n in range(400)]

    async def send():
        for message in messages:
            await push.send_multipart(message)
            if rng.random() < 0.2:
                await asyncio.sleep(rng.choice([0, 0, 0.0001]))

    sending = asyncio.create_task(send())
    got = []
    while len(got) < len(messages):
        got += await WAYS[rng.choice(list(WAYS))](pull, rng)
    await sending
    assert got == messages
    await nothing_more(pull)
