"""Files that commands read and write, and how outputs are compared."""

import os
from pathlib import Path

import numpy as np
import pytest

from allocator.io.files import write_whole
from engine.cli.options.files import write_arrays
from engine.cli.oracle import compare_with_oracle
from engine.system.arrays import largest_difference, read_array
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


def test_outputs_of_another_shape_do_not_agree_with_those_of_an_oracle() -> None:
    ours, theirs = {"x": np.ones(3), "y": np.ones((2, 3))}, {"x": np.ones(3), "y": np.ones((1, 3))}
    comparison = compare_with_oracle(ours, theirs, "onnxruntime", 1.0)
    assert not comparison.outputs_agree
    sentence = "output 'y' is float64[2,3] here and float64[1,3] there"
    assert sentence in comparison.text() and comparison.to_json()["oracle_mismatch"] == sentence
    assert not compare_with_oracle(ours, ours, "onnxruntime", 1.0).to_json()["oracle_mismatch"]


@pytest.mark.parametrize(("change", "agrees"), [(0.0, True), (0.5e-3, True), (2e-3, False), (np.nan, False)])
def test_outputs_agree_with_those_of_an_oracle_within_the_tolerance(change: float, agrees: bool) -> None:
    theirs = np.array([1.0, 2.0, 0.0])
    ours = theirs + np.array([0, 0, 2 * change])
    assert compare_with_oracle({"y": ours}, {"y": theirs}, "onnxruntime", 1e-3).outputs_agree == agrees
