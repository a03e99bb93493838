"""Mapped files as arrays."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from engine.graph.mapped import map_file, mapping_of, release, release_files
from engine.system.process_memory import PAGE, resident_bytes
from ops.tensor.spec import Array


@pytest.fixture
def numbers(tmp_path: Path) -> Path:
    path = tmp_path / "numbers.bin"
    path.write_bytes(np.arange(1 << 20, dtype=np.float32).tobytes())
    return path


def test_an_array_knows_the_file_that_it_is_a_part_of(numbers: Path) -> None:
    mapping = map_file(numbers)
    array = np.frombuffer(mapping, np.float32, 100, 8)
    assert mapping_of(array) is mapping
    assert mapping_of(array[3:].reshape(97, 1).view(np.uint8)) is mapping
    assert mapping_of(array.copy()) is None


@pytest.mark.parametrize(("first", "count"), [(0, 1 << 20), (1, 5000), (PAGE // 4 - 1, 2), (77, 100_000)])
def test_released_mapped_arrays_read_the_same(numbers: Path, first: int, count: int) -> None:
    array = np.frombuffer(map_file(numbers), np.float32)[first : first + count]
    release(array)
    assert array.tolist() == list(range(first, first + count))


@pytest.mark.parametrize("give_back", [release, lambda array: release_files([array, array[5:]])])
def test_releasing_mapped_arrays_gives_pages_back(numbers: Path, give_back: Callable[[Array], None]) -> None:
    array = np.frombuffer(map_file(numbers), np.float32)
    array.sum()
    before = resident_bytes()
    if before is None:
        pytest.skip("the system does not tell what is resident")
    give_back(array)
    after = resident_bytes()
    assert after is not None and before - after > array.nbytes // 2


def test_release_leaves_arrays_that_are_not_mapped_alone() -> None:
    array = np.arange(10_000)
    release(array)
    assert array.sum() == 9999 * 5000
