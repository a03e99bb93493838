"""Files that commands read and write, and how outputs are compared."""

import os
from pathlib import Path

import numpy as np
import pytest

from allocator.io.files import write_whole
from engine.cli.options.files import read_array, write_arrays
from engine.cli.oracle import largest_difference
from engine.text.errors import FeedError


def test_array_files_keep_odd_names_apart(tmp_path: Path) -> None:
    arrays = {"a/b": np.array([1]), "a:b": np.array([2]), "..": np.array([3])}
    write_arrays(tmp_path / "out", arrays)
    assert sorted(int(np.load(p)[0]) for p in (tmp_path / "out").iterdir()) == [1, 2, 3]
    assert all(p.parent == tmp_path / "out" for p in tmp_path.rglob("*.npy"))


def test_a_file_is_replaced_whole_and_a_pipe_is_written_to(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for content in (b"one", b"two"):
        write_whole(path, content)
        assert path.read_bytes() == content
    write_whole(Path(os.devnull), b"gone")
    assert not Path(os.devnull).is_file()


def test_array_files_with_pickled_objects_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(FeedError, match=r"x\.npy"):
        read_array(path)


def test_output_differences_are_relative_to_the_largest_value() -> None:
    a = np.array([1.0, np.nan, np.inf, 10.0])
    assert largest_difference({"y": a}, {"y": a.copy()}) == 0
    assert largest_difference({"y": a}, {"y": a + np.array([0, 0, 0, -2])}) == 2 / 8
    assert largest_difference({"y": a}, {"y": np.zeros(4)}) == np.inf
    assert largest_difference({"y": np.zeros(0)}, {"y": np.zeros(0)}) == 0
