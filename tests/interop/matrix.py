"""Which socket types talk to which, and what a message looks like at each end (RFC 28 to 31)."""

from dataclasses import dataclass

# Two-way conversations: the first of the two speaks first where one of them must.
TWO_WAY = (
    ("PAIR", "PAIR"),
    ("REQ", "REP"),
    ("REQ", "ROUTER"),
    ("DEALER", "REP"),
    ("DEALER", "DEALER"),
    ("DEALER", "ROUTER"),
    ("ROUTER", "ROUTER"),
)
# One-way: the first of the two sends.
ONE_WAY = (
    ("PUSH", "PULL"),
    ("PUB", "SUB"),
    ("PUB", "XSUB"),
    ("XPUB", "SUB"),
    ("XPUB", "XSUB"),
)

SIZES = (0, 1, 255, 256, 8192, 70_000, 1 << 20)


@dataclass(frozen=True)
class Cell:
    """One cell of the matrix: two types, and which of the two libraries binds."""

    ours: str
    theirs: str
    we_bind: bool

    @property
    def pair(self) -> str:
        return f"{self.ours} - {self.theirs}"

    @property
    def key(self) -> str:
        return f"{self.pair}|{'ours' if self.we_bind else 'theirs'}"

    @property
    def we_speak_first(self) -> bool:
        return (self.ours, self.theirs) in (*TWO_WAY, *ONE_WAY)


def _cells() -> list[Cell]:
    pairs = dict.fromkeys(pair for a, b in (*TWO_WAY, *ONE_WAY) for pair in ((a, b), (b, a)))
    return [Cell(ours, theirs, we_bind) for ours, theirs in pairs for we_bind in (True, False)]


CELLS = _cells()


def as_sent(kind: str, to_kind: str, to_name: bytes, parts: list[bytes]) -> list[bytes]:
    """Return the frames that a socket of one type passes to ``send`` for its peer."""
    return [*_envelope(kind, to_kind, to_name), *parts]


def as_received(kind: str, from_kind: str, from_name: bytes, parts: list[bytes]) -> list[bytes]:
    """Return the frames that a socket of one type gets from ``recv`` for what its peer sent."""
    return [*_envelope(kind, from_kind, from_name), *parts]


def _envelope(kind: str, other: str, name: bytes) -> list[bytes]:
    """What an application sees in front of a body: a ROUTER the name, and delimiters by hand."""
    front = [name] if kind == "ROUTER" else []
    return [*front, b""] if kind in ("ROUTER", "DEALER") and other in ("REQ", "REP") else front


def body(size: int, seed: int) -> bytes:
    """Return ``size`` octets that differ for each seed."""
    return (bytes((n * 7 + seed) % 251 for n in range(1009)) * (size // 1009 + 1))[:size]


def messages() -> list[list[bytes]]:
    """Return one message of one frame and one of three for every size."""
    return [
        parts
        for seed, size in enumerate(SIZES)
        for parts in ([body(size, seed)], [b"first", body(size, seed + 100), b""])
    ]
