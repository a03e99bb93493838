import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allocator.check.shared_objects import ObjectFaultKind, check_objects
from allocator.problem import FREE, Conflicts, Problem, column
from tests.helpers.allocator.strategies import problems


def chunks(*rows: tuple[int, int, int], **rest: object) -> Problem:
    """Returns a problem of chunks, each given by (begin, end, size)."""
    begin, end, size = zip(*rows, strict=True)
    return Problem(begin, end, size, [1] * len(rows), [FREE] * len(rows), **rest)  # type: ignore[arg-type] # by name


def are_right(problem: Problem, object_of: list[int], size: list[int]) -> bool:
    """Returns whether objects are right: compares every pair of chunks."""
    rows = [r for r in problem.rows() if r.size]
    if any(not 0 <= object_of[r.id] < len(size) or size[object_of[r.id]] < r.size for r in rows):
        return False
    over = set(zip(problem.src.tolist(), problem.dest.tolist(), strict=True))
    if any(object_of[src] != object_of[dest] for src, dest in over if problem.size[src]):
        return False
    pairs = [(a, b) for a in rows for b in rows if a.id != b.id and object_of[a.id] == object_of[b.id]]
    if problem.conflicts is not None:
        conflicting = set(zip(problem.conflicts.one.tolist(), problem.conflicts.other.tolist(), strict=True))
        return not any((a.id, b.id) in conflicting for a, b in pairs)
    for a, b in pairs:
        ticks = set(range(a.begin, a.end)) & set(range(b.begin, b.end))
        if ticks - ({a.begin} if (a.id, b.id) in over else {b.begin} if (b.id, a.id) in over else set()):
            return False
    return True


@given(problems(max_chunks=6, conflicts=True), st.data())
@settings(max_examples=120)
def test_check_objects_finds_a_fault_where_there_is_one(problem: Problem, data: st.DataObject) -> None:
    object_of = data.draw(st.lists(st.integers(-1, 3), min_size=len(problem), max_size=len(problem)))
    size = data.draw(st.lists(st.integers(6, 9), min_size=3, max_size=4))
    fault = check_objects(problem, column(object_of), column(size))
    assert (fault is None) == are_right(problem, object_of, size)


@pytest.mark.parametrize(
    ("object_of", "size", "kind", "named"),
    [
        ([0, 1], [8, 8, 8], ObjectFaultKind.LENGTH, ()),
        ([0, 1, 3], [8, 8, 8], ObjectFaultKind.UNKNOWN, (2,)),
        ([0, 1, -1], [8, 8], ObjectFaultKind.UNKNOWN, (2,)),
        ([0, 1, 1], [8, 3], ObjectFaultKind.SIZE, (1,)),
        ([1, 0, 1], [8, 8], ObjectFaultKind.CONFLICT, (0, 2)),
    ],
)
def test_check_objects_names_each_fault(
    object_of: list[int], size: list[int], kind: str, named: tuple[int, ...]
) -> None:
    """Chunk 2 begins in the last tick of chunk 0, and where chunk 1 has ended."""
    problem = chunks((0, 3, 8), (0, 2, 4), (2, 5, 2))
    fault = check_objects(problem, column(object_of), column(size))
    assert fault is not None
    assert (fault.kind, fault.chunks) == (kind, named)
    assert check_objects(problem, column([0, 1, 1]), column([8, 4])) is None


def test_an_overwriter_shares_the_object_of_its_target_alone() -> None:
    """Chunk 1 overwrites chunk 0 in tick 2; chunk 2 lives in tick 3."""
    problem = chunks((0, 3, 8), (2, 4, 4), (3, 5, 4), src=[1], dest=[0], overwrite_offset=[4])
    assert check_objects(problem, column([0, 0, 1]), column([8, 4])) is None
    apart = check_objects(problem, column([0, 1, 2]), column([8, 4, 4]))
    together = check_objects(problem, column([0, 0, 0]), column([8]))
    assert apart is not None
    assert together is not None
    assert (apart.kind, apart.chunks) == (ObjectFaultKind.OVERWRITE, (1, 0))
    assert (together.kind, together.chunks) == (ObjectFaultKind.CONFLICT, (1, 2))


def test_conflicts_replace_lifetimes_and_empty_chunks_are_ignored() -> None:
    problem = chunks((0, 9, 8), (0, 9, 8), (0, 9, 0), conflicts=Conflicts([2], [0]))
    assert check_objects(problem, column([0, 0, 7]), column([8])) is None
    conflict = check_objects(chunks((0, 1, 8), (1, 2, 8), conflicts=Conflicts([1], [0])), np.zeros(2, int), column([8]))
    assert conflict is not None
    assert conflict.message == "chunks 0 and 1 conflict, but share object 0"
