import pytest

from zerohop import constants as zmq
from zerohop.api.options import OptionAttribute
from zerohop.errors import ZMQError


def test_an_option_is_an_attribute_in_lower_and_in_upper_case(context):
    s = context.socket(zmq.DEALER)
    s.linger = 1
    s.SNDHWM = 2
    assert (s.LINGER, s.sndhwm) == (1, 2)
    s.identity = b"me"
    assert s.routing_id == s.IDENTITY == b"me"


def test_an_option_can_be_assigned_to_in_any_case_and_not_be_read(context):
    s = context.socket(zmq.DEALER)
    s.RcvHwm = 3
    assert s.rcvhwm == 3
    with pytest.raises(AttributeError, match="no attribute 'RcvHwm'"):
        _ = s.RcvHwm


def test_a_name_that_is_no_option_costs_the_others_nothing(context):
    """A __getattr__ would: methods and slots of such a class are not found the short way."""
    kind = type(context.socket(zmq.DEALER))
    assert not hasattr(kind, "__getattr__")
    assert kind.__getattribute__ is object.__getattribute__


def test_every_option_is_known_to_the_class(context):
    kind = type(context.socket(zmq.DEALER))
    for name in zmq.SocketOption.__members__:
        assert hasattr(kind, name)
        assert hasattr(kind, name.lower())
    assert isinstance(kind.linger, OptionAttribute)


def test_methods_have_many_names(context):
    s = context.socket(zmq.DEALER)
    s.setsockopt(zmq.LINGER, 5)
    assert s.getsockopt(zmq.LINGER) == 5
    for write in (s.set_string, s.setsockopt_string, s.setsockopt_unicode):
        write(zmq.IDENTITY, "é")
        for read in (s.get_string, s.getsockopt_string, s.getsockopt_unicode):
            assert read(zmq.IDENTITY) == "é"
    s.set_string(zmq.IDENTITY, "é", encoding="latin-1")
    assert s.identity == b"\xe9"


def test_hwm_is_both_high_water_marks(context):
    s = context.socket(zmq.DEALER)
    s.hwm = 7
    assert (s.hwm, s.sndhwm, s.rcvhwm) == (7, 7, 7)
    s.set_hwm(9)
    s.rcvhwm = 1
    assert s.get_hwm() == 9


def test_subscribing_takes_text_octets_and_assignments(context):
    pub, sub = context.socket(zmq.XPUB), context.socket(zmq.SUB)
    pub.bind("inproc://topics")
    sub.connect("inproc://topics")
    sub.subscribe("é")
    sub.subscribe(b"b")
    sub.subscribe = "c"
    sub.SUBSCRIBE = b"d"
    sub.unsubscribe("b")
    sub.unsubscribe = b"c"
    sub.unsubscribe("never subscribed")
    assert [pub.recv() for _ in range(6)] == [
        b"\x01\xc3\xa9", b"\x01b", b"\x01c", b"\x01d", b"\x00b", b"\x00c",
    ]  # fmt: skip
    assert callable(sub.subscribe)  # still the method


def test_events_and_rcvmore_are_states(pair):
    a, b = pair
    assert (a.events, b.EVENTS) == (zmq.POLLOUT, zmq.POLLOUT)
    a.send_multipart([b"1", b"2"])
    assert b.events == zmq.POLLIN | zmq.POLLOUT
    assert (b.rcvmore, b.recv(), b.rcvmore, b.recv(), b.rcvmore) == (0, b"1", 1, b"2", 0)


def test_dir_lists_every_option(context):
    names = dir(context.socket(zmq.PUB))
    assert {"LINGER", "SNDHWM", "bind", "stats"} <= set(names)


def test_a_closed_socket_has_no_options(context):
    s = context.socket(zmq.DEALER)
    s.close()
    for misuse in (
        lambda: s.linger,
        lambda: s.hwm,
        lambda: s.fd,
        lambda: s.events,
        lambda: s.set(zmq.LINGER, 1),
        lambda: setattr(s, "linger", 1),
        lambda: s.subscribe("x"),
    ):
        with pytest.raises(ZMQError) as raised:
            misuse()
        assert raised.value.errno == zmq.ENOTSOCK
    with pytest.raises(AttributeError, match="no attribute 'nosuch'"):
        _ = s.nosuch


def test_a_subclass_has_its_own_attributes(context):
    class Logged(context._socket_class):
        prefix = "a"
        _private = 1

        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            self.__dict__["count"] = 0

    s = context.socket(zmq.PUB, socket_class=Logged)
    s.prefix = "b"
    s.count += 1
    s._private = s._undeclared = 2
    assert (s.prefix, s.count, s._private, s._undeclared) == ("b", 1, 2, 2)
    with pytest.raises(AttributeError, match=r"^Logged has no such option: LINGR$"):
        s.lingr = 0


def test_what_a_socket_is_cannot_be_assigned(context):
    s = context.socket(zmq.PUB)
    for name in ("closed", "type", "underlying"):
        with pytest.raises(AttributeError):
            setattr(s, name, 1)
