"""A plan in two parts: bytes that must survive from run to run (state), and bytes that only one run needs (scratch)."""

from math import lcm

import numpy as np
import numpy.typing as npt
from attrs import evolve, frozen

from allocator.bounds import proved_bound
from allocator.breadths import breadths
from allocator.problem import FREE, Column, Plan, Problem, align_up, column, distinct
from allocator.solvers.base import arena_bytes
from engine.execution_plan import ExecutionPlan
from engine.executor.arenas import alignment_of
from engine.executor.feeds import initial_values
from engine.planning.placed import place_values
from engine.text.errors import OptionError


@frozen(eq=False)
class SplitPlan:
    """A plan whose state and scratch may lie anywhere, each a range of bytes without the other's between them.

    Chunk i begins `offset[i]` bytes behind the first byte of its part. Both parts must begin at a multiple of
    `alignment`.
    """

    plan: ExecutionPlan
    offset: Column
    state_bytes: int
    scratch_bytes: int
    alignment: int

    @property
    def tail(self) -> int:
        """Unused bytes behind the state, up to the alignment."""
        return -self.state_bytes % self.alignment

    def at(self, state: int, scratch: int) -> tuple[int, ExecutionPlan]:
        """Returns the first byte of a plan whose parts have these offsets, and the plan with offsets from there on."""
        if not self.state_bytes and np.array_equal(self.offset, self.plan.plan.offset):
            return scratch, self.plan
        parts = (state, self.state_bytes), (scratch, self.scratch_bytes)
        first = min((offset for offset, size in parts if size), default=scratch)
        moved = np.where(self.plan.state_chunks, state - first, scratch - first) + self.offset
        end = arena_bytes(self.plan.problem, moved)
        plan = Plan(moved, end, self.plan.plan.bound, self.plan.plan.strategy)
        lowered, ids, chunks = self.plan.lowered, self.plan.ids, self.plan.chunks
        return first, evolve(self.plan, plan=plan, places=place_values(lowered, ids, chunks, plan))


def split(plan: ExecutionPlan) -> SplitPlan:
    """Returns a plan in two parts. A plan without state stays as it is.

    The scratch is moved together: where no chunk of it ever lies, bytes are closed, as far as alignments allow it. So
    chunks that share bytes still do, and others never come to share any.
    """
    step = lcm(alignment_of(plan), *distinct(plan.problem.alignment).tolist())
    state, problem = plan.state_chunks, plan.problem
    if not problem.size[state].any():
        return SplitPlan(plan, plan.plan.offset, 0, plan.arena_bytes, step)
    scratch = np.flatnonzero(~state)
    offset, state_bytes = _stacked(problem, np.flatnonzero(state & _roots(problem)))
    offset[scratch], scratch_bytes = _compacted(plan.plan.offset[scratch], problem.size[scratch], step)
    return SplitPlan(plan, offset, state_bytes, scratch_bytes, step)


def with_state_of(part: SplitPlan, leader: SplitPlan) -> SplitPlan:
    """Returns a part whose parameters lie where those of `leader` of the same names lie.

    Raises OptionError where both do not have the same parameters: name, shape, type and first value.
    """
    mine, theirs = _parameters(part), _parameters(leader)
    one, other = (each.plan.lowered.graph.name for each in (leader, part))
    odd = next((name for name in theirs | mine if not _is_same(part, mine.get(name), leader, theirs.get(name))), "")
    if odd or not mine:
        why = f"{odd!r} is not the same in both" if odd else "they have none"
        raise OptionError(f"same_state: {one!r} and {other!r} do not have the same parameters: {why}")
    at = np.zeros(len(part.plan.problem), np.int64)
    for name, value in mine.items():
        at[part.plan.chunk_of(value)] = leader.offset[leader.plan.chunk_of(theirs[name])]
    offset = np.where(part.plan.state_chunks, part.plan.problem.chains.offsets(at), part.offset)
    return evolve(part, offset=offset, state_bytes=leader.state_bytes)


def _parameters(part: SplitPlan) -> dict[str, int]:
    """Returns the value of each parameter, by its name."""
    return {part.plan.lowered.values[value].name: value for value in part.plan.lowered.parameters}


def _is_same(part: SplitPlan, value: int | None, leader: SplitPlan, other: int | None) -> bool:
    """Returns whether a parameter is the same in two networks, in a chunk of its own of the same size."""
    if value is None or other is None:
        return False
    facts = []
    for plan, number in ((part.plan, value), (leader.plan, other)):
        record, chunk = plan.lowered.values[number], plan.chunk_of(number)
        is_own = plan.problem.chains.root[chunk] == chunk
        facts.append((record.spec, plan.problem.size[chunk], is_own, initial_values(plan.lowered)[record.name]))
    (*one, before), (*two, after) = facts
    return one == two and bool(one[2]) and np.array_equal(before, after, equal_nan=True)


def _stacked(problem: Problem, roots: Column) -> tuple[Column, int]:
    """Returns offsets of chunks one behind the other, with what overwrites them, and the bytes up to the last end.

    The last one is that with most unused bytes up to its alignment.
    """
    last = roots[np.argmax(-problem.size[roots] % problem.alignment[roots])]
    at, top = np.zeros(len(problem), np.int64), 0
    for root in [*roots[roots != last].tolist(), int(last)]:
        at[root] = align_up(top, int(problem.alignment[root]))
        top = int(at[root] + problem.size[root])
    return np.array(problem.chains.offsets(at)), top


def _compacted(offset: Column, size: Column, step: int) -> tuple[Column, int]:
    """Returns the offsets with unused bytes closed by multiples of `step`, and the bytes up to the last end."""
    moved, end, reached, shift = offset.copy(), 0, 0, 0
    for row in np.argsort(offset, kind="stable").tolist():
        if not size[row]:
            continue
        low = int(offset[row])
        if low >= reached:  # nothing lies across this byte
            shift = (low - end) // step * step
        moved[row] = low - shift
        reached = max(reached, low + int(size[row]))
        end = max(end, reached - shift)
    return moved, end


def cell_of(parts: SplitPlan) -> int:
    """Returns the number of bytes to a multiple of which every chunk is aligned that overwrites no other."""
    return int(np.gcd.reduce(_root_alignments(parts), initial=0)) or parts.alignment


def _root_alignments(parts: SplitPlan) -> Column:
    problem = parts.plan.problem
    return column(problem.alignment[_roots(problem) & (problem.size > 0)])


def _roots(problem: Problem) -> npt.NDArray[np.bool_]:
    """Returns, for each chunk, whether it overwrites no other."""
    roots: npt.NDArray[np.bool_] = problem.chains.root == np.arange(len(problem))
    return roots


def state_cells(parts: SplitPlan, cell: int) -> int:
    """Returns the bytes of all cells that the state has, of which it has each for itself."""
    return sum(align_up(size, cell) for size in state_sizes(parts))


def state_sizes(parts: SplitPlan) -> list[int]:
    """Returns the sizes of the chunks of the state, without those that overwrite others."""
    problem = parts.plan.problem
    sizes: list[int] = problem.size[parts.plan.state_chunks & _roots(problem)].tolist()
    return sizes


def scratch_bound(parts: SplitPlan, cell: int) -> int:
    """Returns bytes that no layout of the scratch has fewer of, also if others' bytes lie between its chunks.

    Where all chunks are aligned to one cell, each has whole cells, and closing the cells of others costs nothing: so
    what is proved of one arena holds. Else it is the most bytes alive at once. Where operators may run at once, only
    the bound of the plan is known to hold.
    """
    plan, policy = parts.plan, parts.plan.schedule.policy
    whole = max(plan.plan.lower_bound - state_cells(parts, cell), 0)
    if (_root_alignments(parts) != cell).any():
        return 0 if policy else int(breadths(scratch_problem(parts)).value.max(initial=0))
    return whole if policy else max(whole, proved_bound(scratch_problem(parts)).nbytes)


def scratch_problem(parts: SplitPlan) -> Problem:
    """Returns the problem of placing the scratch alone."""
    problem = parts.plan.problem
    rows = np.flatnonzero(~parts.plan.state_chunks)
    number = np.full(len(problem), FREE)
    number[rows] = np.arange(len(rows))
    pairs = number[problem.src] != FREE
    return Problem(
        problem.begin[rows],
        problem.end[rows],
        problem.size[rows],
        problem.alignment[rows],
        np.full(len(rows), FREE),
        number[problem.src[pairs]],
        number[problem.dest[pairs]],
        problem.overwrite_offset[pairs],
    )
