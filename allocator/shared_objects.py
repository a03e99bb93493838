"""Shared objects: a few buffers, each used whole by one chunk after the other (for GPU textures, or malloc)."""

from collections.abc import Mapping
from types import MappingProxyType

from attrs import field, frozen

from allocator.check.shared_objects import check_objects
from allocator.errors import PlanError, UnknownStrategyError, UnsupportedProblemError
from allocator.problem import Column, Problem, column
from allocator.solvers import BEST, STRATEGIES
from allocator.solvers.base import unsupported_reason
from allocator.solvers.positional_maximums import objects_bound
from allocator.solvers.preconditions import check_chains
from allocator.solvers.shared import SharedObjectsSolver, interference_graph


@frozen(eq=False)
class SharedObjects:
    """Chunk i is in object object_of[i] (in none, NO_OBJECT, if it has no bytes); object k has size[k] bytes.

    A chunk begins where its object does; an overwriter begins where it must inside the chunk that it overwrites.
    `lower_bound` is proved: no set of objects for this problem has fewer bytes.
    """

    object_of: Column = field(converter=column)
    size: Column = field(converter=column)
    lower_bound: int
    strategy: str

    @property
    def total_bytes(self) -> int:
        """Returns the bytes of all objects."""
        return int(self.size.sum())


SHARING: Mapping[str, SharedObjectsSolver] = MappingProxyType(
    {name: s for name, s in STRATEGIES.items() if isinstance(s, SharedObjectsSolver)}
)
"""The strategies that make objects, by name, in the order in which ties are decided."""


def assign(problem: Problem, strategy: str = BEST) -> SharedObjects:
    """Assigns chunks to objects by the named strategy, or by the one with fewest bytes of all that apply.

    (The advice of Pisarchyk and Lee 2020.)

    Raises UnknownStrategyError, UnsupportedProblemError (no strategy takes pinned offsets) and ProblemError; PlanError,
    where the judge refuses the objects, is a fault of ours.
    """
    check_chains(problem)
    bound = objects_bound(interference_graph(problem))
    best: SharedObjects | None = None
    for solver in _applicable(problem, strategy):
        shared = _judged(problem, solver, bound)
        if best is None or shared.total_bytes < best.total_bytes:
            best = shared
        if best.total_bytes == bound:
            break
    assert best is not None
    return best


def _applicable(problem: Problem, strategy: str) -> tuple[SharedObjectsSolver, ...]:
    if strategy != BEST and strategy not in SHARING:
        raise UnknownStrategyError(f"no strategy {strategy!r} makes objects; there are {', '.join((BEST, *SHARING))}")
    wanted = tuple(SHARING.values()) if strategy == BEST else (SHARING[strategy],)
    able = tuple(s for s in wanted if not unsupported_reason(problem, s))
    if not able:
        raise UnsupportedProblemError(f"strategy {strategy!r} cannot take {unsupported_reason(problem, wanted[0])}")
    return tuple(s for s in able if len(problem) <= s.traits.most_chunks) or able[:1]


def _judged(problem: Problem, solver: SharedObjectsSolver, bound: int) -> SharedObjects:
    object_of, size = solver.objects(problem)
    fault = check_objects(problem, object_of, size)
    if fault is not None:
        raise PlanError(f"{solver.name} made wrong objects ({fault.kind}): {fault.message}")
    shared = SharedObjects(object_of, size, bound, solver.name)
    if shared.total_bytes < bound:
        raise PlanError(f"{solver.name} made objects of {shared.total_bytes} bytes, below the bound of {bound}")
    return shared
