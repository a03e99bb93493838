"""Problems of several memories, drawn by chance: tight ones, in which chunks compete for what is fast."""

import numpy as np
from attrs import evolve

from allocator.bounds import lower_bound
from allocator.memories.memory import Memory
from allocator.memories.problem import MemoryProblem
from tests.helpers.allocator.random_problems import Kind
from tests.helpers.allocator.strategies import random_problem

KIND = Kind(40, 6, (1, 2, 8), overwrites=20, longest=4)
SPEEDS = ((8.0, 8.0, 0.0), (4.0, 2.0, 1.0), (1.0, 0.5, 4.0))
"""Read and write bandwidth, and latency, the fastest memory first: costs are multiples of an eighth."""


def random_memory_problem(seed: int, count: int, memories: int, kind: Kind = KIND) -> MemoryProblem:
    """Returns a problem whose memories hold some part of the bound each, now and then too little together."""
    rng = np.random.default_rng(seed)
    chunks = random_problem(rng, count, kind)
    bound = max(lower_bound(chunks), 1)
    is_flash = memories > 1 and rng.random() < 0.3
    shares = rng.uniform(0.2, 0.7, memories)
    shares[-1] = rng.uniform(0.5, 1.3)
    drawn = tuple(
        Memory(f"m{m}", max(1, int(bound * share)), *SPEEDS[m], alignment=int(rng.choice((1, 1, 2, 4))))
        for m, share in enumerate(shares)
    )
    if is_flash:
        drawn = (*drawn[:-1], evolve(drawn[-1], writable=False))
    written = np.where(rng.random(count) < 0.3, 0, chunks.size)
    allowed = rng.random((count, memories)) > 0.1
    allowed[np.arange(count), rng.integers(0, memories, count)] = True
    return MemoryProblem(
        chunks, drawn, chunks.size * rng.integers(0, 4, count), written, rng.integers(0, 5, count), allowed
    )
