"""MegEngine's push-down: a free-list simulation orders the blocks, then every chain sinks as low as that order lets it.

(MegEngine's static memory planning, steps 5 and 6.)
"""

from attrs import frozen

from allocator.kernels.freelist import WIDTH, order_blocks, sink
from allocator.kernels.mode import KernelMode
from allocator.problem import Problem
from allocator.solvers.base import Answer, SolverOptions, Traits
from allocator.solvers.placing.timeline import timeline

UNLOADED = 10_000
"""Chunks, below which the plain kernel takes 0.2 seconds at most: less than loading numba."""


@frozen(eq=False)
class Pushdown:
    """O(n log n). The order of the blocks is found before any address is, so offsets cannot be pinned."""

    name: str = "pushdown"
    traits: Traits = Traits(pinned=False, conflicts=False)

    def solve(self, problem: Problem, _options: SolverOptions) -> Answer:
        """Returns the offsets, and no bound."""
        line = timeline(problem)
        count = len(line.ids)
        mode = KernelMode.of(count, UNLOADED)
        begin, end, size, alignment, root, inner, dest, at, freed = mode.numbers(
            line.begin, line.end, line.size, line.alignment, line.root, line.inner, line.dest, line.at, line.freed
        )
        blocks, held, lower, upper, behind, offset = mode.zeros(
            WIDTH * (2 * count + 2), count, count, count, count + 1, count
        )
        mode.kernel(order_blocks)(begin, end, size, root, dest, at, freed, blocks, held, lower, upper, behind)
        mode.kernel(sink)(size, alignment, root, inner, lower, upper, behind, offset)
        return Answer(line.offsets(problem, offset))


PUSHDOWN = Pushdown()
