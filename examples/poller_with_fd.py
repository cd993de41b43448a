"""One Poller for sockets and anything else that has a file descriptor."""

import os

import zerohop as zmq


def main() -> None:
    """Wait for a socket and a pipe together until both have spoken."""
    reading, writing = os.pipe()
    with (
        zmq.Context() as context,
        context.socket(zmq.PULL) as pull,
        context.socket(zmq.PUSH) as push,
    ):
        pull.bind("tcp://127.0.0.1:*")
        push.connect(pull.last_endpoint)
        poller = zmq.Poller()
        poller.register(pull, zmq.POLLIN)
        poller.register(reading, zmq.POLLIN)

        push.send(b"from a socket")
        os.write(writing, b"from a pipe")
        heard: list[str] = []
        while len(heard) < 2:
            ready = dict(poller.poll(timeout=5000))  # ms
            assert ready, "nothing came within five seconds"
            if pull in ready:
                heard.append(f"socket: {pull.recv().decode()}")
            if reading in ready:
                heard.append(f"pipe: {os.read(reading, 100).decode()}")
    os.close(reading)
    os.close(writing)
    print(*sorted(heard), sep="\n")


main()
