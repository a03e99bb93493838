"""Compiled code on disk that is damaged, or cannot be written, costs time: same results, and one line in the log."""

import errno
import logging
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory

import numba
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ops.native import cache
from ops.native.door import compiled_once

Damage = Callable[[Path], object]


def twice(number: int) -> int:
    return 2 * number


def thrice(number: int) -> int:
    return 3 * number


def _compiled(function: Callable[[int], int]) -> tuple[int, bool]:
    """Returns what the compiled function makes of 7, and whether its code was on disk."""
    compiled = compiled_once(function, "int64(int64)")
    return compiled(7), bool(compiled.stats.cache_hits)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "root"))
    monkeypatch.setattr(cache, "_TOLD", set())
    return tmp_path / "root"


def _file(folder: Path, function: Callable[[int], int]) -> Path:
    (file,) = folder.rglob(f"{function.__name__}-*.code")
    return file


def _places(count: int) -> list[float]:
    """Returns shares of a file, different ones."""
    return [number / 10_000 for number in random.Random(count).sample(range(10_000), count)]


def _flipped(bit: int, content: bytes) -> bytes:
    return content[: bit // 8] + bytes([content[bit // 8] ^ 1 << bit % 8]) + content[bit // 8 + 1 :]


def _flip(at: float) -> Damage:
    return lambda path: path.write_bytes(_flipped(int(at * 8 * path.stat().st_size), path.read_bytes()))


def _cut(at: float) -> Damage:
    return lambda path: path.write_bytes(path.read_bytes()[: int(at * path.stat().st_size)])


def _overwritten(content: bytes) -> Damage:
    return lambda path: path.write_bytes(content)


def _inside(change: Callable[[bytes], bytes]) -> Damage:
    """Changes what numba wrote, with a digest that fits."""
    return lambda path: cache.write_files(path, {name: change(c) for name, c in cache.read_files(path).items()})


def _instead(make: Callable[[Path], object]) -> Damage:
    def damage(path: Path) -> None:
        path.unlink()
        make(path)

    return damage


def _swapped(path: Path) -> None:
    shutil.copy(_file(path.parent, thrice), path)


def _of_another_state(path: Path) -> None:
    other = path.parent.with_name("another")
    shutil.copytree(path.parent, other)
    cache.write_files(other / path.name, {name: b"" for name in cache.read_files(path)})
    shutil.copy(other / path.name, path)


def _file_for_folder(path: Path) -> None:
    shutil.rmtree(path.parent)
    path.parent.write_text("no folder")


def _sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 30)


KINDS: dict[str, Damage] = {
    **{f"bit flipped at {at}": _flip(at) for at in _places(80)},
    **{f"cut at {at}": _cut(at) for at in _places(60)},
    **{f"{n} bytes of {byte}": _overwritten(bytes([byte]) * n) for n in (1, 16, 17, 5000) for byte in (0, 10, 91, 255)},
    **{f"numba's files cut to {n}": _inside(itemgetter(slice(n))) for n in (0, 1, 9, 20, 40, 80, 400)},
    **{f"numba's files with bit {n} flipped": _inside(partial(_flipped, n)) for n in range(0, 240, 7)},
    "another version of numba": _inside(lambda c: c.replace(numba.__version__.encode(), b"0.12.3")),
    "another function's": _swapped,
    "another state's": _of_another_state,
    "gone": Path.unlink,
    "a folder": _instead(Path.mkdir),
    "a folder with files": _instead(lambda path: shutil.copytree(path.parent, path)),
    "a link to nothing": _instead(lambda path: path.symlink_to("nothing")),
    "a link to itself": _instead(lambda path: path.symlink_to(path)),
    "a link to zeros": _instead(lambda path: path.symlink_to("/dev/zero")),
    "a pipe": _instead(os.mkfifo),
    "huge": _sparse,
    "unreadable": lambda path: path.chmod(0),
    "read-only": lambda path: path.chmod(0o400),
    "in a read-only folder": lambda path: path.parent.chmod(0o500),
    "without its folder": lambda path: shutil.rmtree(path.parent),
    "with a file for a folder": _file_for_folder,
    "with a byte more": lambda path: path.write_bytes(path.read_bytes() + b"\0"),
    "twice": lambda path: path.write_bytes(path.read_bytes() * 2),
}  # fmt: skip
FEW = [*random.Random(3).sample([*KINDS], 8), "a folder", "a pipe", "a link to zeros", "with a file for a folder"]


def _check(folder: Path, kind: str, caplog: pytest.LogCaptureFixture) -> None:
    assert _compiled(twice)[0] == 14 and _compiled(thrice)[0] == 21
    KINDS[kind](_file(folder, twice))
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            assert _compiled(twice)[0] == 14 and _compiled(thrice)[0] == 21
    assert len(caplog.records) <= 1


@pytest.mark.parametrize("kind", FEW)
def test_a_damaged_cache_of_operators_only_costs_time(
    kind: str, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    _check(folder, kind, caplog)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_two_hundred_kinds_of_damage_only_cost_time(kind: str, folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert len(KINDS) >= 200
    _check(folder, kind, caplog)


def test_compiled_code_is_loaded_from_disk_and_mended_once(folder: Path) -> None:
    assert _compiled(twice) == (14, False)
    assert _compiled(twice) == (14, True)
    _flip(0.5)(_file(folder, twice))
    assert _compiled(twice) == (14, False)
    assert _compiled(twice) == (14, True)


@given(st.dictionaries(st.text(max_size=9), st.binary(max_size=99), max_size=4), st.data())
def test_no_bit_of_stored_files_can_change(files: dict[str, bytes], data: st.DataObject) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "one"
        cache.write_files(path, files)
        assert cache.read_files(path) == files
        content = bytearray(path.read_bytes())
        content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
        path.write_bytes(content)
        assert cache.read_files(path) == {}


def _full(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.fixture(params=["numba", "the cache", "temporary files"])
def _full_disk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    if request.param == "numba":
        monkeypatch.setattr(import_module("numba.core.caching").IndexDataCacheFile, "save", _full)
    else:
        name = "write_files" if request.param == "the cache" else "TemporaryDirectory"
        monkeypatch.setattr(cache, name, _full)
    yield


@pytest.mark.usefixtures("_full_disk")
def test_a_full_disk_only_costs_time(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "arenaplan"):
        for _ in range(2):
            assert _compiled(twice) == (14, False)
    (record,) = caplog.records
    assert "No space left on device" in record.getMessage() and "NUMBA_CACHE_DIR" in record.getMessage()
    assert not list(folder.rglob("*.code"))


def test_what_is_wrong_in_the_code_is_raised(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(numba.TypingError):
        compiled_once(lambda x: x.nothing, "int64(int64)")
    assert not caplog.records and not list(folder.rglob("*.code"))


_WRITER = """
import numpy as np, sys
from ops.index.jit_top import top_k
for kind in sys.argv[1:]:
    dtype, y, at = np.dtype(kind), np.zeros((1, 2), kind), np.zeros((1, 2), np.int64)
    top_k(dtype)(np.arange(9).astype(kind).reshape(1, 9), y, at, True)
    assert sorted(y[0].tolist()) == [7, 8], y
"""


def test_processes_may_write_the_cache_at_once(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    kinds = ["int8", "float32"], ["float32", "int8"]
    command = [sys.executable, "-W", "error", "-c", _WRITER]
    for _ in range(2):
        writers = [subprocess.Popen([*command, *k], env=environment, stderr=subprocess.PIPE, text=True) for k in kinds]
        assert [(w.communicate(timeout=120)[1], w.returncode) for w in writers] == [("", 0)] * 2
    files = list(tmp_path.rglob("*.code"))
    assert len(files) == 2 and all(cache.read_files(file) for file in files)
