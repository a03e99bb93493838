import errno
from pathlib import Path

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from allocator.errors import FormatError, UnsupportedProblemError
from allocator.io.files import write_whole
from allocator.io.minimalloc import parse, read, render, write
from allocator.problem import Problem
from tests.strategies import problems

EXAMPLE = "id,lower,upper,size,alignment,offset\nx,0,2,4096,64,0\nconv1,1,3,8192,64,4096\n"
COLUMNS = ("begin", "end", "size", "alignment", "pinned")


def without_overwrites(problem: Problem) -> Problem:
    return evolve(problem, src=(), dest=(), overwrite_offset=())


@given(problems().map(without_overwrites), st.booleans())
def test_what_is_written_is_read_back(problem: Problem, with_offsets: bool) -> None:
    ids = tuple(f"b{i}" for i in range(len(problem)))
    fixed = evolve(problem, pinned=problem.alignment * 3) if with_offsets else problem
    text = render(fixed, ids, fixed.pinned if with_offsets else None)
    found, names = parse(text, pinned=True)
    assert names == ids
    for name in COLUMNS:
        assert np.array_equal(getattr(found, name), getattr(fixed, name))


def test_the_example_is_read_and_written_to_the_letter(tmp_path: Path) -> None:
    problem, ids = parse(EXAMPLE, pinned=True)
    assert problem.pinned.tolist() == [0, 4096]
    write(tmp_path / "out.csv", problem, ids, problem.pinned)
    assert (tmp_path / "out.csv").read_bytes() == EXAMPLE.encode()
    assert [p.name for p in tmp_path.iterdir()] == ["out.csv"]
    assert read(tmp_path / "out.csv")[1] == ("x", "conv1")


def test_offsets_are_left_out_unless_asked_for() -> None:
    assert parse(EXAMPLE)[0].pinned.tolist() == [-1, -1]


def test_the_alignment_column_is_written_only_where_one_is_needed() -> None:
    problem, ids = parse("id,lower,upper,size\na,0,1,4\n")
    assert render(problem, ids) == "id,lower,upper,size\na,0,1,4\n"


def test_aliases_in_any_order_and_an_inclusive_end_are_understood() -> None:
    problem, ids = parse("size,end,hint,gaps,start,buffer_id\r\n4,2,7,,1,a b\r\n5,1,-1,,1,c")
    assert ids == ("a b", "c")
    assert (problem.begin.tolist(), problem.end.tolist(), problem.size.tolist()) == ([1, 1], [3, 2], [4, 5])


def test_the_table_ends_at_the_first_empty_line() -> None:
    assert parse("id,lower,upper,size\na,0,1,4\n\nnot a row")[1] == ("a",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("id,lower,upper\n", "line 1: column 'size' is missing"),
        ("id,lower,size\n", "line 1: there must be either a column 'upper' or a column 'end'"),
        ("id,lower,upper,end,size\n", "line 1: there must be either"),
        ("id,lower,start,upper,size\n", "line 1: column 'lower' stands there twice"),
        ("id,lower,upper,size,color\n", "line 1: unknown column 'color'"),
        ("id,lower,upper,size\na,0,1\n", "line 2: 3 fields for 4 columns"),
        ("id,lower,upper,size\na,0,1,4\nb,0,x,4\n", "line 3, column upper: 'x' is no integer"),
        ("id,lower,upper,size\na,3,3,4\n", "line 2, column upper: 3 is not in"),
        ("id,lower,end,size\na,3,2,4\n", "line 2, column end: 2 is not in"),
        ("id,lower,upper,size\na,-1,3,4\n", "line 2, column lower: -1 is not in"),
        ("id,lower,upper,size\na,0,3,-4\n", "line 2, column size: -4 is not in"),
        (f"id,lower,upper,size\na,0,3,{2**63}\n", "line 2, column size: 9223372036854775808 is not in"),
        ("id,lower,upper,size,alignment\na,0,3,4,0\n", "line 2, column alignment: 0 is not in"),
        ("id,lower,upper,size,offset\na,0,3,4,-2\n", "line 2, column offset: -2 is not in"),
        ("id,lower,upper,size,alignment,offset\na,0,3,4,4,2\n", "line 2, column offset: 2 is no multiple of alignment"),
        ("id,lower,upper,size,gaps\na,0,9,4,2-3\n", "line 2, column gaps: gaps are not supported: '2-3'"),
    ],
)
def test_a_bad_file_is_refused_by_line_and_column(text: str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        parse(text, pinned=True)


@pytest.mark.parametrize("ids", [("a,b",), ("a\nb",), ("",), (" a",), ("a", "b")])
def test_ids_that_the_format_cannot_hold_are_refused(ids: tuple[str, ...]) -> None:
    with pytest.raises(FormatError, match="id"):
        render(Problem([0], [1], [4], [1], [-1]), ids)


def test_overwrites_cannot_be_written() -> None:
    problem = Problem([0, 1], [2, 3], [8, 8], [1, 1], [-1, -1], [1], [0], [0])
    with pytest.raises(UnsupportedProblemError, match="cannot hold 1 overwrites"):
        render(problem, ("a", "b"))


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes(b"id,\xff")
    with pytest.raises(FormatError, match="no UTF-8 text"):
        read(tmp_path / "x.csv")


def _disk_is_full(*_: Path) -> None:
    raise OSError(errno.ENOSPC, "the disk is full")


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x.csv").write_text("old")
    with monkeypatch.context() as patch, pytest.raises(OSError, match="full"):
        patch.setattr(Path, "replace", _disk_is_full)
        write_whole(tmp_path / "x.csv", b"new")
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("x.csv", "old")]
