"""Arrays that are written to files."""

import errno
import io
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from allocator.io.files import check_folder, write_whole
from engine.system.file_bytes import reserve_bytes
from engine.text.errors import OptionError
from ops.tensor.spec import NARROW, Array, TensorSpec


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


def check_stream_path(path: Path, outputs: int) -> None:
    """Raises OptionError for a name that is neither one of a .npy file for one output nor one of a folder."""
    if path.suffix.lower() == ".npy":
        if outputs != 1:
            raise OptionError(f"{path}: {outputs} outputs go to a folder, not to one .npy file")
    elif path.is_file() or (path.suffix and not path.exists()):
        raise OptionError(f"{path}: stripes go to a .npy file, or to a folder, whose name has no suffix")
    check_folder(path)


@contextmanager
def open_arrays(path: Path, specs: Mapping[str, TensorSpec]) -> Iterator[dict[str, Array]]:
    """Opens arrays in files for writing, by name: a .npy file, or one for each array in a folder.

    They stand beside `path`, and take its place at the end; in a folder that is there already, files of the same names
    are replaced. Where anything is raised, nothing is left behind. Raises OSError, also where the disk has no room.
    """
    is_file = path.suffix.lower() == ".npy"
    with TemporaryDirectory(dir=path if path.is_dir() else path.parent, prefix=".outputs-") as stage:
        folder = Path(stage) / "outputs"
        folder.mkdir()
        names = _file_names(specs, ".npy")
        try:
            yield {name: _mapped(folder / names[name], spec) for name, spec in specs.items()}
            if is_file:
                (folder / names[next(iter(specs))]).replace(path)
            else:
                _move(folder, path)
        except OSError as error:
            raise type(error)(error.errno, error.strerror or "cannot be written", str(path)) from error


def _mapped(file: Path, spec: TensorSpec) -> Array:
    """Returns an array in a new .npy file, whose bytes the disk has where the system can reserve them."""
    stored = _stored(spec.dtype)
    header = {"descr": np.lib.format.dtype_to_descr(stored), "fortran_order": False, "shape": spec.shape}
    with file.open("wb") as out:
        np.lib.format.write_array_header_2_0(out, header)
        start = out.tell()
        reserve_bytes(out.fileno(), start + spec.nbytes)
    if not spec.nbytes:
        return np.empty(spec.shape, spec.dtype)
    return np.memmap(file, stored, "r+", start, spec.shape).view(spec.dtype)


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
    names = _file_names(arrays, suffix)
    return {names[name]: array.view(_stored(array.dtype)) for name, array in arrays.items()}


def _file_names(names: Iterable[str], suffix: str) -> dict[str, str]:
    """Returns the names of files, by name of an array."""
    files = dict[str, str]()
    for name in names:
        stem = "".join(c if c.isalnum() or c in "._-" else "_" for c in name).lstrip(".") or "_"
        while stem + suffix in files.values():
            stem += "_"
        files[name] = stem + suffix
    return files


def _stored(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Returns the type of elements in a file: raw bytes for one that numpy's files do not know."""
    return np.dtype(f"V{dtype.itemsize}") if dtype in NARROW else dtype


def _move(folder: Path, target: Path) -> None:
    if not target.exists():
        folder.rename(target)
        return
    for file in folder.iterdir():
        file.replace(target / file.name)
