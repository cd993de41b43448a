"""Ctrl-C, for real: SIGINT at any moment, handled or not, and handlers that use sockets themselves.

Where exactly it strikes is chance; tests/stress/test_interrupts.py goes through the places.
"""

import signal
import time
from random import Random

import pytest

from tests.stress.kit import SEED, SOAK, SOON, limited

pytestmark = limited

TIMES = 2 + int(SOAK)

WORLD = f"""
    LATE = {SOON - 2 + SOAK}
    import faulthandler, logging
    logging.disable()  # of peers that were left, and of waits that go nowhere
    faulthandler.dump_traceback_later(LATE)  # shown by who waits for the end in vain
    context = zmq.Context()
    context.linger = 0
    context.reconnect_ivl = 1
    context.rcvtimeo = context.sndtimeo = 8000
    kinds = zmq.PUSH, zmq.PULL, zmq.PAIR, zmq.PUB
    push, pull, lonely, publisher = map(context.socket, kinds)
    pull.bind(ENDPOINT), lonely.bind("inproc://lonely")
    push.connect(pull.last_endpoint.decode())
    push.wait_connected(8)
    lonely.rcvtimeo = lonely.sndtimeo = -1
    poller = zmq.Poller()
    poller.register(lonely), poller.register(os.pipe()[0], zmq.POLLIN)

    def go_on():
        '''What is sent from now on arrives.'''
        for attempt in range(50):
            push.send(b"now")
            while pull.poll(100):
                if pull.recv() == b"now":
                    return
        raise AssertionError("cut off")

    def end():
        context.destroy(linger=0)
        names = [thread.name for thread in threading.enumerate()]
        assert names == ["MainThread"], names
        print("ended")
"""

WAITS = {
    "recv": "lonely.recv()",
    "recv_multipart": "lonely.recv_multipart(copy=False)",
    "recv with a time limit": "lonely.recv(timeout=60)",
    "iteration": "list(lonely)",
    "send": "lonely.send(b'x')",
    "send_multipart": "lonely.send_multipart([b'x', b'y'])",
    "poll": "lonely.poll()",
    "poll for room": "lonely.poll(60_000, zmq.POLLOUT)",
    "Poller": "poller.poll()",
    "select": "zmq.select([lonely], [lonely], [])",
    "wait_connected": "lonely.wait_connected()",
    "wait_for_subscribers": "publisher.wait_for_subscribers()",
    "proxy": "zmq.proxy(lonely, lonely)",
    "term": "context.term()",
}

FLOODS = {
    "batches": """
        while True:
            for n in range(300):
                push.send(b"%d" % n)
            for _ in range(300):
                pull.recv()
    """,
    "one by one": """
        while True:
            push.send(b"x" * 100)
            pull.recv()
    """,
    "large": """
        while True:
            push.send(b"x" * 1_000_000, copy=False)
            pull.recv(copy=False)
    """,
    "short lives": """
        while True:
            with context.socket(zmq.REQ) as req, context.socket(zmq.REP) as rep:
                rep.bind("tcp://127.0.0.1:*")
                req.connect(rep.last_endpoint.decode())
                req.send(b"x")
                rep.send(rep.recv())
                req.recv()
    """,
    "a thread takes part": """
        def drink():
            try:
                while True:
                    pull.recv()
            except zmq.ZMQError:
                return
        drinking = threading.Thread(target=drink)
        drinking.start()
        while True:
            push.send(b"x")
    """,
}
TRANSPORTS = ("tcp://127.0.0.1:*", "inproc://pull")


def chances(name):
    seeds = [int(SEED)] if SEED else range(TIMES) if not SOAK else [time.time_ns()] * TIMES
    for number, seed in enumerate(seeds):
        print(f"SEED={seed}")
        yield Random(f"{name} {seed} {number}")


@pytest.mark.parametrize("handled", [True, False], ids=["handled", "not handled"])
def test_ctrl_c_ends_any_wait(program, handled):
    """A program for each kind of wait, all at once; handled, each goes on and ends well."""
    waiting = []
    for name, wait in list(WAITS.items())[:: 1 if handled else 5]:
        text = f"""
            print("waiting")
            try:
                {wait}
            except KeyboardInterrupt:
                if not {handled}:
                    raise
            if {name != "term"}:
                go_on()
            end()
        """
        world = WORLD.replace("ENDPOINT", repr(TRANSPORTS[len(name) % 2]))
        waiting.append(program(world + text.replace("\n        ", "\n")))
    for each in waiting:
        assert each.line() == "waiting"
    time.sleep(0.2)
    for each in waiting:
        each.signal(signal.SIGINT)
    for each in waiting:
        if handled:
            assert each.end() == ["ended"]
        else:
            assert each.end_by_signal().rstrip().endswith("KeyboardInterrupt")


@pytest.mark.parametrize("flood", FLOODS.values(), ids=FLOODS)
def test_ctrl_c_in_a_flood_again_and_again(program, flood):
    """Three times it is handled and the program goes on; then it closes everything."""
    for random in chances(flood):
        text = f"""
            import warnings
            warnings.simplefilter("ignore", ResourceWarning)
            # What a handler raises in a finalizer Python drops: then let it come again. Nothing
            # can be raised in a hook that is no function of Python's.
            import functools
            sys.unraisablehook = functools.partial(print, "lost")
            def flood():
                {flood.strip().replace(chr(10), chr(10) + " " * 8)}
            for n in range(3):
                try:
                    print("flooding")
                    flood()
                except KeyboardInterrupt:
                    continue
            if {flood is not FLOODS["a thread takes part"]}:
                go_on()
            context.destroy(linger=0)
            print("ended")
        """
        world = WORLD.replace("ENDPOINT", repr(random.choice(TRANSPORTS)))
        running = program(world + text.replace("\n        ", "\n"))
        for _ in range(3):
            assert next_line(running) == "flooding"
            time.sleep(0.01 + random.random() * 0.1)
            running.signal(signal.SIGINT)
        assert next_line(running) == "ended"
        assert running.end() == []


def next_line(running):
    """What the program says when it has noticed a Ctrl-C: a lost one, and no other, is repeated."""
    for _ in range(20):
        line = running.line()
        if not line.startswith("lost "):
            return line
        assert "KeyboardInterrupt()" in line
        running.signal(signal.SIGINT)
    raise AssertionError("lost again and again")


def test_handlers_use_sockets_while_the_main_thread_waits_in_the_same_context(program):
    """A handler that returns ends no wait; it may send, receive, poll, make and close sockets."""
    text = """
        import itertools
        calls = itertools.count()

        def handle(number, frame):
            n = next(calls)
            with context.socket(zmq.REQ) as req, context.socket(zmq.REP) as rep:
                rep.bind("tcp://127.0.0.1:*")
                req.connect(rep.last_endpoint.decode())
                req.send(b"%d" % n)
                assert rep.recv() == b"%d" % n
                rep.send(b"yes")
                assert req.poll(8000)
                assert req.recv() == b"yes"
            if n == LAST:
                push.send(b"over")
            else:
                signal.setitimer(signal.ITIMER_REAL, 0.003)

        signal.signal(signal.SIGALRM, handle)
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        other = threading.Thread(target=lonely.poll, args=(500,))
        other.start()
        WAIT
        other.join()
        assert next(calls) > LAST
        go_on()
        end()
    """
    waits = [
        'assert pull.recv() == b"over"',
        'assert pull.poll() and pull.recv() == b"over"',
        'assert dict(poller.poll(1000)) == {}; assert pull.recv() == b"over"',
        'while push.send(b"x" * 100) or pull.recv() != b"over": pass',
    ]
    running = []
    for wait in waits:
        own = text.replace("WAIT", wait).replace("LAST", str(30 + int(10 * SOAK)))
        world = WORLD.replace("ENDPOINT", repr(TRANSPORTS[len(running) % 2]))
        running.append(program(world + own.replace("\n    ", "\n")))
    for each in running:
        assert each.end(within=30 + SOAK) == ["ended"]


@pytest.mark.parametrize("wait", ["lonely.recv()", "poller.poll()", "parked()"])
def test_a_signal_that_interrupts_no_sleep_is_handled_soon(program, wait):
    """It came just before the system call, or, as here, to another thread."""
    text = f"""
        class Struck(Exception): pass
        def handle(number, frame):
            raise Struck
        signal.signal(signal.SIGALRM, handle)
        other = threading.Thread(target=pull.poll, args=(30_000,))  # drives: others are parked
        def parked():
            other.start()
            while not context._io.reactor._driver:
                pass
            lonely.recv()
        def strike():
            time.sleep(0.5)
            signal.pthread_kill(threading.get_ident(), signal.SIGALRM)
        threading.Thread(target=strike).start()
        try:
            {wait}
        except Struck:
            print("struck")
        if other.ident:
            push.send(b"")
            other.join()
        end()
    """
    world = WORLD.replace("ENDPOINT", repr(TRANSPORTS[0]))
    assert program(world + text.replace("\n    ", "\n")).end() == ["struck", "ended"]


def test_a_time_limit_by_a_signal_that_raises(program):
    """``signal.alarm`` and an exception of the program's own, hundreds of times."""
    text = """
        class TooLate(Exception): pass
        def handle(number, frame):
            raise TooLate
        signal.signal(signal.SIGALRM, handle)
        import random
        random.seed(SEED)
        late = 0
        for n in range(TIMES):
            try:
                signal.setitimer(signal.ITIMER_REAL, random.random() * 0.004)
                lonely.recv(timeout=random.choice((0.001, 0.004, 8)))
            except TooLate:
                late += 1
            except zmq.Again:
                try:
                    signal.setitimer(signal.ITIMER_REAL, 0)
                except TooLate:
                    late += 1
        assert late > TIMES / 4
        go_on()
        end()
    """
    for random in chances("alarm"):
        own = text.replace("SEED", str(random.random())).replace("TIMES", "300")
        world = WORLD.replace("ENDPOINT", repr(random.choice(TRANSPORTS)))
        assert program(world + own.replace("\n    ", "\n")).end() == ["ended"]
