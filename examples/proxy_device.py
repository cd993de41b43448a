"""A proxy between clients and workers: neither side knows how many there are on the other."""

import threading

import zerohop as zmq


def serve(context: zmq.Context, name: str) -> None:
    """Answer requests with our name until the context ends."""
    with context.socket(zmq.REP) as rep:
        rep.connect("inproc://workers")
        try:
            while True:
                rep.send_multipart([name.encode(), rep.recv()])
        except zmq.ContextTerminated:
            return


def forward(frontend: zmq.Socket, backend: zmq.Socket, control: zmq.Socket) -> None:
    """Run the proxy until TERMINATE arrives."""
    with frontend, backend, control:
        zmq.proxy_steerable(frontend, backend, None, control)


def main() -> None:
    """Ask six times through the proxy; it deals the requests out in turn."""
    context = zmq.Context()
    frontend, backend = context.socket(zmq.ROUTER), context.socket(zmq.DEALER)
    control, steer = context.socket(zmq.PAIR), context.socket(zmq.PAIR)
    frontend.bind("tcp://127.0.0.1:*")
    endpoint = frontend.last_endpoint
    backend.bind("inproc://workers")
    control.bind("inproc://control")
    steer.connect("inproc://control")
    workers = [threading.Thread(target=serve, args=(context, name)) for name in ("a", "b")]
    proxy = threading.Thread(target=forward, args=(frontend, backend, control))
    for thread in (*workers, proxy):
        thread.start()
    answered_by = []
    with context.socket(zmq.REQ) as client:
        client.connect(endpoint)
        for _ in range(6):
            client.send(b"who are you?")
            answered_by.append(client.recv_multipart()[0])
    print(f"{len(answered_by)} requests answered by {len(set(answered_by))} workers")
    steer.send(b"TERMINATE")
    proxy.join()
    steer.close()
    context.term()  # ends the workers too: their recv raises ContextTerminated
    for thread in workers:
        thread.join()


main()
