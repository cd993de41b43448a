"""What programs ask of the library itself."""

import time

import zerohop as zmq


def test_the_number_of_the_error_that_is_handled():
    assert zmq.zmq_errno() == 0
    try:
        raise zmq.Again
    except zmq.Again:
        assert zmq.zmq_errno() == zmq.EAGAIN
        try:
            raise KeyError
        except KeyError:  # on the way of ours
            assert zmq.zmq_errno() == zmq.EAGAIN
    assert zmq.zmq_errno() == 0


def test_an_error_without_a_number_has_none():
    try:
        raise zmq.ZMQError("only a text")
    except zmq.ZMQError:
        assert zmq.zmq_errno() == 0


def test_there_is_nothing_to_compile_against():
    assert zmq.get_includes() == zmq.get_library_dirs() == []


def test_a_stopwatch_counts_microseconds(monkeypatch):
    now = [5_000_000]
    monkeypatch.setattr(time, "perf_counter_ns", lambda: now[0])
    watch = zmq.Stopwatch()
    now[0] += 2_000_999
    assert watch.stop() == 2000
    watch.start()
    now[0] += 3_000_000
    assert watch.stop() == 3000
