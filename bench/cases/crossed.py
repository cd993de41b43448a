"""PUSH to PULL between two libraries: what a program gets that changes one side first."""

from bench.case import Case
from bench.cases.pushpull import PARTS

CASES = (
    Case(
        name="crossed",
        title="PUSH to PULL, 64 B, from one library to another",
        unit="msg/s",
        parts=PARTS,
        parameters={"size": 64, "frames": 1},
        floor=False,
        crossed=True,
    ),
)
