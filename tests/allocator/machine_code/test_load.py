"""Images are mapped so that no page can be written and executed, and compute what they should."""

import ctypes
import math
import os
from pathlib import Path

import numpy as np
import pytest

from allocator.machine_code import load
from allocator.machine_code.door import made, stored_address
from allocator.machine_code.errors import ImageError
from allocator.machine_code.image import read_image
from allocator.machine_code.instructions import instructions
from allocator.machine_code.library import FUNCTIONS, address_of
from allocator.machine_code.store import file_name, write_file

SMALL = "tests.helpers.machine_code.small_code"
pytestmark = pytest.mark.skipif(not load.IS_SUPPORTED, reason="no images are loaded here")


def _call(address: int, argument: int) -> int:
    return int(ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(address)(argument))


def _written(folder: Path, name: str) -> tuple[int, str]:
    file = file_name(SMALL, name, instructions().name)
    write_file(folder / file, made(SMALL, name, instructions(), file))
    return stored_address(folder, file), file


def _maps() -> list[list[str]]:
    return [line.split() for line in Path("/proc/self/maps").read_text().splitlines()]


def test_no_page_of_an_image_can_be_written(tmp_path: Path) -> None:
    address, file = _written(tmp_path, "power")
    pages = [fields for fields in _maps() if fields[-1] == str(tmp_path / file)]
    assert {fields[1] for fields in pages} == {"r--p", "r-xp"}
    (code,) = [fields[0].split("-") for fields in pages if fields[1] == "r-xp"]
    assert int(code[0], 16) <= address < int(code[1], 16)


def test_a_function_of_the_c_library_is_called(tmp_path: Path) -> None:
    numbers = np.array([1.75, 0.0])
    _call(_written(tmp_path, "power")[0], numbers.ctypes.data)
    assert numbers[1] == math.pow(1.75, 2.5)


@pytest.mark.parametrize(("number", "expected"), [(0, 1_000_003), (1, 77), (2, -5), (3, 123_456_789_012), (9, 4)])
def test_constants_are_read(tmp_path: Path, number: int, expected: int) -> None:
    assert _call(_written(tmp_path, "pick")[0], np.array([number]).ctypes.data) == expected


def test_an_image_without_a_file_is_copied_into_memory(tmp_path: Path) -> None:
    file = file_name(SMALL, "twice", instructions().name)
    content = made(SMALL, "twice", instructions(), file)
    assert _call(load.load(content, read_image(content, file)), 21) == 42
    assert not list(tmp_path.iterdir())


def test_a_file_system_whose_files_may_not_be_executed_costs_a_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = load._protect
    calls: list[int] = []

    def protect(start: int, size: int, protection: int) -> None:
        calls.append(protection)
        if len(calls) == 2:
            raise PermissionError(13, os.strerror(13))
        plain(start, size, protection)

    monkeypatch.setattr(load, "_protect", protect)
    address, file = _written(tmp_path, "twice")
    assert _call(address, 4) == 8 and len(calls) == 4
    pages = [fields for fields in _maps() if int(fields[0].split("-")[0], 16) <= address]
    assert pages[-1][-1] != str(tmp_path / file)


def test_nothing_is_loaded_whose_checksum_does_not_fit(tmp_path: Path) -> None:
    _, file = _written(tmp_path, "twice")
    content = (tmp_path / file).read_bytes()
    for name in ("other", file.replace("twice", "thrice")):
        with pytest.raises(ImageError):
            read_image(content, name)
    for at in (0, 20, 50, len(content) // 2, len(content) - 1):
        changed = bytearray(content)
        changed[at] ^= 4
        with pytest.raises(ImageError):
            read_image(bytes(changed), file)


def test_all_functions_that_code_may_call_are_found() -> None:
    assert all(address_of(name) for name in FUNCTIONS)
    assert "PyErr_Clear" not in FUNCTIONS
