"""Which format a file is read and written in, and plans that refer to the buffers of another file."""

from pathlib import Path

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from allocator.errors import AllocatorError, FormatError, UnsupportedProblemError
from allocator.io import formats, usage_records
from allocator.io.formats import READERS, WRITERS
from allocator.io.instance import Instance
from allocator.problem import FREE, Problem
from allocator.solvers import solve
from tests.helpers.allocator.file_instances import named, plain
from tests.helpers.allocator.strategies import problems

RECORDS = "id,first_op,last_op,size_bytes\n0,0,1,32\n1,1,4,28\n"
PLACED = Instance(Problem([0, 1], [2, 3], [10, 20], [1, 1], [-1, -1]), ("a", "b"), [20, 0])
PIECES = [b"-1", b"9" * 20, b",", b"\n", b"0", b"1", b"2", b" ", b"\0" * 8, b"null", b"{", b"gaps", b"end", b"\xff"]
"""What breaks files."""
SUFFIXES = {"x.csv": "minimalloc", "x.TXT": "megengine", "x.megengine.json": "megengine-json", "x.plc": "idealloc-plc"}


@given(problems().map(plain))
@settings(max_examples=20)
def test_usage_records_are_read_back(problem: Problem) -> None:
    instance = usage_records.parse(usage_records.render(named(problem)))
    assert instance.ids == named(problem).ids
    assert [r for r in instance.problem.rows()] == [r for r in problem.rows()]


def test_usage_records_are_inclusive_and_known_by_their_header(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text(RECORDS)
    instance = formats.read(tmp_path / "r.csv")
    assert (instance.problem.begin.tolist(), instance.problem.end.tolist()) == ([0, 1], [2, 5])
    formats.write(tmp_path / "s.csv", instance, "usage-records")
    assert (tmp_path / "s.csv").read_text() == RECORDS


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,first_op,last_op\n", "line 1: column 'size_bytes' is missing"),
        ("id,first_op,last_op,size\n0,2,1,4\n", r"line 2, column last_op: 1 is not in \[2, "),
    ],
)
def test_bad_usage_records_are_refused_by_file_line_and_column(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text(text)
    with pytest.raises(FormatError, match=f"r.csv: {message}"):
        formats.read(tmp_path / "r.csv")


@pytest.mark.parametrize(("file", "name"), SUFFIXES.items())
def test_a_file_name_suggests_its_format(file: str, name: str, tmp_path: Path) -> None:
    formats.write(tmp_path / file, PLACED)
    assert (tmp_path / file).read_bytes() == WRITERS[name](PLACED)
    assert formats.read(tmp_path / file).ids == formats.read(tmp_path / file, name).ids


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_can_be_asked_for_by_name(name: str, tmp_path: Path) -> None:
    formats.write(tmp_path / "plan", PLACED, name)
    if name in READERS:
        assert len(formats.read(tmp_path / "plan", name).problem) == 2
    else:
        with pytest.raises(FormatError, match=f"plan: {name} is a format without lifetimes"):
            formats.read(tmp_path / "plan", name)


@pytest.mark.parametrize("name", ["minimalloc", "megengine-json", "idealloc-plc", "tflm"])
@given(problem=problems(max_chunks=6).map(plain))
@settings(max_examples=12)
def test_plans_in_every_format_refer_to_the_same_buffers(
    name: str, problem: Problem, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("plans") / "plan"
    instance = evolve(named(problem), offset=solve(problem, "naive").offset)
    formats.write(path, instance, name)
    assert formats.read_offsets(path, named(problem), name).tolist() == instance.offset.tolist()


def test_a_plan_in_another_order_is_matched_by_id(tmp_path: Path) -> None:
    turned = evolve(PLACED, ids=("b", "a"), offset=[0, 20])
    formats.write(tmp_path / "p.csv", turned)
    assert formats.read_offsets(tmp_path / "p.csv", PLACED).tolist() == [20, 0]


def test_buffers_that_a_plan_leaves_out_lie_nowhere_and_strangers_are_refused(tmp_path: Path) -> None:
    part = Instance(Problem([0], [2], [10], [1], [-1]), ("b",), [4])
    formats.write(tmp_path / "p.csv", part)
    assert formats.read_offsets(tmp_path / "p.csv", PLACED).tolist() == [FREE, 4]
    formats.write(tmp_path / "q.csv", evolve(part, ids=("c",)))
    with pytest.raises(FormatError, match=r"q\.csv: places a buffer 'c' that is not in the problem"):
        formats.read_offsets(tmp_path / "q.csv", PLACED)


def test_problems_a_format_cannot_hold_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    nowhere = evolve(PLACED, offset=[FREE, FREE])
    with pytest.raises(UnsupportedProblemError, match=r"p\.h: a C header holds offsets, but buffer 'a' has none"):
        formats.write(tmp_path / "p.h", nowhere)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", READERS)
@given(data=st.data())
@settings(max_examples=30)
def test_files_of_any_bytes_are_read_or_refused(name: str, data: st.DataObject) -> None:
    content = bytearray(WRITERS[name](PLACED))
    for _ in range(data.draw(st.integers(1, 4))):
        begin = data.draw(st.integers(0, len(content)))
        piece = data.draw(st.one_of(st.binary(max_size=9), st.sampled_from(PIECES)))
        content[begin : begin + data.draw(st.integers(0, 9))] = piece
    try:
        result = READERS[name](bytes(content))
    except AllocatorError as error:
        assert str(error)
        return
    assert len(result.ids) == len(result.offset) == len(result.problem)
