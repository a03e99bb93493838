"""Compiled code is compiled anew where a file that it depends on has changed, and only then."""

import os
import warnings
from collections.abc import Callable
from pathlib import Path

import numba
import pytest

from ops.native import cache, door

FILES = {
    "ops.a_code": "import numba\nfrom ops.words import A, B\nfrom ops import (emitter, other)\n",
    "ops.words": "A = B = 1\n",
    "ops.emitter": "from ops.deep.tiles import tile\n",
    "ops.deep.tiles": "from ops.words import A\n",
    "ops.other": "",
    "ops.stranger": "",
}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    paths = {}
    for name, text in FILES.items():
        paths[name] = tmp_path / f"{name}.py"
        paths[name].write_text(text)
    monkeypatch.setattr(cache, "_file", paths.get)
    return paths


@pytest.mark.usefixtures("files")
def test_sources_are_all_that_is_imported() -> None:
    names = {path.stem for path in cache.sources("ops.a_code")}
    assert names == set(FILES) - {"ops.stranger"}


def test_every_file_of_a_module_decides_its_digest(files: dict[str, Path]) -> None:
    before = cache.digest("ops.emitter")
    assert cache.digest("ops.emitter") == before
    files["ops.stranger"].write_text("changed")
    assert cache.digest("ops.emitter") == before
    files["ops.words"].write_text("A = B = 2222\n")
    assert cache.digest("ops.emitter") != before


def test_folders_of_the_sources_that_were_used_last_stay(files: dict[str, Path], tmp_path: Path) -> None:
    root = tmp_path / "root"
    strange = cache._folder("ops.other", root)
    folders: list[Path] = []
    for i in range(cache._MOST + 3):
        files["ops.deep.tiles"].write_text("from ops.words import A, B\n" * i)
        folders.append(cache._folder("ops.emitter", root))
        os.utime(folders[-1], (i, i))
        os.utime(folders[0], (i + 0.5, i + 0.5))  # another checkout goes on with it
    assert len(set(folders)) == len(folders)
    assert set(root.iterdir()) == {strange, folders[0], *folders[-cache._MOST + 1 :]}
    assert cache._folder("ops.emitter", root) == folders[-1]


def test_checkouts_of_one_state_have_one_folder(files: dict[str, Path], tmp_path: Path) -> None:
    before = cache.digest("ops.a_code")
    (tmp_path / "other").mkdir()
    for name, path in files.items():
        files[name] = path.rename(tmp_path / "other" / path.name)
    assert cache.digest("ops.a_code") == before


def test_real_modules_are_found() -> None:
    names = {path.name for path in cache.sources("ops.norm.lrn_code")}
    assert {"lrn_code.py", "args.py", "records.py", "memory.py"} <= names


def test_warnings_of_numba_are_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def doubtful(*_: object, **__: object) -> Callable[[object], str]:
        warnings.warn(numba.errors.NumbaIRAssumptionWarning("a variable is not in scope"), stacklevel=1)
        return lambda _: "compiled"

    monkeypatch.setattr(numba, "cfunc", doubtful)
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(door, "_ALIVE", [])
    assert door._compiled("ops.half.convert_code", "convert", "void(int64)", ()) == "compiled"
