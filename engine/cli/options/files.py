"""Arrays that are written to files."""

import errno
import io
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from allocator.io.files import check_folder, write_whole
from engine.text.errors import OptionError
from ops.tensor.spec import NARROW, Array


def write_arrays(path: Path, arrays: Mapping[str, Array]) -> None:
    """Writes one .npz, or a folder with one .npy for each array; characters that no file name may have become _.

    A new folder appears whole; in a folder that is there already, files of the same names are replaced.
    """
    if path.suffix.lower() == ".npz":
        content = io.BytesIO()
        np.savez(content, allow_pickle=False, **_by_file_name(arrays, ""))
        write_whole(path, content.getvalue())
        return
    if path.suffix.lower() == ".npy" or (path.exists() and not path.is_dir()):
        raise NotADirectoryError(errno.ENOTDIR, "outputs go to a folder or to a .npz file", str(path))
    check_folder(path)
    try:
        _write_folder(path, arrays)
    except OSError as error:
        raise type(error)(error.errno, error.strerror or "cannot be written", str(path)) from error


def check_arrays_path(path: Path) -> None:
    """Raises OptionError for a name that is neither one of a .npz file nor one of a folder, which has no suffix."""
    if path.suffix.lower() not in ("", ".npz") and not path.exists():
        raise OptionError(f"{path}: outputs go to a .npz file, or to a folder, whose name has no suffix")


def _write_folder(path: Path, arrays: Mapping[str, Array]) -> None:
    with TemporaryDirectory(dir=path if path.is_dir() else path.parent, prefix=".outputs-") as stage:
        folder = Path(stage) / "outputs"
        folder.mkdir()
        for name, array in _by_file_name(arrays, ".npy").items():
            np.save(folder / name, array, allow_pickle=False)
        _move(folder, path)


def _by_file_name(arrays: Mapping[str, Array], suffix: str) -> dict[str, Array]:
    """Returns the arrays by their names in files; those of types that numpy's files do not know are raw bytes."""
    named: dict[str, Array] = {}
    for name, array in arrays.items():
        stem = "".join(c if c.isalnum() or c in "._-" else "_" for c in name).lstrip(".") or "_"
        while stem + suffix in named:
            stem += "_"
        named[stem + suffix] = array.view(f"V{array.itemsize}") if array.dtype in NARROW else array
    return named


def _move(folder: Path, target: Path) -> None:
    if not target.exists():
        folder.rename(target)
        return
    for file in folder.iterdir():
        file.replace(target / file.name)
