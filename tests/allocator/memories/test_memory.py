"""Memories, and problems of them, that make no sense are refused with one clear line."""

import math
from typing import Any

import numpy as np
import pytest

from allocator.errors import ProblemError
from allocator.memories.memory import Memory
from allocator.memories.problem import MemoryProblem
from allocator.problem import FREE, Problem

FAST = Memory("fast", 100, 4.0, 2.0, 1.0, alignment=1)
SLOW = Memory("slow", 200, 1.0, 0.5, 4.0, alignment=1)


def chunks(count: int, pinned: int = FREE) -> Problem:
    return Problem([0] * count, [1] * count, [10] * count, [1] * count, [pinned] * count)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": ""}, "no name"),
        ({"capacity": 0}, "'m': its capacity is 0"),
        ({"capacity": -5}, "capacity is -5"),
        ({"capacity": math.inf}, "capacity is inf"),
        ({"capacity": math.nan}, "capacity is nan"),
        ({"capacity": 1.5}, "capacity is 1.5"),
        ({"alignment": 0}, "alignment is 0"),
        ({"read_bandwidth": 0.0}, "read bandwidth is 0.0"),
        ({"read_bandwidth": math.inf}, "read bandwidth is inf"),
        ({"write_bandwidth": -1.0}, "write bandwidth is -1.0"),
        ({"write_bandwidth": math.nan}, "write bandwidth is nan"),
        ({"latency": -1.0}, "latency is -1.0"),
        ({"latency": math.inf}, "latency is inf"),
    ],
)
def test_a_memory_that_makes_no_sense_is_refused(fields: dict[str, Any], message: str) -> None:
    good: dict[str, Any] = {"name": "m", "capacity": 64, "read_bandwidth": 1.0, "write_bandwidth": 1.0}
    with pytest.raises(ProblemError, match=message) as error:
        Memory(**(good | fields))
    assert "\n" not in str(error.value)


def test_two_memories_of_one_name_or_none_are_refused() -> None:
    with pytest.raises(ProblemError, match="two memories have the name 'fast'"):
        MemoryProblem(chunks(1), (FAST, FAST), [0], [0], [0])
    with pytest.raises(ProblemError, match="no memory"):
        MemoryProblem(chunks(1), (), [0], [0], [0])


def test_columns_of_another_length_and_negative_numbers_are_refused() -> None:
    with pytest.raises(ProblemError, match="differ in length"):
        MemoryProblem(chunks(2), (FAST,), [0], [0, 0], [0, 0])
    with pytest.raises(ProblemError, match="differ in length"):
        MemoryProblem(chunks(2), (FAST,), [0, 0], [0, 0], [0, 0], np.ones((2, 2), bool))
    with pytest.raises(ProblemError, match="chunk 1: its bytes written are negative"):
        MemoryProblem(chunks(2), (FAST,), [0, 0], [0, -1], [0, 0])


def test_a_pinned_chunk_is_allowed_in_one_memory_alone() -> None:
    with pytest.raises(ProblemError, match="chunk 0: its offset is pinned"):
        MemoryProblem(chunks(1, pinned=0), (FAST, SLOW), [0], [0], [0])
    MemoryProblem(chunks(1, pinned=0), (FAST, SLOW), [0], [0], [0], [[True, False]])


def test_seconds_are_bytes_over_bandwidth_and_latency_for_each_call() -> None:
    problem = MemoryProblem(chunks(2), (FAST, SLOW), [40, 0], [10, 20], [3, 1])
    assert problem.seconds.tolist() == [[10 + 5 + 3, 40 + 20 + 12], [10 + 1, 40 + 4]]
