"""idealloc's CSV in its three kinds, and its PLC."""

import struct

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from allocator.errors import FormatError, UnsupportedProblemError
from allocator.io import idealloc_csv, idealloc_plc
from allocator.io.idealloc_csv import Kind, numeric_ids
from allocator.io.instance import Instance
from allocator.problem import Problem
from tests.helpers.allocator.file_instances import named, plain
from tests.helpers.allocator.strategies import problems

TICKS = {Kind.OPEN: 2, Kind.HALF_OPEN: 1, Kind.INCLUSIVE: 1}
"""How often a tick counts in a file of a kind."""
OVERWRITING = Problem([0, 1], [2, 3], [8, 8], [1, 1], [-1, -1], [1], [0], [0])


@given(problems().map(plain), st.sampled_from(Kind))
@settings(max_examples=30)
def test_idealloc_csv_is_read_back(problem: Problem, kind: Kind) -> None:
    result = idealloc_csv.parse(idealloc_csv.render(named(problem), kind), kind).problem
    assert np.array_equal(result.begin, problem.begin * TICKS[kind])
    assert np.array_equal(result.end, problem.end * TICKS[kind])
    assert np.array_equal(result.size, problem.size)


@given(problems(), st.data())
@settings(max_examples=30)
def test_idealloc_plc_is_read_back(problem: Problem, data: st.DataObject) -> None:
    free = evolve(problem, src=(), dest=(), overwrite_offset=())
    offset = data.draw(st.lists(st.integers(0, 2**40), min_size=len(free), max_size=len(free)))
    wanted = evolve(named(free), offset=offset)
    instance = idealloc_plc.parse(idealloc_plc.render(wanted))
    assert instance.offset.tolist() == offset
    for name, times in (("begin", 2), ("end", 2), ("size", 1), ("alignment", 1)):
        assert np.array_equal(getattr(instance.problem, name), getattr(free, name) * times)


def test_idealloc_csv_writes_one_lifetime_in_three_ways() -> None:
    instance = Instance(Problem([3], [5], [8], [1], [-1]), ("42",))
    texts = {kind: idealloc_csv.render(instance, kind).decode().splitlines()[1] for kind in Kind}
    assert texts == {Kind.OPEN: "42,6,10,8", Kind.HALF_OPEN: "42,3,5,8", Kind.INCLUSIVE: "42,3,4,8"}


def test_open_lifetimes_conflict_where_each_begins_before_the_other_ends() -> None:
    problem = idealloc_csv.parse(b"id,lower,upper,size\n0,0,2,4\n1,1,3,4\n2,2,4,4\n", Kind.OPEN).problem
    assert (problem.begin.tolist(), problem.end.tolist()) == ([0, 1, 2], [2, 3, 4])


def test_idealloc_csv_is_read_whatever_its_header() -> None:
    assert idealloc_csv.parse(b"a,b,c,d\n0,0,2,4\n", Kind.HALF_OPEN).ids == ("0",)


def test_an_idealloc_plc_record_to_the_byte() -> None:
    instance = Instance(Problem([1], [3], [100], [64], [-1]), ("7",), [128])
    assert idealloc_plc.render(instance) == struct.pack(">8Q", 7, 2, 6, 100, 0, 128, 64, 100)


@pytest.mark.parametrize(
    ("ids", "numbers"),
    [
        (("3", "1"), [3, 1]),
        (("a", "1"), [0, 1]),
        (("07", "7"), [0, 1]),
        (("4294967296",), [0]),
        (("4294967295",), [4294967295]),
        ((), []),
    ],
)
def test_ids_are_numbers_of_32_bits_or_positions(ids: tuple[str, ...], numbers: list[int]) -> None:
    assert numeric_ids(ids) == numbers


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        (Kind.OPEN, "0,3,4,8", r"line 2, column upper: 4 is not in \[5, "),
        (Kind.HALF_OPEN, "0,3,3,8", r"line 2, column upper: 3 is not in \[4, "),
        (Kind.INCLUSIVE, "0,3,2,8", r"line 2, column upper: 2 is not in \[3, "),
        (Kind.INCLUSIVE, "0,3,4,8,1", "line 2: 5 fields for 4 columns"),
        (Kind.INCLUSIVE, "0,3,4,x", "line 2, column size: 'x' is no integer"),
    ],
)
def test_a_bad_idealloc_csv_is_refused_by_line_and_column(kind: Kind, text: str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        idealloc_csv.parse(f"id,lower,upper,size\n{text}\n".encode(), kind)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\0" * 63, "63 bytes, which is no whole number of records"),
        (struct.pack(">8Q", 0, 4, 5, 1, 0, 0, 0, 1), r"record 0, field death: the open lifetime \(4, 5\) has no tick"),
        (struct.pack(">16Q", *([0, 4, 6, 1, 0, 0, 0, 1] * 2)), "two buffers have the id '0'"),
        (struct.pack(">8Q", 0, 4, 6, 2**64 - 1, 0, 0, 0, 1), "record 0, field size: 18446744073709551615 is not below"),
    ],
)
def test_a_bad_idealloc_plc_is_refused_by_field(content: bytes, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        idealloc_plc.parse(content)


def test_idealloc_refuses_problems_it_cannot_hold() -> None:
    for render in (lambda i: idealloc_csv.render(i, Kind.HALF_OPEN), idealloc_plc.render):
        with pytest.raises(UnsupportedProblemError, match="overwrites"):
            render(named(OVERWRITING))
    aligned = named(Problem([0], [1], [4], [64], [-1]))
    with pytest.raises(UnsupportedProblemError, match="alignments"):
        idealloc_csv.render(aligned, Kind.HALF_OPEN)
    with pytest.raises(UnsupportedProblemError, match="buffer 'b0' has none"):
        idealloc_plc.render(aligned)
    late = named(Problem([0], [2**61], [4], [1], [-1]))
    with pytest.raises(FormatError, match="cannot be doubled"):
        idealloc_csv.render(late, Kind.OPEN)
