"""MegEngine's interval list and its StaticMemoryInfo.json."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given, settings

from allocator.check.offsets import check
from allocator.errors import FormatError, ProblemError, UnsupportedProblemError
from allocator.io import megengine_intervals, megengine_record
from allocator.io.instance import Gaps, Instance
from allocator.problem import Conflicts, Problem
from allocator.solvers import solve
from tests.helpers.allocator.file_instances import named
from tests.helpers.allocator.strategies import problems

INTERVALS = """3
0 3 20
2 5 10
4 6 4
2
1 0 6
2 1 0
"""


def shape(problem: Problem) -> tuple[object, ...]:
    overwrites = zip(problem.src.tolist(), problem.dest.tolist(), problem.overwrite_offset.tolist(), strict=True)
    return problem.begin.tolist(), problem.end.tolist(), problem.size.tolist(), sorted(overwrites)


@given(problems(alignments=(1,)))
@settings(max_examples=30)
def test_an_interval_list_is_read_back(problem: Problem) -> None:
    instance = megengine_intervals.parse(megengine_intervals.render(named(problem)))
    assert shape(instance.problem) == shape(problem)
    assert instance.ids == tuple(str(i) for i in range(len(problem)))


@given(problems())
@settings(max_examples=30)
def test_a_record_of_a_plan_is_read_back_and_right(problem: Problem) -> None:
    plan = solve(problem, "greedy_by_size")
    instance = megengine_record.parse(megengine_record.render(evolve(named(problem), offset=plan.offset)))
    assert shape(instance.problem) == shape(problem)
    assert instance.arena_bytes == plan.arena_bytes
    assert check(instance.problem, instance.offset, plan.arena_bytes) is None


def test_megengine_example_is_read_and_written_to_the_letter() -> None:
    instance = megengine_intervals.parse(INTERVALS.encode())
    assert shape(instance.problem) == ([0, 2, 4], [3, 5, 6], [20, 10, 4], [(1, 0, 6), (2, 1, 0)])
    assert megengine_intervals.render(instance).decode() == INTERVALS


@pytest.mark.parametrize(
    ("specs", "taken"),
    [
        ("2 0 0", [(2, 0, 0)]),
        ("1 0 0\n2 0 8", [(2, 0, 8)]),  # the larger one, wherever it stands
        ("2 0 8\n1 0 0", [(2, 0, 8)]),
        ("1 0 0\n1 3 2", [(1, 0, 0)]),  # the first that takes it
        ("1 0 0\n2 0 8\n1 3 2", [(1, 3, 2), (2, 0, 8)]),  # displaced, so free for another
        ("4 0 0", []),  # begins later than in the last tick of what it would overwrite
    ],
)
def test_megengine_interval_specs_that_count(specs: str, taken: list[tuple[int, int, int]]) -> None:
    lines = f"5\n0 3 16\n2 4 4\n2 4 8\n1 3 16\n3 5 4\n{len(specs.splitlines())}\n{specs}\n"
    assert shape(megengine_intervals.parse(lines.encode()).problem)[3] == taken


def test_a_list_without_specs_may_end_early() -> None:
    assert len(megengine_intervals.parse(b"1\n0 1 4").problem.src) == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: a number of lines is wanted"),
        ("x", "line 1, column count: 'x' is no integer from 0 on"),
        ("2\n0 1 4\n", "line 1: 2 lines are announced, 1 follow"),
        ("1\n0 1\n0\n", "line 2: 2 numbers where begin end size are wanted"),
        ("2\n0 1\n4 0 1 4\n0\n", "line 2: 2 numbers where"),
        ("1\n0 1 -4\n0\n", "line 2, column size: '-4' is no integer"),
        ("1\n0 1 1_0\n0\n", "line 2, column size: '1_0' is no integer"),
        ("1\n0 1 4611686018427387904\n0\n", "line 2, column size: 4611686018427387904 is not below"),
        (f"1\n0 1 {'9' * 5000}\n0\n", r"line 2, column size: '9{40}\.\.\.' is no integer"),
        ("1\n3 3 4\n0\n", "line 2, column end: 3 is not above begin 3"),
        ("1\n0 1 4\n1\n0 1 0\n", "line 4: there are no such two intervals, 0 to 0"),
        ("2\n0 2 4\n1 2 4\n1\n1 1 0\n", "line 5: there are no such two intervals"),
        ("2\n0 2 4\n1 2 4\n1\n1 0 1\n", "line 5, column offset: 4 bytes from 1 on do not lie within the 4 bytes"),
        ("1\n0 1 4\n0\n0 0 0\n", "line 4: the file should end here"),
    ],
)
def test_a_bad_interval_list_is_refused_by_line(text: str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        megengine_intervals.parse(text.encode())


RECORD: dict[str, Any] = {
    "opr": {},
    "chunk": {
        name: {"id": name, "type": kind}
        | dict(zip(megengine_record._NUMBERS, map(str, numbers), strict=True))
        | {"overwrite_dest_id": root}
        for name, kind, numbers, root in (
            ("7", "static_mem", (0, 3, 0, 20), "-1"),
            ("8", "static_mem", (4, 6, 6, 10), "7"),  # the root, as MegEngine writes it, not 9
            ("9", "static_mem", (2, 5, 6, 16), "7"),
            ("10", "weight_mem", (0, 6, 20, 99), "-1"),
        )
    },
}


def test_overwrites_of_a_record_are_found_from_the_root_of_their_chain() -> None:
    instance = megengine_record.parse(json.dumps(RECORD).encode())
    assert instance.ids == ("7", "8", "9") and instance.offset.tolist() == [0, 6, 6]
    assert shape(instance.problem)[3] == [(1, 2, 0), (2, 0, 6)]


def test_a_record_equals_that_of_megengine() -> None:
    record = json.loads(megengine_record.render(megengine_record.parse(json.dumps(RECORD).encode())))
    assert record["chunk"] == {name: chunk for name, chunk in RECORD["chunk"].items() if name != "10"}
    assert record["opr"]["5"] == {"id": "5", "name": "opr5"} and len(record["opr"]) == 6


def change(name: str, field: str, value: object) -> Callable[[dict[str, Any]], object]:
    return lambda record: record["chunk"][name].update({field: value})


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (change("7", "time_end", "0"), "chunk '7', field time_end: 0 is not above time_begin 0"),
        (change("7", "time_begin", None), "chunk '7', field time_begin: 'None' is no integer"),
        (change("7", "time_begin", "-1"), "chunk '7', field time_begin: '-1' is no integer"),
        (change("7", "logic_addr_end", "9" * 5000), r"field logic_addr_end: '9{40}\.\.\.' is no integer"),
        (change("9", "logic_addr_end", 5), "chunk '9', field logic_addr_end: 5 is below logic_addr_begin 6"),
        (change("9", "overwrite_dest_id", "10"), "chunk '9': overwrites '10', which is no static_mem"),
        (change("7", "overwrite_dest_id", "9"), "chunk '7': overwrites another and is the root of a chain"),
        (lambda record: record.pop("chunk"), "has no object 'chunk'"),
        (lambda record: record.update(chunk={"7": 1}), "has no object 'chunk'"),
    ],
)
def test_a_bad_record_is_refused_by_chunk_and_field(edit: Callable[[dict[str, Any]], object], message: str) -> None:
    record = json.loads(json.dumps(RECORD))
    edit(record)
    with pytest.raises(FormatError, match=message):
        megengine_record.parse(json.dumps(record).encode())


def test_overwrites_out_of_time_are_named_by_id() -> None:
    record = json.loads(json.dumps(RECORD))
    record["chunk"]["9"]["time_begin"] = "1"
    with pytest.raises(ProblemError, match="buffer '9' cannot overwrite buffer '7'"):
        megengine_record.parse(json.dumps(record).encode())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b'{"chunk":\n 3,', "line 2, column 4"),
        (b"[" * 100_000, "no JSON"),
        (b'{"chunk": ' + b"9" * 5000 + b"}", "no JSON"),
        (b"[]", "no object 'chunk'"),
        (b"\xff", "no UTF-8 text"),
    ],
)
def test_a_megengine_record_that_is_no_json_is_refused(text: bytes, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        megengine_record.parse(text)


def test_megengine_refuses_problems_it_cannot_hold() -> None:
    aligned = Problem([0], [1], [4], [64], [-1])
    with pytest.raises(UnsupportedProblemError, match="interval list cannot hold alignments"):
        megengine_intervals.render(named(aligned))
    with pytest.raises(UnsupportedProblemError, match="buffer 'b0' has none"):
        megengine_record.render(named(aligned))
    holes = evolve(named(evolve(aligned, conflicts=Conflicts())), gaps=Gaps([0], [0], [1]), offset=[0])
    for render in (megengine_intervals.render, megengine_record.render):
        with pytest.raises(UnsupportedProblemError, match="gaps"):
            render(holes)
    late = evolve(named(Problem([0], [10**6 + 1], [4], [1], [-1])), offset=[0])
    with pytest.raises(UnsupportedProblemError, match="1000001 are more than 1000000"):
        megengine_record.render(late)
    with pytest.raises(FormatError, match="'-1' means no buffer"):
        megengine_record.render(Instance(aligned, ("-1",), [0]))
