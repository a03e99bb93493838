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
        ({"name": ""}, "'' is no name"),
        ({"name": 3}, "3 is no name"),
        ({"name": "a b;c"}, "'a b;c' is no name of a memory: a letter, then letters, digits and _"),
        ({"name": "a" * 500 + " "}, r"'a{40}\.\.\.' is no name"),
        ({"capacity": 0}, "'m': its capacity is 0"),
        ({"capacity": -5}, "capacity is -5"),
        ({"capacity": math.inf}, "capacity is inf"),
        ({"capacity": math.nan}, "capacity is nan"),
        ({"capacity": 1.5}, "capacity is 1.5"),
        ({"capacity": "512KiB"}, "capacity is '512KiB', and must be a number of bytes from 1 to"),
        ({"capacity": True}, "capacity is True"),
        ({"capacity": 2**62}, r"capacity is 4611686018427387904, and must be .* to 2\*\*62 - 1"),
        ({"alignment": 0}, "alignment is 0"),
        ({"alignment": 48}, "alignment is 48, and must be a power of two"),
        ({"alignment": 64.0}, "alignment is 64.0"),
        ({"alignment": 10**400}, r"alignment is 10{39}\.\.\., and must"),
        ({"alignment": 2**62}, "alignment is 4611686018427387904"),
        ({"read_bandwidth": "1GB/s"}, "read bandwidth is '1GB/s'"),
        ({"read_bandwidth": 5e-324}, "read bandwidth is 5e-324, and must be bytes per second, from 0.001"),
        ({"write_bandwidth": 10**400}, "write bandwidth is 10"),
        ({"copy_engine": 1}, "its copy engine is 1, and must be True or False"),
        ({"write_bandwidth": True}, "write bandwidth is True"),
        ({"latency": 1e308}, "latency is 1e[+]308"),
        ({"writable": "no"}, "writable is 'no', and must be True or False"),
        ({"read_bandwidth": 0.0}, "read bandwidth is 0.0"),
        ({"read_bandwidth": math.inf}, "read bandwidth is inf"),
        ({"write_bandwidth": -1.0}, "write bandwidth is -1.0"),
        ({"write_bandwidth": math.nan}, "write bandwidth is nan"),
        ({"latency": -1.0}, "latency is -1.0"),
        ({"latency": math.inf}, "latency is inf"),
        ({"folder": "a\0b"}, "its folder is 'a.*b', and must be the name of a folder"),
        ({"folder": "\ud800"}, "its folder is '.*', and must be the name of a folder"),
    ],
)
def test_a_memory_that_makes_no_sense_is_refused(fields: dict[str, Any], message: str) -> None:
    good: dict[str, Any] = {"name": "m", "capacity": 64, "read_bandwidth": 1.0, "write_bandwidth": 1.0}
    with pytest.raises(ProblemError, match=message) as error:
        Memory(**(good | fields))
    assert "\n" not in str(error.value)


def test_numbers_of_any_kind_make_equal_memories() -> None:
    memory = Memory("m", np.int64(64), 1, np.float32(2), 0, np.uint8(8))
    assert memory == Memory("m", 64, 1.0, 2.0, 0.0, 8) and repr(memory) == repr(Memory("m", 64, 1.0, 2.0, 0.0, 8))


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
