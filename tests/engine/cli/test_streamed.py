"""`arenaplan run --stream`: images from files to files, stripe after stripe."""

import errno
import os
from pathlib import Path

import numpy as np
import onnx
import pytest

from engine.cli.main import ERROR, NO_FIT, USAGE, main
from tests.helpers.cli.cli_checks import Capture, data, error
from tests.helpers.onnx.convolutions import convolutions
from tests.helpers.onnx.small_models import model, node, value

_SIZE = 24


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    """Returns the beginning of a command line: a network, and its image in a file."""
    np.save(tmp_path / "x.npy", np.random.default_rng(0).standard_normal((1, 8, _SIZE, _SIZE), np.float32))
    return ["run", convolutions(tmp_path, size=_SIZE, batch=1), "--input", f"x={tmp_path / 'x.npy'}"]


def test_stripes_in_a_file_have_every_bit_of_whole_images(words: list[str], tmp_path: Path, capsys: Capture) -> None:
    assert main([*words, "-o", str(tmp_path / "whole")]) == 0
    wanted = np.load(tmp_path / "whole" / "y.npy")
    assert main([*words, "--stream", "7", "-q", "-o", str(tmp_path / "y.npy")]) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("4 stripes of 7 rows, ") and shown.err == ""
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), wanted)
    printed = data([*words, "--stream", "auto", "--budget", "64 KiB", "-o", str(tmp_path / "stripes")], capsys)
    np.testing.assert_array_equal(np.load(tmp_path / "stripes" / "y.npy"), wanted)
    assert printed["kept_bytes"] < printed["arena_bytes"] <= 64 << 10 < printed["whole_bytes"]
    assert printed["stripes"] == -(-_SIZE // printed["rows"]) and printed["rows_read"]["x"] > _SIZE
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "convolutions.onnx",
        "stripes",
        "whole",
        "x.npy",
        "y.npy",
    ]


MISTAKES = (
    ("--stream 4", USAGE, "give --output, a folder or a .npy file"),
    ("--stream 0 -o F/y.npy", USAGE, "'0' is neither a number of rows nor auto"),
    ("--stream all -o F/y.npy", USAGE, "'all' is neither a number of rows nor auto"),
    ("--stream auto -o F/y.npy", USAGE, "auto with --budget"),
    ("--stream 4 --budget 1MiB -o F/y.npy", USAGE, "either the rows of a stripe, or auto with --budget"),
    ("--stream auto --budget 1KiB -o F/y.npy", NO_FIT, "even stripes of 1 row of 'g' need "),
    ("--stream 4 --mode dynamic -o F/y.npy", USAGE, "leave out --mode"),
    ("--stream 4 --weights random -o F/y.npy", USAGE, "with the weights of the file"),
    ("--stream 4 -o F/y.npz", USAGE, "stripes go to a .npy file, or to a folder"),
    ("--stream 4 -o F/none/y.npy", ERROR, "there is no such folder"),
    ("--stream 4 --input x=F/none.npy -o F/y.npy", ERROR, "none.npy: No such file"),
    ("--stream 4 --input x=F/cut.npy -o F/y.npy", ERROR, "is no .npy file of numbers"),
    ("--stream 4 --input x=F/small.npy -o F/y.npy", ERROR, "(1, 8, 9, 24)"),
    ("--stream 4 --input x=F/*.npy -o F/y", USAGE, "leave out --runs and --stream"),
    ("--stream 4 --shape x=2,8,24,24 -o F/y.npy", ERROR, "2"),
)
"""Options behind a command line without mistakes, exit code and a part of the line; F is a folder."""


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake[0])
def test_what_cannot_be_streamed_is_one_line_and_leaves_no_file(
    mistake: tuple[str, int, str], words: list[str], tmp_path: Path, capsys: Capture
) -> None:
    more, code, wanted = mistake
    (tmp_path / "cut.npy").write_bytes((tmp_path / "x.npy").read_bytes()[:-8])
    np.save(tmp_path / "small.npy", np.zeros((1, 8, 9, 24), np.float32))
    (tmp_path / "y.npy").write_bytes(b"before")
    before = sorted(tmp_path.iterdir())
    line = error([*words, *more.replace("F/", f"{tmp_path}/").split()], code, capsys)
    assert wanted in line and "Errno" not in line
    assert sorted(tmp_path.iterdir()) == before and (tmp_path / "y.npy").read_bytes() == b"before"


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="nothing is reserved here")
@pytest.mark.parametrize("number", [errno.EOPNOTSUPP, errno.ENOSPC])
def test_a_full_disk_leaves_no_file_and_a_disk_that_reserves_nothing_is_written_as_others(
    number: int, words: list[str], tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: int) -> None:
        raise OSError(number, os.strerror(number))

    assert main([*words, "--stream", "9", "-o", str(tmp_path / "wanted.npy")]) == 0
    capsys.readouterr()
    monkeypatch.setattr(os, "posix_fallocate", refuse)
    before = sorted(tmp_path.iterdir())
    words += ["--stream", "9", "-o", str(tmp_path / "y.npy")]
    if number == errno.ENOSPC:
        assert error(words, ERROR, capsys).endswith("y.npy: No space left on device")
        assert sorted(tmp_path.iterdir()) == before
    else:
        assert main(words) == 0
        np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), np.load(tmp_path / "wanted.npy"))


def test_an_operator_that_needs_whole_images_and_an_input_without_a_file_are_named(
    tmp_path: Path, capsys: Capture
) -> None:
    nodes = [node("ReduceMean", ("x",), ("y",), axes=[2], keepdims=1)]
    mean = str(tmp_path / "mean.onnx")
    onnx.save(model(nodes, [value("x", (1, 8, 12, 12))], opset=13), mean)
    words = ["run", mean, "--stream", "1", "-o", str(tmp_path / "y.npy")]
    assert "cannot be" in error(words, ERROR, capsys)
    words[1] = convolutions(tmp_path, size=8, batch=1)
    assert "'x'" in error(words, ERROR, capsys)
    assert not (tmp_path / "y.npy").exists()
