"""Ctrl-C, fork and the interpreter's exit: each in a process of its own."""

import signal
import subprocess
import sys
import textwrap
import time

import pytest

import zerohop as zmq
from tests.kit.net import free_port

PROLOGUE = """
import gc, os, signal, sys, threading, time
import zerohop as zmq
"""


_started = []


@pytest.fixture(autouse=True)
def no_process_is_left():
    yield
    while _started:
        process = _started.pop()
        process.kill()
        process.communicate()


def start(program):
    """Start a program; what it prints comes at once."""
    process = subprocess.Popen(
        [sys.executable, "-u", "-W", "error", "-c", PROLOGUE + textwrap.dedent(program)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    _started.append(process)
    return process


def outcome(process, timeout=15):
    """What a program printed and how it ended; it must end in time and say nothing on stderr."""
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        raise AssertionError(f"still running; printed {out!r}, {err!r}") from None
    assert err == ""
    return out.split(), process.returncode


def run(program, timeout=15):
    return outcome(start(program), timeout)


# -- Ctrl-C

WAITS = {
    "recv": "pull.recv()",
    "recv_multipart": "pull.recv_multipart()",
    "send": "push.send(b'x')",
    "poll": "pull.poll()",
    "poller": "poller.poll()",
    "poller of a descriptor": "mixed.poll()",
    "wait_connected": "push.wait_connected()",
    "parked": "threading.Thread(target=list, args=(other,)).start(); time.sleep(.1); pull.recv()",
    "term": "context.term()",
}


@pytest.mark.parametrize("wait", WAITS.values(), ids=WAITS)
def test_ctrl_c_interrupts_a_wait_and_the_socket_works_on(wait):
    process = start(f"""
        context = zmq.Context()
        push, pull, other = map(context.socket, (zmq.PUSH, zmq.PULL, zmq.PULL))
        pull.bind("inproc://pull"), other.bind("inproc://other"), push.bind("inproc://push")
        poller, mixed = zmq.Poller(), zmq.Poller()
        poller.register(pull), mixed.register(pull), mixed.register(os.pipe()[0], zmq.POLLIN)
        print("waiting")
        try:
            {wait}
        except KeyboardInterrupt:
            print("interrupted")
        if {wait.startswith("context")}:
            context.destroy(linger=0)
        else:
            push.connect("inproc://pull")
            push.send(b"x")
            print(pull.recv().decode())
            other.close(), push.close(), pull.close()
            context.term()
        time.sleep(0.1)
        print([thread.name for thread in threading.enumerate()])
    """)
    assert process.stdout.readline() == "waiting\n"
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    out, code = outcome(process)
    assert code == 0
    assert out[0] == "interrupted"
    assert out[-1] == "['MainThread']"


def test_ctrl_c_during_a_flood_leaves_sockets_that_can_be_closed():
    for _ in range(3):
        process = start("""
            context = zmq.Context()
            push, pull = context.socket(zmq.PUSH), context.socket(zmq.PULL)
            push.linger = 0
            pull.bind("tcp://127.0.0.1:*")
            push.connect(pull.last_endpoint.decode())
            print("flooding")
            try:
                while True:
                    for _ in range(400):
                        push.send(b"x" * 100)
                    for _ in range(400):
                        pull.recv()
            except KeyboardInterrupt:
                print("interrupted")
            context.destroy(linger=0)
            print([thread.name for thread in threading.enumerate()])
        """)
        assert process.stdout.readline() == "flooding\n"
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        assert outcome(process) == (["interrupted", "['MainThread']"], 0)


def test_a_signal_whose_handler_returns_ends_no_wait():
    out, code = run("""
        context = zmq.Context()
        push, pull = context.socket(zmq.PUSH), context.socket(zmq.PULL)
        pull.bind("inproc://x"), push.connect("inproc://x")
        signal.signal(signal.SIGALRM, lambda *_: print("alarm"))
        signal.signal(signal.SIGUSR1, lambda *_: push.send(b"from a handler"))
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGUSR1)).start()
        print(pull.recv().decode())
        context.destroy(linger=0)
    """)
    assert (out, code) == (["alarm", "from", "a", "handler"], 0)


# -- fork


def test_a_child_has_closed_sockets_and_a_fresh_instance_and_the_parent_goes_on():
    out, code = run("""
        context = zmq.Context.instance()
        push, pull = context.socket(zmq.PUSH), context.socket(zmq.PULL)
        pull.bind("tcp://127.0.0.1:*")
        push.connect(pull.last_endpoint.decode())
        push.send(b"before")
        assert pull.recv() == b"before"
        before = len(os.listdir("/proc/self/fd"))
        child = os.fork()
        if not child:
            assert push.closed and pull.closed and context.closed
            for call in (lambda: push.send(b"x"), pull.recv, lambda: pull.getsockopt(zmq.TYPE)):
                try:
                    call()
                except zmq.ZMQError as error:
                    assert error.errno == zmq.ENOTSOCK
                else:
                    raise AssertionError
            fresh = zmq.Context.instance()
            assert fresh is not context
            with fresh.socket(zmq.REQ) as req, fresh.socket(zmq.REP) as rep:
                rep.bind("tcp://127.0.0.1:*")
                req.connect(rep.last_endpoint.decode())
                req.send(b"x")
                rep.send(rep.recv())
                assert req.recv() == b"x"
            fresh.term()
            context.destroy(linger=0)
            assert [thread.name for thread in threading.enumerate()] == ["MainThread"]
            assert len(os.listdir("/proc/self/fd")) < before
            os._exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        for n in range(1000):
            push.send(b"%d" % n)
        assert [pull.recv() for n in range(1000)] == [b"%d" % n for n in range(1000)]
        context.destroy(linger=0)
        print("fine")
    """)
    assert (out, code) == (["fine"], 0)


def test_asyncio_sockets_in_a_child_are_closed_too():
    """Their lanes as well: a send would look done, and nobody would ever write it."""
    out, code = run("""
        import asyncio
        import zerohop.asyncio

        context = zmq.asyncio.Context()

        async def use_and_fork():
            push, pull = context.socket(zmq.PUSH), context.socket(zmq.PULL)
            pull.bind("tcp://127.0.0.1:*")
            push.connect(pull.last_endpoint.decode())
            await push.send(b"before")
            assert await pull.recv() == b"before"
            child = os.fork()
            if not child:
                for call in (lambda: push.send(b"x"), pull.recv):
                    asyncio.run(refused(call))
                os._exit(7)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
            await push.send(b"after")
            assert await pull.recv() == b"after"
            context.destroy(linger=0)

        async def refused(call):
            try:
                await call()
            except zmq.ZMQError as error:
                assert error.errno == zmq.ENOTSOCK
            else:
                raise AssertionError

        asyncio.run(use_and_fork())
        print("fine")
    """)
    assert (out, code) == (["fine"], 0)


def test_forking_while_other_threads_are_at_it():
    out, code = run(
        """
        context = zmq.Context()
        push, pull = context.socket(zmq.PUSH), context.socket(zmq.PULL)
        pull.bind("tcp://127.0.0.1:*")
        push.connect(pull.last_endpoint.decode())
        count = 20000

        def send():
            for n in range(count):
                push.send(b"%d" % n)

        def receive():
            for n in range(count):
                assert pull.recv() == b"%d" % n
            print("received")

        threads = [threading.Thread(target=send), threading.Thread(target=receive)]
        for thread in threads:
            thread.start()
        for _ in range(5):
            child = os.fork()
            if not child:
                own = zmq.Context()
                with own.socket(zmq.PUSH) as alone:
                    alone.bind("tcp://127.0.0.1:*")
                own.term()
                os._exit(0 if push.closed else 1)
            assert os.waitpid(child, 0)[1] == 0
        for thread in threads:
            thread.join()
        context.destroy(linger=0)
        """,
        timeout=30,
    )
    assert (out, code) == (["received"], 0)


# -- exit


@pytest.fixture
def receiver():
    """A process that binds a PULL and prints the messages until it has ``end``."""
    port = free_port()
    process = start(f"""
        with zmq.Context() as context, context.socket(zmq.PULL) as pull:
            pull.bind("tcp://127.0.0.1:{port}")
            print("bound")
            while (message := pull.recv()) != b"end":
                print(message.decode())
    """)
    assert process.stdout.readline() == "bound\n"
    return port, process


@pytest.mark.parametrize("closing", ["", "push.close()", "push.close(); context.term()"])
def test_what_was_sent_arrives_though_the_program_ends(receiver, closing):
    port, process = receiver
    assert run(f"""
        context = zmq.Context()
        push = context.socket(zmq.PUSH)
        push.connect("tcp://127.0.0.1:{port}")
        for n in range(500):
            push.send(b"%d" % n)
        push.send(b"end")
        {closing}
    """) == ([], 0)
    assert outcome(process) == ([str(n) for n in range(500)], 0)


@pytest.mark.parametrize("closing", ["", "dealer.close()", "dealer.close(); context.term()"])
def test_what_was_asked_arrives_though_the_program_ends_before_the_answers(closing):
    with zmq.Context() as context, context.socket(zmq.ROUTER) as router:
        router.rcvtimeo = 10_000
        router.bind("tcp://127.0.0.1:*")
        process = start(f"""
            context = zmq.Context()
            dealer = context.socket(zmq.DEALER)
            dealer.connect("{router.last_endpoint.decode()}")
            for n in range(2500):
                dealer.send_multipart([b"%d" % n, bytes(4000)])
            {closing}
        """)
        router.poll()
        time.sleep(0.2)  # the program is at its end
        for n in range(2500):
            who, number, _ = router.recv_multipart()
            assert int(number) == n
            router.send_multipart([who, b"an answer"])
    assert outcome(process) == ([], 0)


@pytest.mark.parametrize("closing", ["", "push.close()", "del push, context; gc.collect()"])
def test_a_message_for_nobody_holds_the_exit_for_a_moment_and_not_longer(closing):
    start_time = time.monotonic()
    out, code = run(f"""
        import warnings
        warnings.simplefilter("ignore")
        context = zmq.Context()
        push = context.socket(zmq.PUSH)
        push.connect("tcp://127.0.0.1:{free_port()}")
        push.send(b"x")
        {closing}
    """)
    assert (out, code) == ([], 0)
    assert time.monotonic() - start_time < 8


def test_no_linger_no_waiting_at_exit():
    out, code = run(f"""
        import atexit
        context = zmq.Context()
        push = context.socket(zmq.PUSH)
        push.linger = 0
        push.connect("tcp://127.0.0.1:{free_port()}")
        push.send(b"x")
        started = time.monotonic()
        from zerohop.io import context as module
        atexit.register(lambda: print(int(time.monotonic() - started < 0.5)))
        # Last in, first out: this runs before the line above.
        atexit.register(module._write_what_was_sent)
    """)
    assert (out, code) == (["1"], 0)


def test_threads_that_still_wait_do_not_disturb_the_exit():
    out, code = run("""
        context = zmq.Context()
        pull = context.socket(zmq.PULL)
        pull.bind("tcp://127.0.0.1:*")
        for verb in (pull.recv, pull.poll, pull.recv_multipart):
            threading.Thread(target=verb, daemon=True).start()
        time.sleep(0.1)
        print("end")
    """)
    assert (out, code) == (["end"], 0)


def test_a_program_may_end_its_context_at_exit():
    out, code = run("""
        import atexit
        context = zmq.Context()
        pull = context.socket(zmq.PULL)
        pull.bind("tcp://127.0.0.1:*")

        @atexit.register
        def end():
            pull.close()
            context.term()
            print(context.closed)
    """)
    assert (out, code) == (["True"], 0)


def test_a_context_in_a_cycle_does_not_hang_the_end_of_the_interpreter():
    out, code = run("""
        class Holder: pass
        holder = Holder()
        holder.self = holder
        holder.context = zmq.Context()
        holder.socket = holder.context.socket(zmq.PULL)
        holder.socket.bind("tcp://127.0.0.1:*")
        time.sleep(0.05)
    """)
    assert (out, code) == ([], 0)
