"""Names and notes that the sockets of one Context share."""

import pytest

from tests.core.kit import inproc, make_core, received
from zerohop.constants import Errno
from zerohop.core.context import ContextCore
from zerohop.errors import EndpointError, ZMQError


@pytest.fixture
def context():
    return ContextCore()


def test_every_open_socket_is_known(context):
    first, second = make_core("PUSH", context), make_core("PULL", context)
    assert context.sockets == {first, second}
    first.close()
    assert context.sockets == {second}


def test_a_name_belongs_to_one_socket(context):
    first, second = make_core("PULL", context), make_core("PULL", context)
    assert context.bind("name", first) == []
    for core in (first, second):
        with pytest.raises(EndpointError) as taken:
            context.bind("name", core)
        assert taken.value.errno == Errno.EADDRINUSE
        assert "inproc://name" in str(taken.value)
    assert context.binder("name") is first


def test_a_name_that_was_given_back_can_be_taken(context):
    first, second = make_core("PULL", context), make_core("PULL", context)
    context.bind("name", first)
    context.unbind("name")
    assert context.binder("name") is None
    context.bind("name", second)
    assert context.binder("name") is second


def test_giving_back_a_name_that_nobody_has_changes_nothing(context):
    context.unbind("name")
    assert context.binder("name") is None


def test_contexts_do_not_know_each_others_names(context):
    context.bind("name", make_core("PULL", context))
    assert ContextCore().binder("name") is None


def test_who_waits_for_a_name_is_given_to_its_binder_once(context):
    push, pull = make_core("PUSH", context), make_core("PULL", context)
    peers = [push.links.peers.new(conflate=False) for _ in range(3)]
    for peer in peers:
        context.wait_for_bind("name", peer)
    context.wait_for_bind("other", push.links.peers.new(conflate=False))
    assert context.bind("name", pull) == peers
    context.unbind("name")
    assert context.bind("name", pull) == []


def test_who_does_not_wait_any_more_is_forgotten(context):
    push, pull = make_core("PUSH", context), make_core("PULL", context)
    stays, goes, alone = (push.links.peers.new(conflate=False) for _ in range(3))
    for name, peer in (("name", stays), ("name", goes), ("other", alone)):
        context.wait_for_bind(name, peer)
    context.forget(goes)
    context.forget(alone)
    context.forget(goes)  # unknown by now
    assert context.bind("name", pull) == [stays]
    assert context.bind("other", pull) == []


# -- notes


def joined(context, *, hwm=0):
    """A PUSH and the PULL that it is connected to."""
    push, pull = make_core("PUSH", context, sndhwm=hwm), make_core("PULL", context, rcvhwm=hwm)
    pull.inproc.bind(inproc("name"))
    push.inproc.connect(inproc("name"))
    context.hand_over()
    return push, pull


def test_a_message_is_noted_to_the_socket_that_will_receive_it(context):
    push, pull = joined(context)
    push.send(b"x")
    assert context.hand_over() == [pull]
    assert received(pull) == [b"x"]
    assert context.hand_over() == []


def test_room_is_noted_to_the_socket_that_had_to_stop(context):
    push, pull = joined(context, hwm=1)
    push.send(b"1")
    push.send(b"2")
    assert not push.pattern.can_send_now()
    context.hand_over()
    assert received(pull) == [b"1", b"2"]
    assert context.hand_over() == [push]
    assert push.pattern.can_send_now()


def test_a_socket_that_something_happened_to_is_named_once(context):
    push, pull = joined(context)
    context.changed += (push, pull, push)
    push.send(b"x")
    assert context.hand_over() == [push, pull]
    assert context.changed == []


def test_notes_of_a_connection_that_has_ended_are_of_no_interest(context):
    push, _ = joined(context, hwm=1)
    (peer,) = push.links.peers
    context.readable.append(peer)
    context.writable.append(peer)
    push.inproc.drop(peer)
    context.changed.clear()
    assert context.hand_over() == []
    assert context.readable == context.writable == []


def test_what_one_note_leads_to_is_handed_over_too(context):
    """A PUB throws away what is sent to it, which makes room, of which the XSUB is told."""
    xsub, pub = make_core("XSUB", context, sndhwm=1), make_core("PUB", context, rcvhwm=1)
    pub.inproc.bind(inproc("name"))
    xsub.inproc.connect(inproc("name"))
    context.hand_over()
    (peer,) = xsub.links.peers
    xsub.send(b"x")
    xsub.send(b"x")
    assert peer.outbound.full
    assert context.hand_over() == [pub, xsub]
    assert not peer.outbound.full


# -- the end


def test_once_the_context_is_terminated_every_operation_says_so(context):
    core = make_core("PAIR", context)
    context.terminated = True
    calls = (
        core.receive,
        core.receive_part,
        core.events,
        core.connected,
        lambda: core.send(b""),
        lambda: core.send_part(b""),
    )
    for call in calls:
        with pytest.raises(ZMQError) as ended:
            call()
        assert ended.value.errno == Errno.ETERM
