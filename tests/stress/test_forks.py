"""fork() in any state of the parent: the child has a world of its own, and the parent goes on.

Each test is a program of its own, for pytest's process has threads that fork would leave behind.
"""

import pytest

from tests.stress.kit import SOAK, limited

pytestmark = limited

FORKS = 4 + int(SOAK * 5)

PARENT = """
    import warnings
    warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
    from tests.stress.children import talk, talk_to_oneself

    context = zmq.Context()
    context.linger = 0
    context.rcvtimeo = context.sndtimeo = 8000
    push, pull, rep = (context.socket(kind) for kind in (zmq.PUSH, zmq.PULL, zmq.REP))
    pull.bind("tcp://127.0.0.1:*"), rep.bind("tcp://127.0.0.1:*")
    push.connect(pull.last_endpoint.decode())
    endpoint = rep.last_endpoint.decode()
    over = threading.Event()
    failures = []

    def serve():
        rep.rcvtimeo = 50
        while not over.is_set():
            try:
                rep.send(b"re " + rep.recv())
            except zmq.Again:
                continue

    def start(call, *args):
        def run():
            try:
                call(*args)
            except BaseException as error:
                failures.append(repr(error))
        threads.append(threading.Thread(target=run))
        threads[-1].start()

    def child(number):
        # In the child: what was the parent's is closed, and of no effect.
        assert context.closed and push.closed and pull.closed and rep.closed
        for call in (lambda: push.send(b"from the child"), pull.recv, lambda: rep.recv(timeout=1)):
            try:
                call()
            except zmq.ZMQError as error:
                assert error.errno == zmq.ENOTSOCK
            else:
                raise AssertionError("a socket of the parent works in the child")
        push.close(), context.term(), context.destroy()
        talk(endpoint, number, 3)
        talk_to_oneself()
        names = [thread.name for thread in threading.enumerate()]
        assert names == [threading.current_thread().name], names

    def fork(number):
        pid = os.fork()
        if not pid:
            status = 1
            try:
                child(number)
                status = 0
            except BaseException as error:
                print("child:", repr(error), flush=True)
            finally:
                os._exit(status)
        return pid

    def wait_for(pid):
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        assert status == 0, status

    threads = []
    start(serve)
"""

EPILOGUE = """
    for thread in threads[1:]:
        thread.join()
    over.set()
    threads[0].join()
    context.destroy(linger=0)
    assert not failures, failures
    print([thread.name for thread in threading.enumerate()])
"""

STATES = {
    "nothing is under way": """
        for n in range(FORKS):
            wait_for(fork(n))
    """,
    "a thread waits in the seat": """
        waiting = context.socket(zmq.PULL)
        waiting.bind("inproc://waiting")
        start(waiting.recv)
        time.sleep(0.05)
        for n in range(FORKS):
            wait_for(fork(n))
        with context.socket(zmq.PUSH) as waker:
            waker.connect("inproc://waiting")
            waker.send(b"x")
    """,
    "others send and receive": """
        count = 3000 * FORKS
        def send():
            for n in range(count):
                push.send(b"%d" % n)
        def receive():
            for n in range(count):
                assert pull.recv() == b"%d" % n
        start(send), start(receive)
        for n in range(FORKS):
            time.sleep(0.005)
            wait_for(fork(n))
    """,
    "others make, bind, connect and close sockets": """
        forked = threading.Event()
        def live():
            while not forked.is_set():
                with context.socket(zmq.PAIR) as one, context.socket(zmq.PAIR) as other:
                    one.bind("tcp://127.0.0.1:*")
                    other.connect(one.last_endpoint.decode())
                    other.send(b"x")
                    assert one.recv() == b"x"
        start(live), start(live)
        for n in range(FORKS):
            time.sleep(0.005)
            wait_for(fork(n))
        forked.set()
    """,
    "several forks at once, by threads": """
        def fork_and_wait(number):
            wait_for(fork(number))
        for n in range(FORKS):
            start(fork_and_wait, n)
    """,
    "messages linger": """
        for n in range(FORKS):
            last = context.socket(zmq.PUSH)
            last.linger = -1
            last.connect(pull.last_endpoint.decode())
            for _ in range(200):
                last.send(b"x" * 1000)
            last.close()
            wait_for(fork(n))
            for _ in range(200):
                assert pull.recv() == b"x" * 1000
    """,
    "a signal handler forks in a wait": """
        pids = []
        signal.signal(signal.SIGALRM, lambda *_: pids.append(fork(len(pids))))
        for n in range(FORKS):
            signal.setitimer(signal.ITIMER_REAL, 0.02)
            try:
                pull.recv(timeout=0.1)
            except zmq.Again:
                pass
        for pid in pids:
            wait_for(pid)
        assert len(pids) == FORKS
    """,
    "a child that forks": """
        for n in range(FORKS):
            pid = os.fork()
            if not pid:
                own = zmq.Context()
                one = own.socket(zmq.PULL)
                one.bind("tcp://127.0.0.1:*")
                inner = fork(n)
                wait_for(inner)
                assert not one.closed
                one.close(), own.term()
                os._exit(0)
            wait_for(pid)
    """,
}


@pytest.mark.parametrize("state", STATES.values(), ids=STATES)
def test_a_child_has_its_own_world_and_the_parent_goes_on_when(program, state):
    text = PARENT + state.replace("\n    ", "\n").replace("FORKS", str(FORKS)) + EPILOGUE
    assert program(text).end(within=30 + SOAK) == ["['MainThread']"]


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing(program, method):
    """Processes and pools, in which each worker has a context of its own."""
    text = """
        import multiprocessing
        from tests.stress import children

        mp = multiprocessing.get_context(METHOD)
        processes = [mp.Process(target=children.talk, args=(endpoint, n, 5)) for n in range(2)]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
            assert process.exitcode == 0, process.exitcode
        with mp.Pool(2, children.begin, (endpoint,)) as pool:
            assert pool.map(children.job, range(40)) == [b"re %d" % n for n in range(40)]
            pool.close()
            pool.join()
    """
    text = PARENT + text.replace("\n    ", "\n").replace("METHOD", repr(method)) + EPILOGUE
    assert program(text).end(within=30) == ["['MainThread']"]
