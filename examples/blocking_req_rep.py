"""REQ and REP, blocking: a server thread answers, a client asks and waits."""

import threading

import zerohop as zmq


def serve(replies: zmq.Socket) -> None:
    """Answer one request."""
    request = replies.recv_string()
    replies.send_string(request.upper())


def main() -> None:
    """Ask once, over tcp."""
    with zmq.Context() as context, context.socket(zmq.REP) as rep, context.socket(zmq.REQ) as req:
        port = rep.bind_to_random_port("tcp://127.0.0.1")
        server = threading.Thread(target=serve, args=[rep])
        server.start()
        req.connect(f"tcp://127.0.0.1:{port}")
        req.rcvtimeo = 5000  # ms: a server that died is an error (zmq.Again), not a hang
        req.send_string("hello")
        print("the server answered:", req.recv_string())
        server.join()


main()
