"""Saved traces, mutated: read event by event, and shown in other formats."""

from functools import cache
from pathlib import Path

import numpy as np

import engine
from engine.exporters import FORMATS
from tests.fuzz.base import MUTANTS, Kind, Tried
from tests.fuzz.bytes_mutations import mutated, mutated_text
from tests.fuzz.command import run_command
from tests.helpers.graphs.random_graphs import build, seeded
from tests.helpers.graphs.training_graphs import random_training
from tests.helpers.traces.exported_files import exported

_BASES = 12


def make(rng: np.random.Generator) -> bytes:
    """Makes a line with the trace's format and one to show it in, and a mutated trace below it."""
    form = ("json", "csv")[rng.integers(2)]
    content = saved(int(rng.integers(_BASES)), form)
    content = (mutated if rng.random() < 0.2 else mutated_text)(content, rng)
    shown = ("events", *sorted(FORMATS))[rng.integers(1 + len(FORMATS))]
    return f"{form} {shown}\n".encode() + content


@cache
def saved(seed: int, name: str) -> bytes:
    """Returns the trace of a small random graph in a format that is read back."""
    choose = seeded(seed)
    graph = random_training(choose, 4) if seed % 4 == 3 else build(choose, 6)
    plan = engine.make_plan(graph, nodes=50, optimise=0, parallel="exact" if seed % 3 == 2 else "")
    heap = ("", "first_fit", "buddy")[seed % 3]
    return exported(name, plan.trace("dynamic", heap=heap) if seed % 2 else plan.trace(threads=seed % 3))


def attempt(path: Path) -> Tried:
    """Reads all events, then has the command show them."""
    line, _, content = path.read_bytes().partition(b"\n")
    form, shown = line.decode().split()
    path = path.with_suffix(f".{form}")
    path.write_bytes(content)
    if shown == "events":
        for _ in engine.read_trace(path):
            pass
        return Tried()
    return run_command("trace", path.name, "--format", shown, "-o", "out", folder=path.parent)


TRACES = Kind("traces", MUTANTS, "trace", make, attempt)
