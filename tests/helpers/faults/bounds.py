"""Faults in lower bounds: what their witnesses name does not add up to them."""

from collections.abc import Callable

from attrs import evolve

from allocator import bounds, solvers
from allocator.cliques import search
from allocator.problem import Bound, Problem, Witness
from tests.helpers.faults.base import BOUNDS, SAVED, Fault, Plant, after, patched
from tests.helpers.faults.stages import replayed, saved
from tests.helpers.faults.work import planned


def _proved(change: Callable[[Bound, Problem], Bound]) -> Plant:
    return patched(solvers, "proved_bound", after(lambda bound, problem, *_: change(bound, problem)))


def _next_tick(bound: Bound, problem: Problem) -> Bound:
    return evolve(bound, witness=Witness(int(problem.end.max())))


def _all_chunks(bound: Bound, problem: Problem) -> Bound:
    chunks = tuple(range(len(problem)))
    return Bound(int(problem.size.sum()), bound.reason, Witness(chunks=chunks)) if chunks else bound


def _all_apart(problem: Problem) -> Problem:
    return evolve(problem, src=(), dest=(), overwrite_offset=())


_BOUNDS = "allocator/bounds.py"
_CELLS = "allocator/cliques/aligned.py"
_FILE = "engine/onnx/embedded.py"

IN_BOUNDS = (
    Fault("a bound names the tick behind all chunks", _BOUNDS, BOUNDS, _proved(_next_tick), planned()),
    Fault(
        "a bound has a byte more than is alive",
        _BOUNDS,
        BOUNDS,
        _proved(lambda bound, _: evolve(bound, nbytes=bound.nbytes + 1)),
        planned(),
    ),
    Fault("a bound adds up chunks that are not alive at once", _BOUNDS, BOUNDS, _proved(_all_chunks), planned()),
    Fault(
        "the bytes of an overwrite count twice",
        "allocator/breadths.py",
        BOUNDS,
        patched(bounds, "breadths", lambda right: lambda problem: right(_all_apart(problem))),
        planned(),
    ),
    Fault(
        "a bound counts the unused bytes of the topmost chunk",
        _CELLS,
        BOUNDS,
        patched(search, "whole_cells", after(lambda nbytes, _, cell: -(-nbytes // cell) * cell)),
        planned(alignment=256),
    ),
    Fault(
        "the bound of a saved plan is not that of its witness",
        _FILE,
        SAVED,
        saved(lambda plan: evolve(plan, bound=evolve(plan.bound, nbytes=plan.bound.nbytes - 64))),
        replayed(),
    ),
)
