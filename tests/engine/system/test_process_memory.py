"""Figures of the system about this process; nothing fails where it gives none."""

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.system import process_memory

MIB = 2**20
linux = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")


@given(st.integers(0, 2**40))
def test_whole_pages_are_the_fewest_that_hold_the_bytes(size: int) -> None:
    pages, rest = divmod(process_memory.whole_pages(size), process_memory.PAGE)
    assert rest == 0
    assert (pages - 1) * process_memory.PAGE < max(size, 1 - process_memory.PAGE) <= pages * process_memory.PAGE


@linux
def test_touched_pages_are_resident_and_are_seen_in_the_peak_until_it_is_reset() -> None:
    before = process_memory.resident_bytes()
    array = np.ones(64 * MIB, np.uint8)
    during, faults = process_memory.resident_bytes(), process_memory.page_faults()
    assert before is not None and during is not None and faults is not None
    assert during - before > 60 * MIB
    assert faults.minor > 0 and faults.major >= 0
    del array
    process_memory.give_back()
    peak, after = process_memory.peak_bytes(), process_memory.resident_bytes()
    assert peak is not None and after is not None and peak >= during - MIB and after < during - 60 * MIB
    if process_memory.reset_peak():
        peak = process_memory.peak_bytes()
        assert peak is not None and peak < during - 60 * MIB


@linux
def test_pages_that_nobody_touched_are_not_resident() -> None:
    process_memory.give_back()
    before = process_memory.resident_bytes()
    array = np.empty(64 * MIB, np.uint8)
    after = process_memory.resident_bytes()
    assert before is not None and after is not None and after - before < 4 * MIB
    assert array.nbytes == 64 * MIB


def test_process_memory_is_none_without_proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_memory, "_PROC", tmp_path / "proc")
    assert process_memory.resident_bytes() is None and process_memory.huge_bytes() is None
    assert not process_memory.reset_peak()
    assert sys.platform == "win32" or (process_memory.peak_bytes() or 0) > MIB  # by getrusage


def test_a_c_library_without_a_function_is_no_error() -> None:
    assert process_memory._call("no_such_function_anywhere", 0) is None
