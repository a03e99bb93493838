"""Kernels in machine code: equal numbers, loaded when first used, and a cache on disk that may be missing."""

import errno
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Iterator
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


@pytest.fixture
def forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Starts as if no kernel had been used yet, with an empty cache, whose folder it yields."""
    monkeypatch.setattr(import_module("numba").config, "CACHE_DIR", str(tmp_path))
    for memo in (compiled._twin, compiled._module):
        memo.cache_clear()
    yield tmp_path
    for memo in (compiled._twin, compiled._module):
        memo.cache_clear()


def test_a_kernel_is_compiled_once_and_kept_on_disk(forgotten: Path) -> None:
    assert not compiled.is_loaded() and not list(forgotten.rglob("*.nbc"))
    assert maximums(compiled.compiled(find_maximums)) == maximums(find_maximums) == [9, 7]
    assert compiled.is_loaded() and list(forgotten.rglob("*.nbc"))


def test_a_kernel_cache_folder_that_cannot_be_made_only_costs_time(
    forgotten: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_module("numba").config, "CACHE_DIR", "/proc/none")
    assert maximums(compiled.compiled(find_maximums)) == [9, 7]
    assert not list(forgotten.rglob("*"))


def test_a_missing_kernel_cache_folder_only_costs_time(forgotten: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module("numba.core.caching").CacheImpl, "_locator_classes", [])
    assert maximums(compiled.compiled(find_maximums)) == [9, 7]
    assert not list(forgotten.rglob("*.nb*"))


def test_a_full_disk_under_the_kernel_cache_only_costs_time(forgotten: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(import_module("numba.core.caching").IndexDataCacheFile, "save", refuse)
    assert maximums(compiled.compiled(find_maximums)) == [9, 7]
    assert not list(forgotten.rglob("*.nbc"))


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
def test_a_truncated_kernel_cache_only_costs_time(forgotten: Path, ending: str) -> None:
    maximums(compiled.compiled(find_maximums))
    for memo in (compiled._twin, compiled._module):
        memo.cache_clear()
    for file in forgotten.rglob(f"*.{ending}"):
        file.write_bytes(file.read_bytes()[:40])
    assert maximums(compiled.compiled(find_maximums)) == [9, 7]


def test_a_kernel_cache_of_an_older_version_is_written_anew(forgotten: Path) -> None:
    maximums(compiled.compiled(find_maximums))
    for memo in (compiled._twin, compiled._module):
        memo.cache_clear()
    (index,) = forgotten.rglob("*find_maximums*.nbi")
    index.write_bytes(pickle.dumps(import_module("numba").__version__) + b"callocator.kernels.numbers\nGone\n.")
    assert maximums(compiled.compiled(find_maximums)) == [9, 7]
    assert not index.exists()
    for memo in (compiled._twin, compiled._module):
        memo.cache_clear()
    assert maximums(compiled.compiled(find_maximums)) == [9, 7]
    assert b"Gone" not in index.read_bytes()


def freed_at_once() -> list[int]:
    """Blocks of a heap in which one was used and freed; the treap of free blocks stands in a module of its own."""
    blocks = np.zeros(10 * heap.WIDTH, np.int64)
    state = np.zeros(heap.STATE, np.int64)
    compiled.compiled(heap.clear)(blocks)
    block = compiled.compiled(heap.insert)(blocks, 0, 0, 8, 0)
    compiled.compiled(heap.free)(blocks, state, block)
    numbers: list[int] = blocks.tolist()
    return numbers


@pytest.mark.usefixtures("forgotten")
def test_a_kernel_is_compiled_again_when_a_module_that_it_calls_has_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    def statistics() -> Any:
        for memo in (compiled._twin, compiled._module):
            memo.cache_clear()
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
