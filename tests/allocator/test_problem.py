from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocator.errors import ProblemError
from allocator.problem import FREE, Bound, Lifetime, Plan, Problem, column, stable_order


def problem(**changes: Any) -> Problem:
    columns: dict[str, Any] = {
        "begin": [0, 1],
        "end": [2, 3],
        "size": [8, 4],
        "alignment": [1, 1],
        "pinned": [-1, -1],
    }
    columns |= {"src": [1], "dest": [0], "overwrite_offset": [4]}
    return Problem(**(columns | changes))


def test_a_problem_shows_its_rows() -> None:
    assert list(problem().rows()) == [Lifetime(0, 0, 2, 8, 1, FREE), Lifetime(1, 1, 3, 4, 1, FREE)]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"size": [8]}, "differ in length"),
        ({"begin": [-1, 1]}, "before tick 0"),
        ({"end": [2, 1]}, "chunk 1: its lifetime is empty"),
        ({"size": [8, -4]}, "chunk 1: its size is negative"),
        ({"alignment": [0, 1]}, "chunk 0: its alignment is below 1"),
        ({"pinned": [-2, -1]}, "chunk 0: its pinned offset is negative"),
        ({"pinned": [6, -1], "alignment": [4, 1]}, "chunk 0: its pinned offset is not aligned"),
        ({"size": [2**62, 4]}, "64-bit"),
        ({"dest": [0, 0]}, "differ in length"),
        ({"dest": [2]}, "does not exist"),
        ({"overwrite_offset": [5]}, "chunk 1 cannot overwrite chunk 0: not in its bytes"),
        ({"begin": [0, 0]}, "chunk 1 cannot overwrite chunk 0: not in its bytes and last tick"),
        ({"begin": [1, 1]}, "both begin in tick 1"),
        ({"alignment": [1, 2]}, "chunk 1 overwrites another"),
        ({"pinned": [-1, 4]}, "chunk 1 overwrites another"),
    ],
)
def test_a_problem_that_makes_no_sense_is_refused_with_the_reason(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ProblemError, match=message):
        problem(**changes)


def test_columns_cannot_be_written_to() -> None:
    with pytest.raises(ValueError, match="read-only"):
        problem().size[0] = 1


def test_a_plan_is_optimal_where_it_meets_the_bound() -> None:
    assert Plan([0, 4], 8, Bound(8), "naive").status == "optimal"
    assert Plan([0, 4], 9, Bound(8), "naive").status == "feasible"


def test_a_column_is_copied_only_where_somebody_could_write_to_it() -> None:
    numbers = np.arange(4)
    ours = column(numbers)
    assert ours is not numbers and not ours.flags.writeable
    assert column(ours) is ours
    view = numbers[:2]
    view.flags.writeable = False
    narrow = np.arange(4, dtype=np.int32)
    narrow.flags.writeable = False
    assert column(view) is not view and column(narrow).dtype == np.int64


@given(st.lists(st.tuples(*[st.integers(0, 3) | st.integers(0, 2**62)] * 3), max_size=20), st.integers(1, 3))
def test_a_stable_order_is_that_of_a_sort_by_several_keys(rows: list[tuple[int, int, int]], keys: int) -> None:
    columns = np.array(rows, np.int64).reshape(-1, 3).T[:keys]
    assert stable_order(*columns).tolist() == np.lexsort(columns).tolist()
