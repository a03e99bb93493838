"""Files of `arenaplan solve` in every format, mutated, with options."""

from functools import cache
from pathlib import Path

import numpy as np
from attrs import evolve

from allocator.errors import AllocatorError
from allocator.io.formats import READERS, WRITERS
from allocator.io.instance import Instance
from allocator.problem import FREE, Problem
from allocator.solvers import BEST, STRATEGIES, solve
from engine.cli.main import REFUSED
from engine.cli.solve import ALL
from tests.fuzz.base import MUTANTS, Kind, Tried, WrongError
from tests.fuzz.bytes_mutations import mutated, mutated_text
from tests.fuzz.command import run_command

_BASES = 8
_STRATEGIES = (BEST, ALL, *STRATEGIES)
_OPTIONS: tuple[tuple[str, ...], ...] = (
    (),
    ("--json",),
    ("--pinned",),
    ("--validate",),
    ("--alignment", "64"),
    ("--padding", "7", "--seed", "3"),
    ("--capacity", "100"),
)


def make(rng: np.random.Generator) -> bytes:
    """Makes a line with the command's options, and a mutated file below it."""
    formats = tuple(READERS)
    source, target = formats[rng.integers(len(formats))], tuple(WRITERS)[rng.integers(len(WRITERS))]
    content = written(int(rng.integers(_BASES)), source)
    content = (mutated if rng.random() < 0.2 else mutated_text)(content, rng)
    options = ["--from", source, "--strategy", _STRATEGIES[rng.integers(len(_STRATEGIES))]]
    options += _OPTIONS[rng.integers(len(_OPTIONS))]
    options += ["-o", "out", "--to", target] if rng.random() < 0.5 else []
    return " ".join(options).encode() + b"\n" + content


@cache
def written(seed: int, name: str) -> bytes:
    """Returns a small instance in a format; an empty file where the format cannot hold it."""
    rng = np.random.default_rng(seed)
    count = int(1 + rng.integers(9))
    begin, size = rng.integers(20, size=count), 8 * rng.integers(1, 40, size=count)
    problem = Problem(begin, begin + rng.integers(1, 9, size=count), size, [1] * count, [FREE] * count)
    try:
        instance = Instance(problem, tuple(f"b{i}" for i in range(count)))
        return WRITERS[name](evolve(instance, offset=solve(problem, "naive").offset) if seed % 2 else instance)
    except AllocatorError:
        return b""


def attempt(path: Path) -> Tried:
    """Runs the command on the file. A plan of its own is never refused."""
    options, _, content = path.read_bytes().partition(b"\n")
    path.write_bytes(content)
    words = options.decode().split()
    tried = run_command("solve", path.name, *words, "--nodes", "50", folder=path.parent)
    if tried == Tried(f"exit code {REFUSED}") and "--validate" not in words:
        raise WrongError("a checker refused a plan of our own")
    return tried


TEXTS = Kind("texts", MUTANTS, "buffers.csv", make, attempt)
