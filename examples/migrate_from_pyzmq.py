"""A program written for pyzmq, moved to zerohop: one import line is new, the rest is untouched."""

# was: import zmq
import zerohop as zmq

context = zmq.Context.instance()

collector = context.socket(zmq.PULL)
collector.setsockopt(zmq.RCVHWM, 100)
collector.RCVTIMEO = 5000
port = collector.bind_to_random_port("tcp://127.0.0.1")

reporter = context.socket(zmq.PUSH)
reporter.setsockopt(zmq.LINGER, 1000)
reporter.connect(f"tcp://127.0.0.1:{port}")

reporter.send_json({"step": 1, "loss": 0.5})
reporter.send_json({"step": 2, "loss": 0.25})
for _ in range(2):
    print(collector.recv_json())

try:
    collector.recv(zmq.NOBLOCK)
except zmq.Again as error:
    print("nothing left:", error.strerror)

reporter.close()
collector.close()
context.term()
