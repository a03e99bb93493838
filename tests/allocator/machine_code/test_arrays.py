"""Calls of machine code with arrays: equal results, types that are checked, and no compiler in a later process."""

import pkgutil
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allocator import kernels
from allocator.kernels.positional_maximums import find_maximums, raise_ticks
from allocator.machine_code.arrays import compiled, parameters
from allocator.machine_code.entry import entries_of
from allocator.machine_code.errors import SymbolError
from tests.helpers.allocator.array_entries import Record, halved, named, weigh, write

KERNELS = [
    (home, name)
    for home in (f"{kernels.__name__}.{module.name}" for module in pkgutil.iter_modules(kernels.__path__))
    for name in entries_of(home)
]
WORDS = st.integers(-(2**63), 2**63 - 1)


@given(st.lists(st.integers(-9, 9), max_size=5), st.integers(-5, 5), st.integers(0, 3), st.integers(0, 3))
@settings(max_examples=20)
def test_compiled_functions_take_what_plain_ones_take(longs: list[int], factor: int, rows: int, columns: int) -> None:
    def called(function: Callable[..., Any]) -> tuple[Any, Any]:
        table, reals = np.arange(rows * columns).reshape(rows, columns), np.ones((rows, columns))
        record = Record(np.array(longs, np.int64), table, np.arange(columns) / 3, reals)
        return function(record, factor, np.array(longs[:2], np.int64)), reals.tolist()

    assert called(compiled(weigh)) == called(weigh)


@given(WORDS)
@settings(max_examples=12)
def test_integers_of_64_bits_arrive_as_they_are(value: int) -> None:
    numbers = np.zeros(3, np.int64)
    assert compiled(write)(numbers, value) is None
    assert numbers.tolist() == [value] * 3


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1])
def test_an_integer_of_more_bits_is_refused(value: int) -> None:
    numbers = np.zeros(3, np.int64)
    with pytest.raises(OverflowError):
        compiled(write)(numbers, value)
    assert not numbers.any()


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        (np.zeros(3, np.int32), "arrays of int64 with 1 dimensions"),
        (np.zeros((3, 1), np.int64), "arrays of int64 with 1 dimensions"),
        (np.zeros(3), "arrays of int64"),
        ([0, 0, 0], "arrays of int64"),
        (np.zeros(6, np.int64)[::2], "dense arrays"),
    ],
)
def test_an_array_of_another_type_is_refused(numbers: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        compiled(write)(numbers, 1)
    assert not np.any(numbers)


def test_an_argument_too_few_or_too_many_is_refused() -> None:
    with pytest.raises(ValueError, match="zip"):
        compiled(write)(np.zeros(3, np.int64))
    with pytest.raises(ValueError, match="zip"):
        compiled(write)(np.zeros(3, np.int64), 1, 2)


def test_columns_that_are_only_read_are_taken() -> None:
    columns = [np.array(c, np.int64) for c in (range(4), [3, 2, 3, 4], [9, 7, 5, 1])]
    for column in columns:
        column.flags.writeable = False
    maximums = np.zeros(4, np.int64)
    assert compiled(find_maximums)(*columns, np.zeros(16, np.int64), np.zeros(16, np.int64), maximums) == 2
    assert maximums.tolist() == [9, 7, 0, 0]


@pytest.mark.parametrize("function", [named, halved])
def test_types_that_machine_code_does_not_have_are_refused(function: Callable[..., Any]) -> None:
    with pytest.raises(TypeError, match=function.__name__):
        parameters(function)


def test_a_function_that_is_not_declared_is_not_compiled() -> None:
    with pytest.raises(SymbolError, match="raise_ticks"):
        compiled(raise_ticks)


@pytest.mark.parametrize(("home", "name"), KERNELS)
def test_the_types_of_each_kernel_are_known_before_it_runs(home: str, name: str) -> None:
    assert parameters(getattr(import_module(home), name))


def test_a_process_with_kernels_on_disk_loads_no_compiler() -> None:
    compiled(find_maximums)
    script = (
        "import sys, numpy as np\n"
        "from pathlib import Path\n"
        "from allocator.kernels.positional_maximums import find_maximums\n"
        "from allocator.machine_code.arrays import compiled\n"
        "columns = [np.array(c, np.int64) for c in ([0, 1], [3, 2], [9, 7], [0] * 8, [0] * 8, [0] * 2)]\n"
        "assert compiled(find_maximums)(*columns) == 2\n"
        "assert not {'numba', 'llvmlite'} & set(sys.modules)\n"
        "assert 'llvmlite' not in Path('/proc/self/maps').read_text()\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
