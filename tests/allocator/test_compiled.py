"""Kernels in machine code: equal numbers, loaded when first used, and a cache on disk that may be missing."""

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from allocator import compiled
from allocator.kernels import heap
from allocator.kernels.positional_maximums import find_maximums

ENDS, SIZES = [3, 2, 3, 4], [9, 7, 5, 1]


def maximums(kernel: Any) -> list[int]:
    """Computes the maximums of units [0, 3), [1, 2), [2, 3) and [3, 4), the largest first: two live at once."""
    columns = [np.array(c, np.int64) for c in (range(4), ENDS, SIZES, [0] * 16, [0] * 16, [0] * 4)]
    count: int = kernel(*columns)
    kept: list[int] = columns[-1][:count].tolist()
    return kept


def _forget() -> None:
    """Starts as if no kernel had been used yet."""
    for memo in (compiled._twin, compiled._module):
        memo.cache_clear()
    compiled._ROOMS.clear()


@pytest.fixture
def forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Starts with an empty cache, whose folder it yields."""
    monkeypatch.setattr(import_module("numba").config, "CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(compiled, "_ROOMS", {})
    _forget()
    yield tmp_path
    _forget()


def test_a_kernel_is_compiled_once_and_kept_on_disk(forgotten: Path) -> None:
    assert not compiled.is_loaded() and not list(forgotten.rglob("*.code"))
    assert maximums(compiled.compiled(find_maximums)) == maximums(find_maximums) == [9, 7]
    assert compiled.is_loaded() and list(forgotten.rglob("*.code"))


def test_a_kernel_cache_folder_that_cannot_be_made_only_costs_time(
    forgotten: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_module("numba").config, "CACHE_DIR", "/proc/none")
    assert maximums(compiled.compiled(find_maximums)) == [9, 7]
    assert not list(forgotten.rglob("*"))


def test_a_missing_kernel_cache_folder_only_costs_time(forgotten: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module("numba.core.caching").CacheImpl, "_locator_classes", [])
    assert maximums(compiled.compiled(find_maximums)) == [9, 7]
    assert not list(forgotten.rglob("*.code"))


def _full(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("where", ["numba", "mkdtemp", "TemporaryDirectory"])
def test_a_full_disk_under_the_kernel_cache_only_costs_time(
    where: str, forgotten: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if where == "numba":
        monkeypatch.setattr(import_module("numba.core.caching").IndexDataCacheFile, "save", _full)
    else:
        monkeypatch.setattr(compiled, where, _full)
    assert maximums(compiled.compiled(find_maximums)) == [9, 7]
    assert not list(forgotten.rglob("*.code"))


def _damaged(at: float) -> Callable[[Path], object]:
    def flip(path: Path) -> None:
        content = bytearray(path.read_bytes())
        content[int(at * len(content))] ^= 4
        path.write_bytes(content)

    return flip


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:40])


def _emptied(path: Path) -> None:
    path.write_bytes(b"")


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _another_module(path: Path) -> None:
    path.write_bytes(compiled._digest(path.with_name("heap.code"), b"code") + b"code")


KINDS = [_cut, _emptied, _folder, _another_module, Path.unlink, *map(_damaged, (0, 0.01, 0.3, 0.7, 0.999))]


@pytest.mark.parametrize("damage", KINDS)
def test_a_damaged_kernel_cache_is_written_anew(forgotten: Path, damage: Callable[[Path], object]) -> None:
    maximums(compiled.compiled(find_maximums))
    (path,) = forgotten.rglob("positional_maximums.*.code")
    damage(path)
    for hits in (0, int(damage is not _folder)):
        _forget()
        assert maximums(compiled.compiled(find_maximums)) == [9, 7]
        assert len(compiled._module(find_maximums.__module__, True).find_maximums.stats.cache_hits) == hits


def test_processes_may_write_the_kernel_cache_at_once(forgotten: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(forgotten)}
    code = "import tests.allocator.test_compiled as t; assert t.freed_at_once() == t.freed_at_once(t.plain)"
    for _ in range(2):
        writers = [
            subprocess.Popen([sys.executable, "-c", code], env=environment, stderr=subprocess.PIPE) for _ in range(2)
        ]
        assert [w.communicate(timeout=120)[0] or w.returncode for w in writers] == [0, 0]
    assert all(compiled._kept(path) for path in forgotten.rglob("*.code"))


def plain(kernel: Any) -> Any:
    return kernel


def freed_at_once(way: Callable[[Any], Any] = compiled.compiled) -> list[int]:
    """Blocks of a heap in which one was used and freed; the treap of free blocks stands in a module of its own."""
    blocks = np.zeros(10 * heap.WIDTH, np.int64)
    state = np.zeros(heap.STATE, np.int64)
    way(heap.clear)(blocks)
    block = way(heap.insert)(blocks, 0, 0, 8, 0)
    way(heap.free)(blocks, state, block)
    numbers: list[int] = blocks.tolist()
    return numbers


@pytest.mark.usefixtures("forgotten")
def test_a_kernel_is_compiled_again_when_a_module_that_it_calls_has_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    def statistics() -> Any:
        _forget()
        freed_at_once()
        return compiled._module(heap.__name__, True).free.stats

    assert statistics().cache_misses
    assert statistics().cache_hits
    monkeypatch.setattr(compiled, "_sources_digest", lambda: "of other sources")
    assert statistics().cache_misses
    assert statistics().cache_hits


def test_each_file_of_kernels_counts_for_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(Path(heap.__file__).parent, tmp_path / "kernels")
    before = compiled._sources_digest.__wrapped__()
    monkeypatch.setattr(compiled, "__file__", str(tmp_path / "compiled.py"))
    assert compiled._sources_digest.__wrapped__() == before
    with (tmp_path / "kernels" / "treap.py").open("a") as file:
        file.write("# changed")
    assert compiled._sources_digest.__wrapped__() != before


def test_only_the_folders_of_kernels_that_were_used_last_are_kept(
    forgotten: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for age in range(compiled._MOST_FOLDERS + 2):
        monkeypatch.setattr(compiled, "_sources_digest", lambda digest=f"{age:016x}": digest)
        folder = compiled._folder()
        os.utime(folder, (age, age))
    kept = sorted(folder.name for folder in forgotten.iterdir())
    assert kept == [f"kernels-{age:016x}" for age in range(2, compiled._MOST_FOLDERS + 2)]


def test_importing_loads_no_compiler_and_no_reader_of_models() -> None:
    script = (
        "import sys\n"
        "import engine, allocator.solvers, engine.cli.main\n"
        "heavy = {'numba', 'llvmlite', 'onnx', 'scipy', 'onnxruntime', 'ortools', 'matplotlib'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
