import errno
from pathlib import Path

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from allocator.errors import FormatError, ProblemError, UnsupportedProblemError
from allocator.io.files import write_whole
from allocator.io.instance import Instance, pinned
from allocator.io.minimalloc import parse, read, render, write
from allocator.io.table import _BLOCK
from allocator.problem import Problem
from tests.helpers.allocator.file_instances import gapped

EXAMPLE = "id,lower,upper,size,alignment,offset\nx,0,2,4096,64,0\nconv1,1,3,8192,64,4096\n"
GAPS = "id,lower,upper,size,gaps\na,0,9,4,2-5 7-8\nb,2,5,4,\nc,4,7,4,\nd,7,8,4,\n"


def columns(instance: Instance) -> list[list[int]]:
    problem, gaps = instance.problem, instance.gaps
    numbers = (problem.begin, problem.end, problem.size, problem.alignment, instance.offset, instance.hint)
    return [c.tolist() for c in (*numbers, gaps.chunk, gaps.begin, gaps.end)]


@given(gapped(), st.data())
@settings(max_examples=30)
def test_minimalloc_csv_is_read_back(instance: Instance, data: st.DataObject) -> None:
    numbers = st.lists(st.integers(-1, 9), min_size=len(instance.ids), max_size=len(instance.ids))
    wanted = evolve(instance, offset=data.draw(numbers), hint=data.draw(numbers))
    reread = parse(render(wanted))
    assert reread.ids == wanted.ids
    assert columns(reread) == columns(wanted)


def test_minimalloc_example_is_read_and_written_to_the_letter(tmp_path: Path) -> None:
    instance = parse(EXAMPLE)
    assert instance.offset.tolist() == [0, 4096]
    write(tmp_path / "out.csv", instance.problem, instance.ids, instance.offset)
    assert (tmp_path / "out.csv").read_bytes() == EXAMPLE.encode()
    assert [p.name for p in tmp_path.iterdir()] == ["out.csv"]
    assert read(tmp_path / "out.csv")[1] == ("x", "conv1")


def test_offsets_are_no_fixed_positions_unless_asked_for(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(EXAMPLE)
    assert read(tmp_path / "x.csv")[0].pinned.tolist() == [-1, -1]
    assert read(tmp_path / "x.csv", pinned=True)[0].pinned.tolist() == [0, 4096]


def test_a_fixed_position_that_is_not_aligned_names_its_buffer() -> None:
    instance = parse("id,lower,upper,size,alignment,offset\na,0,3,4,4,2\n")
    with pytest.raises(ProblemError, match="buffer 'a': its pinned offset is not aligned"):
        pinned(instance)


def test_columns_are_written_only_where_one_row_needs_them() -> None:
    for text in (
        "id,lower,upper,size\na,0,1,4\n",
        "id,lower,upper,size,alignment,hint,gaps,offset\na,0,3,4,2,5,1-2,6\n",
    ):
        assert render(parse(text)) == text


def test_aliases_in_any_order_and_an_inclusive_end_are_understood() -> None:
    instance = parse("size,end,hint,gaps,start,buffer_id\r\n4,2,7,,1,a b\r\n5,1,-1,,1,c")
    problem = instance.problem
    assert instance.ids == ("a b", "c") and instance.hint.tolist() == [7, -1]
    assert (problem.begin.tolist(), problem.end.tolist(), problem.size.tolist()) == ([1, 1], [3, 2], [4, 5])
    assert problem.conflicts is None


def test_blanks_and_signs_around_numbers_are_understood() -> None:
    problem = parse("id, lower ,upper,size\n a , 0,+2 , 4\x1f\n").problem
    assert (problem.begin.tolist(), problem.end.tolist(), problem.size.tolist()) == ([0], [2], [4])


def test_the_table_ends_at_the_first_empty_line() -> None:
    assert parse("id,lower,upper,size\na,0,1,4\n\nnot a row").ids == ("a",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("\nid,lower,upper,size\n", "is empty"),
        ("id,lower,upper\n", "line 1: column 'size' is missing"),
        ("id,lower,size\n", "line 1: there must be either a column 'upper' or a column 'end'"),
        ("id,lower,upper,end,size\n", "line 1: there must be either"),
        ("id,lower,start,upper,size\n", "line 1: column 'lower' stands there twice"),
        ("id,lower,upper,size,color\n", "line 1: unknown column 'color'"),
        ("id,lower,upper,size\na,0,1\n", "line 2: 3 fields for 4 columns"),
        ("id,lower,upper,size\na,0,1,4\nb,0,1,4,\n", "line 3: 5 fields for 4 columns"),
        ("id,lower,upper,size\na,0,1,4\nb,0,x,4\n", "line 3, column upper: 'x' is no integer"),
        ("id,start,upper,size\na,,3,4\n", "line 2, column start: '' is no integer"),
        ("id,lower,upper,size\na,0,1_0,4\n", "line 2, column upper: '1_0' is no integer"),
        ("id,lower,upper,size\na,0,٣,4\n", "line 2, column upper: '٣' is no integer"),
        ("id,lower,upper,size\na,0,1.5,4\n", r"line 2, column upper: '1\.5' is no integer"),
        ("id,lower,upper,size\na,3,3,4\n", r"line 2, column upper: 3 is not in \[4, "),
        ("id,lower,end,size\na,3,2,4\n", r"line 2, column end: 2 is not in \[3, "),
        ("id,lower,upper,size\na,-1,3,4\n", r"line 2, column lower: -1 is not in \[0, "),
        ("id,lower,upper,size\na,0,3,-4\n", "line 2, column size: -4 is not in"),
        ("id,lower,upper,size\na,0,3,4\nb,0,3,4611686018427387904\n", "line 3, column size: 4611686018427387904 is"),
        (f"id,lower,upper,size\na,0,3,{2**63}\n", "line 2, column size: 9223372036854775808 is not in"),
        (f"id,lower,upper,size\na,0,3,{'9' * 9999}\n", r"line 2, column size: '9{40}\.\.\.' is too long a number"),
        ("id,lower,upper,size,alignment\na,0,3,4,0\n", "line 2, column alignment: 0 is not in"),
        ("id,lower,upper,size,offset\na,0,3,4,-2\n", "line 2, column offset: -2 is not in"),
        ("id,lower,upper,size\n,0,3,4\n", "id '' cannot stand in a CSV field"),
        ("id,lower,upper,size\na,0,3,4\na,0,3,4\n", "two buffers have the id 'a'"),
        ("id,lower,upper,size,gaps\na,2,9,4,x\n", "line 2, column gaps: 'x' is no gap"),
        ("id,lower,upper,size,gaps\na,2,9,4,1-3\n", r"line 2, column gaps: gap '1-3' is empty or leaves .* \[2, 9\)"),
        ("id,lower,upper,size,gaps\na,2,9,4,3-4 8-10\n", "line 2, column gaps: gap '8-10' is empty or leaves"),
        ("id,lower,upper,size,gaps\na,2,9,4,5-5\n", "line 2, column gaps: gap '5-5' is empty or leaves"),
    ],
)
def test_a_bad_minimalloc_csv_is_refused_by_line_and_column(text: str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        parse(text)


def test_more_bytes_than_offsets_can_address_are_refused() -> None:
    rows = "".join(f"b{i},0,3,{2**61}\n" for i in range(3))
    with pytest.raises(ProblemError, match="more bytes than"):
        parse(f"id,lower,upper,size\n{rows}")


def test_a_gap_leaves_its_bytes_to_others() -> None:
    conflicts = parse(GAPS).problem.conflicts
    assert conflicts is not None
    assert list(zip(conflicts.one.tolist(), conflicts.other.tolist(), strict=True)) == [(0, 2), (1, 2)]


def test_gaps_of_an_inclusive_file_end_later() -> None:
    instance = parse("id,lower,end,size,gaps\na,0,8,4,2-4\n")
    assert (instance.gaps.begin.tolist(), instance.gaps.end.tolist()) == ([2], [5])


def test_a_gap_with_a_window_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedProblemError, match="line 2, column gaps: gap '2-3@0:4' has a window"):
        parse("id,lower,upper,size,gaps\na,0,9,4,2-3@0:4\n")


@pytest.mark.parametrize("ids", [("a,b",), ("a\nb",), ("",), (" a",), ("a", "b")])
def test_ids_that_the_format_cannot_hold_are_refused(ids: tuple[str, ...], tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="id"):
        write(tmp_path / "x.csv", Problem([0], [1], [4], [1], [-1]), ids)


def test_overwrites_and_conflicts_without_gaps_cannot_be_written() -> None:
    overwriting = Problem([0, 1], [2, 3], [8, 8], [1, 1], [-1, -1], [1], [0], [0])
    with pytest.raises(UnsupportedProblemError, match="MiniMalloc's CSV cannot hold overwrites"):
        render(Instance(overwriting, ("a", "b")))
    with pytest.raises(UnsupportedProblemError, match="cannot hold gaps"):
        render(Instance(parse(GAPS).problem, "abcd"))


def test_a_minimalloc_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes(b"id,\xff")
    with pytest.raises(FormatError, match="no UTF-8 text"):
        read(tmp_path / "x.csv")


def test_many_minimalloc_rows_are_read_by_column() -> None:
    count = 20_000
    rows = "".join(f"b{i},{i},{i + 100},{i % 4096}\n" for i in range(count))
    problem = parse(f"id,lower,upper,size\n{rows}").problem
    assert np.array_equal(problem.end - problem.begin, np.full(count, 100))
    assert np.array_equal(problem.size, np.arange(count) % 4096)


def _disk_is_full(*_: Path) -> None:
    raise OSError(errno.ENOSPC, "the disk is full")


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x.csv").write_text("old")
    with monkeypatch.context() as patch, pytest.raises(OSError, match="full"):
        patch.setattr(Path, "replace", _disk_is_full)
        write_whole(tmp_path / "x.csv", b"new")
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("x.csv", "old")]


def test_tables_of_many_rows_are_read_and_written_in_parts() -> None:
    rows = 2 * _BLOCK + 5
    begin = np.arange(rows)
    problem = Problem(begin, begin + 2, 7 * begin, [1] * rows, [-1] * rows)
    text = render(Instance(problem, [f"b{k}" for k in range(rows)], offset=3 * begin))
    reread = parse(text)
    assert (reread.ids[0], reread.ids[_BLOCK], reread.ids[-1]) == ("b0", f"b{_BLOCK}", f"b{rows - 1}")
    assert np.array_equal(reread.problem.size, problem.size) and np.array_equal(reread.offset, 3 * begin)
    wrong = text.replace(f"b{rows - 2},{rows - 2},", f"b{rows - 2},x,")
    with pytest.raises(FormatError, match=f"line {rows}, column lower: 'x' is no integer"):
        parse(wrong)
