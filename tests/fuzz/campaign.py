"""Fuzzes kinds of inputs in turn, and counts what becomes of them."""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import define, field, frozen

from tests.fuzz.base import Kind
from tests.fuzz.worker_process import WorkerProcess

SLICE = 5.0
"""Seconds after which it is the turn of the next kind."""


@frozen
class Finding:
    """An input that failed."""

    kind: str
    seed: int
    failure: str

    @property
    def signature(self) -> str:
        """Returns what inputs that fail in the same way have in common: the place, or the first words."""
        words, bracket, place = self.failure.rpartition(" [")
        return f"{self.kind}: {place if bracket and place != ']' else words[:60]}"

    def command(self) -> str:
        """Returns the command line that tries the input again."""
        return f"python -m tests.fuzz --only {self.kind} --seed {self.seed} --count 1"


@define
class Counts:
    """What became of all inputs of a kind.

    Seconds are those of processors; `faults` counts the inputs for which the door of the project was needed.
    """

    inputs: int = 0
    failures: int = 0
    seconds: float = 0.0
    slowest: float = 0.0
    faults: int = 0
    outcomes: Counter[str] = field(factory=Counter)
    findings: dict[str, Finding] = field(factory=dict)

    def add(self, kind: str, answer: Mapping[str, Any]) -> Finding | None:
        """Counts one input; returns a finding that is like none before."""
        self.inputs += 1
        self.seconds += answer["seconds"]
        self.slowest = max(self.slowest, answer["seconds"])
        self.faults += answer["fault"]
        self.outcomes[answer["outcome"]] += 1
        if not answer["failure"]:
            return None
        self.failures += 1
        finding = Finding(kind, answer["seed"], answer["failure"])
        is_new = finding.signature not in self.findings
        return self.findings.setdefault(finding.signature, finding) if is_new else None


def run(
    kinds: Sequence[Kind], seed: int, seconds: float, count: int, tell: Callable[[Finding], None]
) -> dict[str, Counts]:
    """Fuzzes until the time is over, or each kind had `count` inputs; tells new findings as they come."""
    counts, end = {kind.name: Counts() for kind in kinds}, time.monotonic() + seconds
    with WorkerProcess() as worker:
        while open_kinds := [n for n, c in counts.items() if c.inputs < count and time.monotonic() < end]:
            for name in open_kinds:
                done = counts[name]
                slice_seconds = min(SLICE, max(0.0, end - time.monotonic()))
                for answer in worker.answers(name, seed + done.inputs, count - done.inputs, slice_seconds):
                    finding = done.add(name, answer)
                    if finding is not None:
                        tell(finding)
    return counts
