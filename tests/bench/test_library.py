"""What differs between the libraries."""

import resource

import pytest

from bench.contenders import BY_NAME
from bench.library import Library
from bench.machine import allow_descriptors


@pytest.fixture
def library():
    opened = Library(BY_NAME["zerohop"])
    yield opened
    opened.close()


def test_an_option_is_set_by_its_name(library):
    socket = library.open("PUSH")
    assert library.set_if_known(socket, "SNDHWM", 7)
    assert socket.sndhwm == 7


def test_an_option_that_a_library_has_not_is_left_to_it(library):
    assert not library.set_if_known(library.open("PUSH"), "NO_SUCH_OPTION", 1)
    assert not library.set_if_known(library.open("PUSH"), "SNDHWM", -5)


def test_the_floor_has_no_options_and_the_cases_need_not_know():
    floor = Library(BY_NAME["floor"])
    assert not floor.set_if_known(floor.open("PUSH"), "SNDHWM", 7)


def test_a_poller_waits_for_messages(library):
    pull, push = library.open("PULL"), library.open("PUSH")
    push.connect(library.bind(pull, "tcp://127.0.0.1:*"))
    push.send(b"x")
    [(ready, _)] = library.poller([pull]).poll(5000)
    assert ready is pull
    assert pull.recv(library.no_wait) == b"x"
    with pytest.raises(library.empty):
        pull.recv(library.no_wait)


def test_a_socket_may_be_closed_before_the_others(library):
    pull, push = library.open("PULL"), library.open("PUSH")
    library.close_one(pull)
    assert (pull.closed, push.closed) == (True, False)


def test_the_limit_of_descriptors_is_raised_and_never_lowered():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        allow_descriptors(soft - 1)
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (soft, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft - 10, hard))
        allow_descriptors(soft - 5)
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (soft - 5, hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
