"""One connection, from its greeting to its end, without I/O."""

import weakref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.kit import calls_during, cuts, messages, octet_by_octet, octets, pieces
from tests.wire.toy import ToyMechanism
from zerohop.constants import Errno, Event
from zerohop.errors import HandshakeError, ProtocolError
from zerohop.mechanisms.null import NullMechanism
from zerohop.wire.commands import encode_command, encode_error, encode_ping, encode_ready
from zerohop.wire.connection import HANDSHAKE_SIZE, MAX_PONGS, Connection
from zerohop.wire.events import ErrorReceived, Handshaken, SubscriptionReceived
from zerohop.wire.frames import Command, encode
from zerohop.wire.greeting import encode_greeting
from zerohop.wire.heartbeat import HeartbeatOptions

HEARTBEAT = pytest.mark.rfc(37, "Connection Heartbeating")
NULL = pytest.mark.rfc(37, "The NULL Security Mechanism")

GREETING = encode_greeting("NULL")
GREETING_3_0 = GREETING[:11] + b"\0" + GREETING[12:]
PULL = {"Socket-Type": b"PULL"}


def wire(*items) -> bytes:
    return b"".join(encode(items))


def command(name: bytes, data: bytes = b"") -> bytes:
    return wire(Command(encode_command(name, data)))


READY = wire(Command(encode_ready({"Socket-Type": b"PUSH", "Identity": b"me"})))
OPENING = GREETING + wire(Command(encode_ready(PULL)))
HANDSHAKEN = Handshaken({"socket-type": b"PUSH", "identity": b"me"})
PING = wire(Command(encode_ping(0, b"ctx")))


def new(**options) -> Connection:
    """A PULL of ours that was opened at 100."""
    return Connection(mechanism=NullMechanism(PULL), properties=PULL, now=100, **options)


def ready(greeting: bytes = GREETING, **options) -> Connection:
    """The same in traffic, all that it had to say taken."""
    connection = new(**options)
    connection.receive_data(greeting + READY, 100)
    connection.data_to_send()
    return connection


def refused(connection: Connection, data: bytes, problem: str) -> ProtocolError:
    with pytest.raises(ProtocolError, match=problem) as caught:
        connection.receive_data(data, 101)
    assert connection.phase == "closed"
    assert connection.receive_data(GREETING + READY, 102) == [], "it takes nothing more"
    assert connection.next_deadline() is None
    return caught.value


class TestGreetingAndHandshake:
    @NULL
    def test_greeting_and_ready_go_out_together_and_wait_for_nothing(self):
        connection = new()
        assert connection.phase == "greeting"
        assert connection.has_output
        assert connection.data_to_send() == OPENING
        assert connection.data_to_send() == b""
        assert not connection.has_output
        assert connection.start() == []

    def test_the_peers_greeting_may_come_in_parts(self):
        connection = new()
        connection.data_to_send()
        assert connection.receive_data(GREETING[:63], 100) == []
        assert connection.phase == "greeting"
        assert connection.peer_minor is None
        assert connection.receive_data(GREETING[63:], 100) == []
        assert connection.phase == "handshake"
        assert connection.peer_minor == 1
        assert not connection.has_output, "all was said"

    @NULL
    def test_the_peers_ready_is_an_event_and_traffic_begins(self):
        connection = new()
        assert connection.receive_data(GREETING + READY, 100) == [HANDSHAKEN]
        assert connection.has_events
        assert connection.phase == "traffic"

    def test_what_comes_right_behind_ready_belongs_to_the_traffic(self):
        large = bytes(2 * HANDSHAKE_SIZE)
        connection = new()
        items = connection.receive_data(GREETING + READY + wire(b"a", large, [b"b", b"c"]), 100)
        assert items == [HANDSHAKEN, b"a", large, [b"b", b"c"]]

    def test_two_of_ours_shake_hands(self):
        one, other = new(), new()
        assert other.receive_data(one.data_to_send(), 100) == [Handshaken({"socket-type": b"PULL"})]
        assert one.receive_data(other.data_to_send(), 100) == [Handshaken({"socket-type": b"PULL"})]
        assert not one.has_output
        assert not other.has_output

    @pytest.mark.rfc(23, "Version Negotiation")
    def test_a_3_0_peer_is_known_by_its_minor(self):
        connection = new()
        [event] = connection.receive_data(GREETING_3_0 + READY, 100)
        assert event.minor == connection.peer_minor == 0

    def test_an_old_peer_is_refused_with_what_is_needed(self):
        error = refused(new(), octets("ff 0000000000000001 7f 01"), r"ZMTP 2\.0")
        assert isinstance(error, HandshakeError)

    @pytest.mark.rfc(37, "Authentication and Confidentiality")
    def test_another_mechanism_is_refused_and_both_are_named(self):
        connection = new()
        error = refused(connection, encode_greeting("CURVE"), "CURVE, this PULL socket has NULL")
        assert isinstance(error, HandshakeError)
        assert error.code == Event.PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH
        assert connection.peer_minor == 1
        assert connection.data_to_send() == OPENING

    def test_a_message_before_the_handshake_is_complete_is_refused(self):
        error = refused(new(), GREETING + wire(b"x"), "before the handshake was complete")
        assert error.code == Event.PROTOCOL_ERROR_ZMTP_INVALID_SEQUENCE

    @pytest.mark.parametrize("body", [b"", b"\0", b"\x09READY"])
    def test_a_handshake_command_has_a_name(self, body):
        refused(new(), GREETING + wire(Command(body)), "name")

    def test_another_command_than_ready_is_refused(self):
        refused(new(), GREETING + PING, "b'PING' where READY was due")

    @pytest.mark.parametrize("size", [HANDSHAKE_SIZE + 1, 2**62])
    def test_a_handshake_command_is_limited_however_large_messages_may_be(self, size):
        refused(new(), GREETING + b"\6" + size.to_bytes(8), "over the limit of 65536")

    def test_a_ready_that_fills_the_limit_is_accepted(self):
        properties = {"X-large": bytes(HANDSHAKE_SIZE - 100)}
        connection = new(max_message_size=10)
        items = connection.receive_data(GREETING + wire(Command(encode_ready(properties))), 100)
        assert items == [Handshaken({"x-large": properties["X-large"]})]

    @pytest.mark.rfc(37, "The Identity Property")
    def test_an_identity_has_at_most_255_octets(self):
        fits = wire(Command(encode_ready({"Identity": bytes(255)})))
        assert new().receive_data(GREETING + fits, 100)
        over = wire(Command(encode_ready({"Identity": bytes(256)})))
        error = refused(new(), GREETING + over, "Identity has 256 octets")
        assert error.code == Event.PROTOCOL_ERROR_ZMTP_INVALID_METADATA

    def test_the_socket_type_may_be_missing(self):
        assert new().receive_data(GREETING + command(b"READY"), 100) == [Handshaken({})]

    @pytest.mark.rfc(37, "Error Handling")
    @pytest.mark.parametrize("behind", [b"", READY, b"\xff\xff"], ids=["", "READY", "junk"])
    def test_error_instead_of_ready_is_the_end(self, behind):
        connection = new()
        items = connection.receive_data(GREETING + command(b"ERROR", b"\x03400") + behind, 100)
        assert items == [ErrorReceived("400")]
        assert connection.has_events
        assert connection.phase == "closed"

    def test_octet_by_octet_it_is_the_same(self):
        connection = new()
        stream = GREETING + READY + wire(b"a", [b"b", b"c"]) + PING
        items = [item for octet in octet_by_octet(stream) for item in
                 connection.receive_data(octet, 100)]  # fmt: skip
        assert items == [HANDSHAKEN, b"a", [b"b", b"c"]]


class TestHandshakeTimeout:
    def test_the_deadline_is_that_of_the_handshake(self):
        connection = new(handshake_timeout=30)
        assert connection.next_deadline() == 130
        connection.handle_deadline(129.9)
        connection.receive_data(GREETING, 129)
        assert connection.next_deadline() == 130, "octets do not put it off"

    @pytest.mark.parametrize(("sent", "phase"), [(b"", "greeting"), (GREETING, "handshake")])
    def test_a_peer_that_is_too_slow_is_given_up(self, sent, phase):
        connection = new(handshake_timeout=30)
        connection.receive_data(sent, 101)
        with pytest.raises(HandshakeError, match=f"complete its {phase} in time") as caught:
            connection.handle_deadline(130)
        assert caught.value.errno == Errno.ETIMEDOUT
        assert "HANDSHAKE_IVL" in caught.value.__notes__[0]
        assert connection.phase == "closed"
        assert connection.next_deadline() is None

    def test_it_is_over_with_the_handshake(self):
        connection = ready(handshake_timeout=30)
        assert connection.next_deadline() is None
        connection.handle_deadline(1000)

    def test_without_one_nothing_is_due(self):
        assert new().next_deadline() is None
        new().handle_deadline(1e9)


class TestTraffic:
    def test_messages_are_what_the_decoder_makes_of_them(self):
        connection = ready()
        assert connection.receive_data(wire(b"a", [b"b", b"c"]), 101) == [b"a", [b"b", b"c"]]
        assert not connection.has_events

    def test_messages_are_sent_as_the_encoder_has_them(self):
        connection = ready()
        large = bytes(100_000)
        buffers = connection.encode([b"a", large])
        assert b"".join(buffers) == wire(b"a", large)
        assert buffers[1] is large
        assert connection.encoded_size(b"a") == 3

    def test_the_reader_can_put_the_rest_of_a_large_frame_where_it_belongs(self):
        connection, body = new(), bytes(range(256)) * 500
        connection.receive_data(GREETING + READY[:20], 100)
        assert connection.buffer() is None, "not before the traffic"
        connection.receive_data(READY[20:] + wire(body)[:509], 100)
        connection.buffer()[:] = body[500:65_536]
        connection.filled(65_536 - 500, 103)
        assert connection.receive_data(b"", 103) == []
        view = connection.buffer()
        view[:] = body[65_536:]
        connection.filled(len(view), 104)
        assert connection.receive_data(wire(b"next"), 104) == [body, b"next"]
        assert connection.buffer() is None

    def test_a_frame_over_the_limit_gets_no_buffer(self):
        connection = ready(max_message_size=100_000)
        with pytest.raises(ProtocolError, match="100001 octets, over the limit"):
            connection.receive_data(b"\2" + (100_001).to_bytes(8), 101)
        assert connection.buffer() is None

    @pytest.mark.rfc(37, "The Publish-Subscribe Pattern")
    @pytest.mark.parametrize("greeting", [GREETING, GREETING_3_0], ids=["3.1", "3.0"])
    def test_subscriptions_as_commands_are_events_whatever_the_version(self, greeting):
        connection = ready(greeting)
        stream = command(b"SUBSCRIBE", b"kv") + wire(b"x") + command(b"CANCEL")
        assert connection.receive_data(stream, 101) == [
            SubscriptionReceived(b"kv", subscribe=True),
            b"x",
            SubscriptionReceived(b"", subscribe=False),
        ]
        assert connection.has_events
        connection.receive_data(wire(b"x"), 102)
        assert not connection.has_events

    @pytest.mark.parametrize("greeting", [GREETING, GREETING_3_0], ids=["3.1", "3.0"])
    def test_subscriptions_as_messages_are_messages(self, greeting):
        """The pattern knows whether it publishes; a message that begins with 01 may be data."""
        assert ready(greeting).receive_data(wire(b"\1kv", b"\0kv"), 101) == [b"\1kv", b"\0kv"]

    @pytest.mark.parametrize(
        "ignored",
        [
            pytest.param(wire(Command(b"")), id="an empty command"),
            pytest.param(command(b"NONSENSE", b"x"), id="an unknown command"),
            pytest.param(command(b"PONG", b"x"), id="PONG"),
            pytest.param(command(b"JOIN", b"x"), id="JOIN"),
            pytest.param(READY, id="READY once more"),
        ],
    )
    def test_what_is_unknown_or_too_late_is_ignored(self, ignored):
        """As libzmq does (measured)."""
        connection = ready()
        assert connection.receive_data(wire(b"a") + ignored + wire(b"b"), 101) == [b"a", b"b"]
        assert not connection.has_events
        assert not connection.has_output
        assert connection.phase == "traffic"

    @pytest.mark.parametrize(
        ("stream", "problem"),
        [
            pytest.param(octets("80 00"), "reserved bits", id="a frame"),
            pytest.param(octets("04 02 ff 41"), "name has 255 octets", id="a command's name"),
            pytest.param(octets("04 02 00 41"), "name has 0 octets", id="a command without a name"),
            pytest.param(command(b"PING", b"\0"), "TTL takes 2", id="PING"),
            pytest.param(command(b"ERROR", b"\5x"), "cut short", id="ERROR"),
        ],
    )
    def test_broken_traffic_is_the_end_but_loses_nothing_that_came_before(self, stream, problem):
        """libzmq ignores commands that are malformed (measured); the RFC's grammar has no such."""
        connection = ready()
        before = wire(b"a", b"b") + command(b"SUBSCRIBE", b"t")
        with pytest.raises(ProtocolError, match=problem):
            connection.receive_data(before + stream + wire(b"never"), 101)
        assert connection.completed == [b"a", b"b", SubscriptionReceived(b"t", subscribe=True)]
        assert connection.has_events
        assert connection.phase == "closed"

    def test_of_two_offences_the_first_counts(self):
        connection = ready()
        with pytest.raises(ProtocolError, match="TTL takes 2"):
            connection.receive_data(wire(b"a") + command(b"PING") + octets("80 00"), 101)
        assert connection.completed == [b"a"]

    def test_what_came_with_the_handshake_is_not_lost_either(self):
        connection = new()
        with pytest.raises(ProtocolError):
            connection.receive_data(GREETING + READY + wire(b"a") + octets("80 00"), 101)
        assert connection.completed == [HANDSHAKEN, b"a"]

    def test_the_limit_on_messages_holds(self):
        refused(ready(max_message_size=10), wire(bytes(11)), "11 octets, over the limit of 10")

    @pytest.mark.parametrize("behind", [b"", wire(b"x"), octets("80 00")])
    def test_error_is_the_end_and_what_is_behind_it_does_not_matter(self, behind):
        connection = ready()
        stream = wire(b"a") + wire(Command(encode_error("no"))) + behind
        assert connection.receive_data(stream, 101) == [b"a", ErrorReceived("no")]
        assert connection.phase == "closed"
        assert connection.receive_data(wire(b"x"), 102) == []


class TestSubscribing:
    def test_a_3_1_peer_gets_commands(self):
        connection = ready()
        connection.send_subscription(b"kv", subscribe=True)
        connection.send_subscription(b"", subscribe=False)
        assert connection.has_output
        assert connection.data_to_send() == command(b"SUBSCRIBE", b"kv") + command(b"CANCEL")
        assert not connection.has_output

    @pytest.mark.rfc(23, "The Publish-Subscribe Pattern")
    def test_a_3_0_peer_gets_messages(self):
        connection = ready(GREETING_3_0)
        connection.send_subscription(b"kv", subscribe=True)
        connection.send_subscription(b"", subscribe=False)
        assert connection.data_to_send() == wire(b"\1kv", b"\0")

    @pytest.mark.parametrize("size", [254, 255, 256])
    def test_a_long_topic_for_a_3_0_peer(self, size):
        """libzmq breaks the stream at 255: a short frame's flags before a long size."""
        connection = ready(GREETING_3_0)
        connection.send_subscription(b"t" * size, subscribe=True)
        assert connection.data_to_send() == wire(b"\1" + b"t" * size)

    def test_none_is_said_before_the_handshake_is_complete(self):
        connection = new()
        connection.send_subscription(b"kv", subscribe=True)
        assert connection.data_to_send() == OPENING
        connection.receive_data(GREETING, 100)
        assert not connection.has_output
        connection.receive_data(READY, 100)
        assert connection.has_output
        assert connection.data_to_send() == command(b"SUBSCRIBE", b"kv")

    def test_all_of_many_are_said(self):
        connection = ready()
        topics = [b"t%d" % i for i in range(5000)] + [bytes(100_000)]
        for topic in topics:
            connection.send_subscription(topic, subscribe=True)
        publisher = ready()
        events = publisher.receive_data(connection.data_to_send(), 101)
        assert events == [SubscriptionReceived(topic, subscribe=True) for topic in topics]


@HEARTBEAT
class TestHeartbeats:
    OPTIONS = HeartbeatOptions(interval=5, ttl_ds=70, timeout=8)

    def test_a_ping_goes_out_every_interval_with_our_ttl(self):
        connection = ready(heartbeat=self.OPTIONS)
        assert connection.next_deadline() == 105
        connection.handle_deadline(104)
        assert not connection.has_output
        connection.handle_deadline(105)
        assert connection.has_output
        assert connection.data_to_send() == octets("04 07 04 50494e47 0046")
        assert connection.next_deadline() == 110

    def test_there_is_none_before_the_handshake(self):
        connection = new(heartbeat=self.OPTIONS)
        assert connection.next_deadline() is None
        connection.receive_data(GREETING, 120)
        connection.receive_data(READY, 121)
        assert connection.next_deadline() == 126

    def test_pings_that_are_not_taken_do_not_pile_up(self):
        connection = ready(heartbeat=HeartbeatOptions(interval=5))
        for now in (105, 110, 115):
            connection.handle_deadline(now)
        assert connection.data_to_send() == octets("04 07 04 50494e47 0000")

    def test_a_silent_peer_is_given_up(self):
        connection = ready(heartbeat=self.OPTIONS)
        connection.handle_deadline(105)
        with pytest.raises(ProtocolError, match="silent") as caught:
            connection.handle_deadline(113)
        assert caught.value.errno == Errno.ETIMEDOUT
        assert connection.phase == "closed"

    def test_every_octet_is_life(self):
        """libzmq counts whole frames: a long message ends its own connection there."""
        connection = ready(heartbeat=self.OPTIONS)
        connection.handle_deadline(105)
        connection.receive_data(octets("02 00000000ffffffff"), 112)
        connection.handle_deadline(113)
        assert connection.phase == "traffic"

    def test_so_is_every_octet_of_a_large_body(self):
        connection = ready(heartbeat=self.OPTIONS)
        connection.receive_data(wire(bytes(100_000))[:1000], 100)
        connection.handle_deadline(105)
        connection.buffer()[:10] = bytes(10)
        connection.filled(10, 112)
        connection.handle_deadline(113)
        assert connection.phase == "traffic"

    def test_while_we_do_not_read_silence_is_no_sign_of_death(self):
        connection = ready(heartbeat=self.OPTIONS)
        connection.handle_deadline(105)
        connection.not_reading(112)
        connection.handle_deadline(113)
        assert connection.phase == "traffic"
        with pytest.raises(ProtocolError, match="silent"):
            connection.handle_deadline(200)

    def test_while_a_ping_waits_behind_a_body_that_the_peer_takes_it_is_alive(self):
        connection = ready(heartbeat=self.OPTIONS)
        connection.handle_deadline(105)
        connection.written(112)
        connection.handle_deadline(113)
        assert connection.phase == "traffic"
        connection.handle_deadline(118)
        connection.data_to_send()
        connection.written(118)
        with pytest.raises(ProtocolError, match="silent"):
            connection.handle_deadline(200)

    def test_a_ping_is_answered_with_its_context(self):
        connection = ready()
        assert connection.receive_data(PING, 101) == []
        assert connection.has_output
        assert connection.data_to_send() == command(b"PONG", b"ctx")

    def test_a_ping_between_the_frames_of_a_message(self):
        stream = wire([b"a", b"b"])
        connection = ready()
        assert connection.receive_data(stream[:3] + PING + stream[3:], 101) == [[b"a", b"b"]]
        assert connection.data_to_send() == command(b"PONG", b"ctx")

    def test_a_flood_of_pings_costs_a_bounded_answer(self):
        connection = ready()
        for i in range(1000):
            connection.receive_data(wire(Command(encode_ping(0, b"%d" % i))), 101)
        last = [command(b"PONG", b"%d" % i) for i in range(1000 - MAX_PONGS, 1000)]
        assert connection.data_to_send() == b"".join(last)

    def test_the_peers_ttl_is_respected(self):
        connection = ready()
        connection.receive_data(wire(Command(encode_ping(20))), 101)
        assert connection.has_events, "the deadline has become earlier: the caller must look"
        assert connection.next_deadline() == 103
        connection.receive_data(wire(b"x"), 102)
        assert connection.next_deadline() == 104
        with pytest.raises(ProtocolError, match="silent"):
            connection.handle_deadline(104)

    def test_a_ping_without_ttl_is_no_reason_to_look(self):
        connection = ready()
        connection.receive_data(PING, 101)
        assert not connection.has_events


class TestRefusing:
    @pytest.mark.rfc(37, "The Socket-Type Property")
    def test_the_peer_is_told_and_nothing_more_is_taken(self):
        connection = ready()
        connection.send_subscription(b"never", subscribe=True)
        connection.refuse("DEALER does not talk to PUSH")
        error = wire(Command(encode_error("DEALER does not talk to PUSH")))
        assert connection.data_to_send() == error
        assert connection.phase == "closed"
        assert connection.receive_data(wire(b"x"), 101) == []
        assert not connection.has_output

    def test_before_the_handshake_it_stands_behind_what_was_said_first(self):
        connection = new()
        connection.refuse("no")
        assert connection.data_to_send() == OPENING + wire(Command(encode_error("no")))

    def test_once_is_enough(self):
        connection = ready()
        connection.refuse("no")
        connection.refuse("no")
        assert connection.data_to_send() == wire(Command(encode_error("no")))


class TestLosingTheNetwork:
    @pytest.mark.parametrize("came", [0, 50, 64, 80, 100_000])
    def test_what_came_in_part_is_let_go_and_nothing_more_is_taken(self, came):
        connection = new()
        stream = GREETING + READY + wire([b"x", bytes(200_000)])
        connection.receive_data(stream[:came], 101)
        connection.lost()
        assert connection.phase == "closed"
        assert connection.buffer() is None
        assert connection.receive_data(stream[came:], 102) == []
        assert connection.data_to_send() == b""
        assert not connection.has_output
        assert connection.next_deadline() is None

    def test_nobody_holds_the_octets_of_half_a_body(self):
        connection = ready()
        connection.receive_data(wire(bytes(300_000))[:200_000], 101)
        view = connection.buffer()
        assert view is not None
        owner = weakref.ref(view)
        del view
        assert owner() is not None
        connection.lost()
        assert owner() is None


class TestWrappingMechanism:
    """The seam for CURVE: roles, several commands, traffic that is not plain."""

    @staticmethod
    def new(*, as_server: bool, **options) -> Connection:
        properties = {"Socket-Type": b"SERVER" if as_server else b"CLIENT"}
        mechanism = ToyMechanism(properties, as_server=as_server)
        return Connection(mechanism=mechanism, properties=properties, now=100, **options)

    def pair(self, **options) -> tuple[Connection, Connection]:
        client, server = self.new(as_server=False), self.new(as_server=True, **options)
        client.receive_data(server.data_to_send(), 100)
        events = []
        for _ in range(3):
            events += server.receive_data(client.data_to_send(), 100)
            events += client.receive_data(server.data_to_send(), 100)
        assert events == [
            Handshaken({"socket-type": b"CLIENT"}, mechanism="TOY"),
            Handshaken({"socket-type": b"SERVER"}, mechanism="TOY"),
        ]
        return client, server

    def test_our_greeting_says_the_role(self):
        assert self.new(as_server=True).data_to_send() == encode_greeting("TOY", as_server=True)

    def test_messages_and_commands_are_wrapped(self):
        client, server = self.pair()
        client.send_subscription(b"kv", subscribe=True)
        sent = client.data_to_send() + b"".join(client.encode([b"hello", [b"a", b""]]))
        assert b"SUBSCRIBE" not in sent
        assert b"hello" not in sent
        expected = [SubscriptionReceived(b"kv", subscribe=True), b"hello", [b"a", b""]]
        assert server.receive_data(sent, 101) == expected

    def test_the_size_is_that_of_the_wrapped_frames(self):
        client, _ = self.pair()
        for message in (b"x", [b"a", b"b" * 250], bytes(300)):
            assert client.encoded_size(message) == len(client.encode([message])[0])

    def test_pings_are_answered_within(self):
        client, server = self.pair()
        server.receive_data(client.encode([Command(encode_ping(0, b"ctx"))])[0], 101)
        pong = server.data_to_send()
        assert b"PONG" not in pong
        assert client.receive_data(pong, 101) == []

    def test_an_error_is_sent_within(self):
        client, server = self.pair()
        server.refuse("no")
        assert client.receive_data(server.data_to_send(), 101) == [ErrorReceived("no")]

    def test_traffic_in_the_clear_is_refused_and_what_came_before_is_kept(self):
        client, server = self.pair()
        with pytest.raises(ProtocolError, match="not a frame of mine"):
            server.receive_data(client.encode([b"a"])[0] + wire(b"in the clear"), 101)
        assert server.completed == [b"a"]

    def test_the_limit_on_messages_holds_within(self):
        client, server = self.pair(max_message_size=1000)
        assert server.receive_data(client.encode([bytes(1000)])[0], 101) == [bytes(1000)]
        refused(server, client.encode([[bytes(600), bytes(600)]])[0], "over max_message_size=1000")

    def test_what_the_mechanism_wants_to_say_before_the_end_is_said(self):
        server = self.new(as_server=True)
        server.data_to_send()
        with pytest.raises(ProtocolError, match="b'READY' where b'HELLO' was due"):
            server.receive_data(encode_greeting("TOY") + READY, 101)
        assert server.phase == "closed"
        assert server.data_to_send() == wire(Command(encode_error("bad")))


# Promises to the network

streams = st.one_of(
    st.binary(max_size=300),
    st.tuples(messages, st.binary(max_size=40)).map(
        lambda drawn: GREETING + READY + wire(*drawn[0]) + drawn[1]
    ),
    st.tuples(st.integers(0, 200), st.integers(0, 255)).map(
        lambda change: (
            (GREETING + READY + PING + command(b"ERROR", b"\0"))[: change[0]]
            + bytes((change[1],))
            + (GREETING + READY + PING)[change[0] + 1 :]
        )
    ),
)


def outcome(chunks: list[bytes]) -> tuple[list, bool]:
    """All that came out, and whether it ended in an error."""
    connection = new(max_message_size=1000)
    items = []
    try:
        for chunk in chunks:
            items += connection.receive_data(chunk, 101)
    except ProtocolError:
        return items + connection.completed, True
    return items, False


@given(stream=streams, places=cuts)
def test_how_the_stream_is_cut_does_not_matter(stream, places):
    assert outcome(pieces(stream, places)) == outcome([stream])


@given(messages)
def test_what_one_of_ours_sends_another_receives(batch):
    assert ready().receive_data(b"".join(ready().encode(batch)), 101) == batch


def test_the_connection_adds_no_call_to_those_of_the_decoder():
    stream = wire(*[b"x" * (32 + i % 64) for i in range(1000)])
    connection = ready()
    bare = calls_during(ready()._decoder.receive_data, stream)
    assert calls_during(connection.receive_data, stream, 101) <= bare + 2
