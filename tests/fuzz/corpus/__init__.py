"""A few octets for each target to start from, as hex with comments, and what once broke it."""

from pathlib import Path

from tests.wire.kit import octets

HERE = Path(__file__).parent


def entries(target: str) -> dict[str, bytes]:
    """The corpus of a target by name."""
    return {path.stem: octets(path.read_text()) for path in sorted((HERE / target).glob("*.hex"))}


def keep(target: str, name: str, data: bytes, why: str) -> Path:
    """Put octets into the corpus of a target."""
    path = HERE / target / f"{name}.hex"
    path.write_text(f"# {why}\n{data.hex(' ', 16)}\n")
    return path
