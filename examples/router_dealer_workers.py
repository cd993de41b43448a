"""ROUTER gives work to whichever DEALER worker asks for it: no worker waits behind a slow one."""

import threading

import zerohop as zmq

TASKS = [b"task %d" % number for number in range(8)]


def work(context: zmq.Context, endpoint: str) -> None:
    """Say that we are ready, work, send the result (which says so again), until told to stop."""
    with context.socket(zmq.DEALER) as worker:
        worker.connect(endpoint)
        worker.send(b"")  # no result yet: only "ready"
        while (task := worker.recv()) != b"stop":
            worker.send(task.upper())


def main() -> None:
    """Hand out the tasks, collect the results, dismiss the workers."""
    results, workers, tasks = [], set(), iter(TASKS)
    with zmq.Context() as context, context.socket(zmq.ROUTER) as router:
        router.bind("tcp://127.0.0.1:*")
        endpoint = router.last_endpoint.decode()
        threads = [threading.Thread(target=work, args=(context, endpoint)) for _ in range(2)]
        for thread in threads:
            thread.start()
        stopped = 0
        while stopped < len(threads):
            worker, result = router.recv_multipart()  # the first part says who sent it
            if result:
                results.append(result)
                workers.add(worker)
            task = next(tasks, b"stop")
            stopped += task == b"stop"
            router.send_multipart([worker, task])
        for thread in threads:
            thread.join()
    assert sorted(results) == [task.upper() for task in TASKS]
    print(f"{len(results)} tasks done by {len(workers)} workers")


main()
