import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allocator.bounds import proved_bound
from allocator.check.bound import BoundFault, check_bound
from allocator.problem import FREE, Bound, Conflicts, Problem, Witness
from tests.helpers.allocator.brute_force import minimal_peak
from tests.helpers.allocator.strategies import problems

THREE = Problem([0, 1, 2], [2, 3, 4], [10, 20, 30], [8] * 3, [FREE] * 3)
PAIRS = Problem([0] * 3, [1] * 3, [4] * 3, [1] * 3, [FREE] * 3, conflicts=Conflicts([0, 1], [1, 2]))


def witnesses(chunks: int) -> st.SearchStrategy[Witness]:
    cells = st.sampled_from((1, 2, 3, 4, 8))
    named = st.lists(st.integers(0, chunks - 1), min_size=1, max_size=4, unique=True).map(tuple)
    return st.builds(Witness, st.integers(0, 6), cell=cells) | st.builds(Witness, chunks=named, cell=cells)


@pytest.mark.slow
@settings(max_examples=200)
@given(problems(max_chunks=6, max_size=5, horizon=4, alignments=(1, 2, 3, 8), pins=True, conflicts=True), witnesses(6))
def test_no_plan_is_below_what_the_judge_lets_pass(problem: Problem, witness: Witness) -> None:
    """Whatever a witness names, wrong or right: no sum above the smallest arena is let pass."""
    least = minimal_peak(problem)
    for nbytes in range(least + 1, least + 12):
        assert check_bound(problem, Bound(nbytes, witness=witness)) is not None


@given(problems(max_chunks=8, alignments=(1, 2, 8), pins=True, conflicts=True))
def test_a_bound_one_byte_too_high_or_too_low_is_refused(problem: Problem) -> None:
    bound = proved_bound(problem)
    for nbytes in (bound.nbytes - 1, bound.nbytes + 1):
        fault = check_bound(problem, Bound(nbytes, bound.reason, bound.witness))
        assert fault is None if not bound.witness else fault is not None and fault.kind == BoundFault.SUM


@pytest.mark.parametrize(
    ("problem", "nbytes", "witness"),
    [
        (THREE, 50, Witness(2)),
        (THREE, 32 + 20, Witness(chunks=(1, 2), cell=8)),
        (PAIRS, 8, Witness(chunks=(1, 2))),
        (Problem([0], [1], [8], [1], [100]), 108, Witness(chunks=(0,))),
        (Problem([0, 2], [3, 5], [8, 8], [1, 1], [FREE] * 2, [1], [0], [0]), 8, Witness(2)),
    ],
)
def test_a_witness_adds_up(problem: Problem, nbytes: int, witness: Witness) -> None:
    assert check_bound(problem, Bound(nbytes, witness=witness)) is None


@pytest.mark.parametrize(
    ("problem", "nbytes", "witness", "kind", "message"),
    [
        (THREE, 60, Witness(chunks=(0, 1, 2)), BoundFault.APART, "chunk 0 ends before chunk 2 needs"),
        (PAIRS, 12, Witness(chunks=(0, 1, 2)), BoundFault.APART, "nothing keeps chunk 0 and chunk 2 apart"),
        (PAIRS, 12, Witness(0), BoundFault.NAMES, "tick 0, where chunks or pairs"),
        (THREE, 30, Witness(chunks=(1, 1)), BoundFault.NAMES, "a chunk twice"),
        (THREE, 30, Witness(chunks=(3,)), BoundFault.NAMES, "none of the 3"),
        (THREE, 50, Witness(2, (1, 2)), BoundFault.NAMES, "tick 2"),
        (THREE, 50, Witness(2, cell=0), BoundFault.NAMES, "cells of 0 bytes"),
        (THREE, 50, Witness(1), BoundFault.SUM, "the witness of 50 bytes adds up to 30"),
        (THREE, 50, Witness(9), BoundFault.SUM, "the witness of 50 bytes adds up to 0"),
        (THREE, 60, Witness(chunks=(1, 2), cell=7), BoundFault.SUM, "adds up to 42"),
    ],
)
def test_a_wrong_witness_is_refused(
    problem: Problem, nbytes: int, witness: Witness, kind: BoundFault, message: str
) -> None:
    fault = check_bound(problem, Bound(nbytes, witness=witness))
    assert fault is not None and fault.kind == kind and message in fault.message


def test_a_chunk_stands_for_one_of_its_chain_that_has_the_same_bytes() -> None:
    """Just chunk 1 conflicts with chunk 2; it has the bytes of chunk 0, which it overwrites."""
    columns = ([0, 3, 0], [4, 6, 6], [8, 8, 4], [1] * 3, [FREE] * 3, [1], [0], [0])
    whole = Problem(*columns, Conflicts([1], [2]))
    assert check_bound(whole, Bound(12, witness=Witness(chunks=(0, 2)))) is None
    part = Problem(*columns[:2], [8, 4, 4], *columns[3:], Conflicts([1], [2]))
    fault = check_bound(part, Bound(12, witness=Witness(chunks=(0, 2))))
    assert fault is not None and fault.kind == BoundFault.APART
