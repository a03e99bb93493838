"""Back-ends are separate: with numpy alone, no kernel imports numba or calls compiled code."""

import functools
import subprocess
import sys
from collections.abc import Iterator
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import pytest

from ops.registry import REGISTRY
from ops.schema.backends import BACKENDS, NUMPY
from ops.schema.schema import Kernel, OpSchema
from tests.helpers.paths import ROOT

KERNELS = [(schema, kernel) for schema in REGISTRY.values() for kernel in schema.kernels]
COMPILED = ("allocator.machine_code", "ops.native.runners", "ops.native.functions", "numba")
JOINS = "ops.native.call"
"""Joins compiled calls where there are any: every kernel of several steps refers to it."""
LEAST_OPERATORS = 120
"""That the script runs: about two thirds of all."""


def is_compiled(module: str) -> bool:
    """Returns whether a module compiles code, or loads the compiler."""
    last = module.rpartition(".")[2]
    return module.startswith(COMPILED) or last.endswith(("_code", "_emit"))


def reached(function: Any) -> set[str]:
    """Returns the modules of this project that a function refers to, itself or through functions that it refers to."""
    seen: set[int] = set()
    modules: set[str] = set()
    waiting = [function]
    while waiting:
        item = waiting.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        module = item.__name__ if isinstance(item, ModuleType) else getattr(item, "__module__", None) or ""
        if module.startswith(("ops.", "allocator.machine_code", "numba")) and module != JOINS:
            modules.add(module)
            waiting.extend(_referred(item))
        elif isinstance(item, (functools.partial, tuple)):
            waiting.extend(_referred(item))
    return modules


def _referred(item: Any) -> Iterator[Any]:
    if isinstance(item, functools.partial):
        yield from (item.func, *item.args, *item.keywords.values())
    elif isinstance(item, tuple):
        yield from item
    elif isinstance(item, MethodType):
        yield from (item.__func__, item.__self__)
    elif isinstance(item, FunctionType):
        yield from (item.__globals__[n] for n in _names(item.__code__) if n in item.__globals__)
        yield from (cell.cell_contents for cell in item.__closure__ or ())
    elif hasattr(item, "__wrapped__"):
        yield item.__wrapped__
    elif isinstance(item, type) and not issubclass(item, (OpSchema, Kernel)):
        yield from vars(item).values()


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def test_every_kernel_belongs_to_a_back_end() -> None:
    assert {kernel.backend for _, kernel in KERNELS} == set(BACKENDS)


def test_no_kernel_of_numpy_reaches_compiled_code() -> None:
    wrong = {
        f"{schema.name}/{kernel.name}": modules
        for schema, kernel in KERNELS
        if kernel.backend == NUMPY and (modules := {m for m in reached(kernel.bind) if is_compiled(m)})
    }
    assert not wrong


def test_kernels_of_other_back_ends_reach_compiled_code() -> None:
    """Without this, the test above might see nothing."""
    compiled = [k for _, k in KERNELS if k.backend != NUMPY and any(map(is_compiled, reached(k.bind)))]
    assert len(compiled) > 100


@pytest.mark.slow
def test_operators_run_with_numpy_where_numba_cannot_be_imported() -> None:
    command = [sys.executable, "-m", "tests.helpers.ops.numpy_backend"]
    script = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert script.returncode == 0, script.stderr[-3000:]
    assert len(script.stdout.split()) >= LEAST_OPERATORS
