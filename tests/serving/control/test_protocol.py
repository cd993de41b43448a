"""Operations and their handlers: all of them, or the server does not start."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerohop.serving.codec import pack, unpack
from zerohop.serving.control.frames import Credit, encode_call, parse_reply
from zerohop.serving.control.protocol import (
    Call,
    Complaints,
    Handlers,
    Operation,
    Protocol,
    Refusal,
)
from zerohop.serving.errors import MissingHandlers, RequestRefused, Unencodable

CACHE = Protocol(
    "cache",
    (
        Operation("store", (str, bytes), number=6),
        Operation("clear", (bool,), optional=1),
        Operation("count"),
    ),
)


def handlers(**others):
    return {"store": lambda key, data: None, "clear": lambda force=False: force} | {
        "count": lambda: 3,
        **others,
    }


@pytest.fixture
def cache():
    return Handlers(CACHE, handlers())


class TestDeclaration:
    def test_an_operation_without_a_handler_is_named(self):
        with pytest.raises(MissingHandlers, match="protocol cache .*: clear, count;") as raised:
            Handlers(CACHE, {"store": lambda key, data: None})
        assert raised.value.operations == ("clear", "count")

    def test_a_ping_is_always_there(self, cache):
        call = cache.find(encode_call(1, "ping"))
        assert call.handler(*call.arguments) is True

    def test_a_ping_may_be_the_users(self):
        cache = Handlers(CACHE, handlers(ping=lambda instance=None: 7))
        call = cache.find(encode_call(1, "ping", None))
        assert call.handler(*call.arguments) == 7

    def test_a_handler_that_nothing_names_is_a_mistake(self):
        with pytest.raises(ValueError, match="protocol cache does not name: stroe"):
            Handlers(CACHE, handlers(stroe=lambda: None))

    @pytest.mark.parametrize("handler", [lambda: None, lambda a: None, lambda a, b, c: None])
    def test_a_handler_that_cannot_take_the_arguments_is_a_mistake(self, handler):
        with pytest.raises(TypeError, match="the handler of 'store' cannot take its 2 arguments"):
            Handlers(CACHE, handlers(store=handler))

    def test_a_handler_that_tells_nothing_of_itself_is_taken_at_its_word(self):
        Handlers(CACHE, handlers(store=max))

    def test_a_protocol_whose_name_has_no_form_is_a_mistake(self):
        with pytest.raises(Unencodable):
            Protocol("caf\udce9")

    def test_the_types_of_arguments_are_a_tuple(self):
        with pytest.raises(TypeError, match=r"arguments of 'add' are a tuple .*\(str,\) is that"):
            Operation("add", int)

    def test_no_more_arguments_may_be_left_out_than_there_are(self):
        with pytest.raises(ValueError, match="'add' has 1 argument, of which 2 may not be left"):
            Operation("add", (int,), optional=2)

    @pytest.mark.parametrize("operations", [Operation("add"), "add"])
    def test_the_operations_are_a_tuple(self, operations):
        with pytest.raises(TypeError, match=r"'cache' are a tuple .*\(Operation\(\.\.\.\),\)"):
            Protocol("cache", operations)

    def test_what_is_no_operation_is_none_of_a_protocol(self):
        with pytest.raises(TypeError, match="'add' in protocol 'cache' is no Operation"):
            Protocol("cache", ("add",))

    @pytest.mark.parametrize("second", [Operation("store"), Operation("put", number=6)])
    def test_no_two_operations_have_one_name_or_number(self, second):
        with pytest.raises(ValueError, match="protocol cache has two operations"):
            Protocol("cache", (*CACHE.operations, second))


class TestRequest:
    def test_is_found_by_name_and_by_number(self, cache):
        by_name = cache.find(encode_call(1, "store", "k", b"v"))
        by_number = cache.find(encode_call(1, 6, "k", b"v"))
        assert isinstance(by_name, Call)
        assert by_name.operation is by_number.operation
        assert by_name.arguments == by_number.arguments == ("k", b"v")

    def test_may_leave_out_what_is_optional(self, cache):
        assert cache.find(encode_call(1, "clear")).arguments == ()
        assert cache.find(encode_call(1, "clear", True)).arguments == (True,)

    @pytest.mark.parametrize(
        ("frames", "kind", "reason"),
        [
            (encode_call(1, "evict"), "unknown_operation", "has no operation 'evict'"),
            (encode_call(1, 7), "unknown_operation", "has no operation 7"),
            (encode_call(1, "store", "k"), "wrong_arguments", "'store' has 2 arguments, not 1"),
            (encode_call(1, "count", 1), "wrong_arguments", "'count' has 0 arguments, not 1"),
            (encode_call(1, "clear", 1, 2), "wrong_arguments", "has 0 to 1 arguments, not 2"),
            (encode_call(1, "store", 5, b""), "wrong_arguments", "argument 1 of 'store': Exp"),
            ([pack(1), pack("clear"), b"\xc1"], "wrong_arguments", "argument 1 of 'clear'"),
            ([pack(1), b"\xc1"], "malformed", ""),
        ],
    )
    def test_that_is_wrong_is_refused_in_words(self, cache, frames, kind, reason):
        found = cache.find(frames)
        assert isinstance(found, Refusal)
        assert (found.kind, found.frames[0]) == (kind, pack(1))
        assert reason in found.reason
        assert parse_reply(found.frames).operation == f"refused: {found.reason}"

    @pytest.mark.parametrize("frames", [[], [b"x"], [b""]])
    def test_of_one_frame_is_refused_too(self, cache, frames):
        found = cache.find(frames)
        assert found.kind == "malformed"
        assert unpack(found.frames[0]) is None
        assert "a request has two frames at least" in unpack(found.frames[1])

    def test_may_have_arguments_as_they_come(self):
        anything = Handlers(Protocol("any", (Operation("do", None),)), {"do": lambda a: a})
        assert anything.find(encode_call(1, "do")).arguments == ()
        assert anything.find(encode_call(1, "do", 1, "b", None)).arguments == (1, "b", None)
        assert anything.find([pack(1), pack("do"), b"\xc1"]).kind == "wrong_arguments"

    @pytest.mark.parametrize(
        ("failure", "reason"),
        [
            (LookupError("no"), "argument 1 of 'do': LookupError: no"),
            (SystemExit(), "argument 1 of 'do': SystemExit"),
            (ValueError("caf\udce9"), "argument 1 of 'do': caf\\udce9"),
        ],
    )
    def test_whose_argument_is_of_a_type_that_raises_is_refused(self, failure, reason):
        class Choosy(msgspec.Struct):
            n: int

            def __post_init__(self):
                raise failure

        choosy = Handlers(Protocol("any", (Operation("do", (Choosy,)),)), {"do": lambda a: a})
        found = choosy.find(encode_call(1, "do", {"n": 1}))
        assert (found.kind, found.reason) == ("wrong_arguments", reason)
        assert unpack(found.frames[1]) == f"refused: {reason}"

    def test_of_a_stream_is_passed_on(self, cache):
        assert cache.find([pack(1), b"", b"ack"]) == Credit(pack(1), True)

    def test_is_answered_with_the_result(self, cache):
        call = cache.find(encode_call(1, 6, "k", b"v"))
        assert cache.answer(call, [1]) == encode_call(1, 6, [1])

    def test_whose_result_has_no_form_is_refused(self, cache):
        refused = cache.answer(cache.find(encode_call(1, "count")), object())
        assert refused.kind == "failed"
        assert "cannot encode <object" in refused.reason

    def test_whose_handler_raises_is_refused_with_the_error(self, cache):
        refused = cache.fail(cache.find(encode_call(1, "count")), KeyError("k"))
        assert (refused.kind, refused.reason) == (
            "failed",
            "the handler of 'count' raised KeyError: 'k'",
        )

    def test_that_the_handler_declines_is_nobodys_fault(self, cache):
        error = RequestRefused("count", "not today")
        refused = cache.fail(cache.find(encode_call(1, "count")), error)
        assert (refused.kind, refused.reason) == (None, "not today")


class TestComplaints:
    def test_the_first_of_a_kind_is_told_at_once(self):
        complaints = Complaints(60.0)
        assert complaints.note("failed", "a", 0.0) == "a"
        assert complaints.note("malformed", "b", 0.0) == "b"

    def test_the_log_has_one_line_a_period_and_says_what_it_left_out(self):
        complaints = Complaints(60.0)
        lines = [complaints.note("failed", "a", float(second)) for second in range(121)]
        told = [(second, line) for second, line in enumerate(lines) if line is not None]
        assert told == [
            (0, "a"),
            (60, "a (59 more of this kind since the last line)"),
            (120, "a (59 more of this kind since the last line)"),
        ]
        assert complaints.counts == {"failed": 121}


@given(st.lists(st.binary(max_size=16), max_size=5))
def test_whatever_comes_has_a_reply(frames):
    found = Handlers(CACHE, handlers()).find(frames)
    assert isinstance(found, Call | Credit | Refusal)
    if isinstance(found, Refusal):
        assert len(found.frames) == 2
        assert unpack(found.frames[1]).startswith("refused: ")
