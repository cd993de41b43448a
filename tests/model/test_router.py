"""Who has which routing id, while peers with few names and bad manners come, go and reconnect."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    rule,
)

from tests.patterns.world import connect, lose, make, network_peer, received, sent

# One looks like an id that the ROUTER might invent: a hostile peer may claim it.
names = st.sampled_from([b"", b"A", b"B", b"\x00\x00\x00\x00\x01"])


class RouterMachine(RuleBasedStateMachine):
    peers = Bundle("peers")

    @initialize(handover=st.booleans())
    def make(self, handover):
        self.handover = handover
        self.router = make("ROUTER", seed=0, router_handover=handover)
        self.owner = {}  # id -> peer
        self.waiting = []  # (id, peer), oldest first
        self.unread = {}  # peer -> what a waiting one has said

    @rule(target=peers, name=names)
    def join(self, name):
        peer = network_peer(self.router, routing_id=name)
        assert peer.routing_id != b""
        if name in self.owner and not self.handover:
            self.waiting.append((name, peer))
            self.unread[peer] = []
            return peer
        if name in self.owner:
            robbed = self.owner[name]
            assert self.router.refused.pop()[0] is robbed
            self.owner[robbed.routing_id] = robbed
        if name:
            assert peer.routing_id == name
        self.owner[peer.routing_id] = peer
        return peer

    @rule(peer=consumes(peers))
    def leave(self, peer):
        self.router.detach(peer)
        self.waiting = [entry for entry in self.waiting if entry[1] is not peer]
        if self.owner.get(peer.routing_id) is not peer:
            return
        del self.owner[peer.routing_id]
        for entry in self.waiting:
            if entry[0] == peer.routing_id:
                self.waiting.remove(entry)
                self.owner[entry[0]] = entry[1]
                expected = [[entry[0], message] for message in self.unread.pop(entry[1])]
                assert received(self.router) == expected
                break

    @rule(peer=peers, name=names)
    def reconnect(self, peer, name):
        before = peer.routing_id
        lose(self.router, peer)
        peer.routing_id = name
        connect(self.router, peer)
        assert peer.routing_id == before

    @rule(peer=peers)
    def say(self, peer):
        self.router.deliver(peer, [b"hello"])
        if peer in self.unread:
            self.unread[peer].append(b"hello")
            assert received(self.router) == []
        else:
            assert received(self.router) == [[peer.routing_id, b"hello"]]

    @rule(name=names)
    def address(self, name):
        self.router.send([name, b"x"])
        for owned, peer in self.owner.items():
            assert sent(peer) == ([b"x"] if owned == name else [])

    @invariant()
    def every_id_has_one_owner_who_knows_it(self):
        for name, peer in self.owner.items():
            assert self.router.has_routing_id(name)
            assert peer.routing_id == name

    @invariant()
    def those_who_wait_wait_for_an_id_that_is_taken(self):
        assert all(name in self.owner for name, _ in self.waiting)


TestRouter = RouterMachine.TestCase
TestRouter.settings = settings(max_examples=100, stateful_step_count=50, deadline=None)
