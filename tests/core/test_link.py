"""What a link, a dialler and a listener say of themselves."""

import pytest

from tests.core.kit import ADDRESS, Remote, make_core
from zerohop.constants import Errno, SocketType
from zerohop.core.endpoint import parse
from zerohop.core.link import Dialer, Link, Listener, open_connection
from zerohop.core.options import SocketOptions
from zerohop.core.reconnect import Failure
from zerohop.errors import HandshakeError, ProtocolError
from zerohop.wire.events import Handshaken
from zerohop.wire.raw import RawConnection


def make_dialer(**options):
    dialer = Dialer(parse(ADDRESS, for_bind=False), ADDRESS, SocketOptions(**options).frozen())
    core = make_core("PUSH")
    dialer.peer = core.links.peers.new(conflate=False)
    return dialer


def make_link(source=None, socket_type=SocketType.PUSH):
    source = source or Listener(ADDRESS, SocketOptions().frozen())
    return Link(source, open_connection(socket_type, source.options, 0.0), ADDRESS, "")


def shake_hands(connection, socket_type="PULL"):
    """Bring the connection to where messages flow; return what it knows of its peer."""
    remote = Remote(socket_type)
    remote.hear(connection.data_to_send(), 0.0)
    return connection.receive_data(bytes(remote.said), 0.0)[0]


def test_a_peers_address_is_put_into_words_when_it_is_asked_for():
    connection = make_link().connection
    source = Listener(ADDRESS, SocketOptions().frozen())
    names = [("127.0.0.1", 9), ("fe80::1%eth0", 9, 0, 2), "ipc:///tmp/x"]
    links = [Link(source, connection, ADDRESS, name) for name in names]
    words = ["tcp://127.0.0.1:9", "tcp://[fe80::1%eth0]:9", "ipc:///tmp/x"]
    assert [link.remote for link in links] == words


# -- diallers


@pytest.mark.parametrize("handshakes, reconnects", [(0, 0), (1, 0), (2, 1), (7, 6)])
def test_the_first_handshake_is_no_reconnection(handshakes, reconnects):
    dialer = make_dialer()
    dialer.handshakes = handshakes
    assert dialer.reconnects == reconnects


def test_one_who_was_not_asked_to_leave_is_not_done():
    assert not make_dialer().done


def test_one_who_has_no_peer_has_nothing_left():
    dialer = make_dialer()
    dialer.peer, dialer.leaving = None, True
    assert dialer.done


def test_what_is_queued_is_left():
    dialer = make_dialer()
    dialer.leaving = True
    dialer.peer.outbound.push(b"x")
    assert not dialer.done
    dialer.peer.outbound.pop()
    assert dialer.done


def test_what_the_kernel_has_not_taken_yet_is_left():
    dialer = make_dialer()
    dialer.leaving = True
    dialer.link = make_link(dialer)
    assert dialer.done
    dialer.link.buffers.append(b"rest")
    assert not dialer.done


@pytest.mark.parametrize(
    "immediate, leaving, keeps",
    [(False, False, True), (False, True, True), (True, False, False), (True, True, True)],
)
def test_with_immediate_a_peer_goes_with_its_link_unless_it_has_a_queue_to_deliver(
    immediate, leaving, keeps
):
    dialer = make_dialer(immediate=immediate)
    dialer.leaving = leaving
    assert dialer.keeps(dialer.peer) == keeps


def test_a_peer_that_was_taken_away_is_not_kept():
    dialer = make_dialer()
    peer, dialer.peer = dialer.peer, None
    assert not dialer.keeps(peer)


# -- why a link was lost


def silence():
    error = ProtocolError("peer was silent", source="RFC 37")
    error.errno = Errno.ETIMEDOUT
    return error


def test_a_connection_that_breaks_in_traffic_is_lost():
    link = make_link()
    link.handshaken = True
    assert link.why_lost is Failure.LOST


def test_a_connection_that_ends_before_its_handshake_has_failed_in_it():
    assert make_link().why_lost is Failure.HANDSHAKE


def test_silence_is_no_mismatch():
    link = make_link()
    link.failure = silence()
    assert link.why_lost is Failure.HANDSHAKE
    link.handshaken = True
    assert link.why_lost is Failure.LOST


def test_a_program_that_speaks_no_zmtp_may_not_be_there_for_ever():
    link = make_link()
    link.failure = ProtocolError("peer does not speak ZMTP", source="RFC 37")
    assert link.why_lost is Failure.HANDSHAKE


def test_a_version_that_is_too_old_will_be_as_old_next_time():
    link = make_link()
    link.failure = HandshakeError("peer speaks ZMTP 2.0", source="RFC 37")
    assert link.why_lost is Failure.MISMATCH


def test_a_broken_frame_after_the_greeting_is_a_mismatch():
    link = make_link()
    shake_hands(link.connection)
    link.failure = ProtocolError("peer set a reserved bit", source="RFC 37")
    assert link.why_lost is Failure.MISMATCH


# -- connections


@pytest.mark.parametrize("name", ["REQ", "DEALER", "ROUTER"])
def test_types_that_have_an_identity_tell_it(name):
    properties = told_by(SocketType[name], routing_id=b"me")
    assert properties == {"socket-type": name.encode(), "identity": b"me"}


@pytest.mark.parametrize("name", ["PAIR", "PUB", "SUB", "REP", "PULL", "PUSH", "XPUB", "XSUB"])
def test_the_other_types_tell_no_identity(name):
    assert told_by(SocketType[name], routing_id=b"me") == {"socket-type": name.encode()}


def test_metadata_of_the_application_is_told_too():
    properties = told_by(SocketType.PULL, metadata={"X-Zone": b"eu"})
    assert properties == {"socket-type": b"PULL", "x-zone": b"eu"}


def told_by(socket_type, **options):
    """The metadata that a peer hears."""
    connection = open_connection(socket_type, SocketOptions(**options).frozen(), 0.0)
    remote = Remote("DEALER")
    remote.hear(connection.data_to_send(), 0.0)
    connection.receive_data(bytes(remote.said), 0.0)
    remote.hear(connection.data_to_send(), 0.0)
    assert isinstance(remote.handshaken, Handshaken)
    return remote.handshaken.properties


def test_a_stream_socket_has_no_protocol():
    assert isinstance(
        open_connection(SocketType.STREAM, SocketOptions().frozen(), 0.0), RawConnection
    )


def test_the_handshake_has_its_time_limit():
    connection = open_connection(SocketType.PULL, SocketOptions(handshake_ivl=3.0).frozen(), 100.0)
    assert connection.next_deadline() == 103.0


def test_the_size_of_messages_has_its_limit():
    connection = open_connection(SocketType.PULL, SocketOptions(maxmsgsize=10).frozen(), 0.0)
    shake_hands(connection, "PUSH")
    with pytest.raises(ProtocolError, match="10"):
        connection.receive_data(b"\0\x0b", 0.0)


def test_heartbeats_are_as_the_options_say():
    options = SocketOptions(heartbeat_ivl=2.0)
    connection = open_connection(SocketType.PULL, options.frozen(), 0.0)
    shake_hands(connection, "PUSH")
    assert connection.next_deadline() == 2.0
