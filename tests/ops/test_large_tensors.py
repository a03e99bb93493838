"""Kernels, workspaces and plans of tensors of 2 ** 40 elements are chosen as fast as those of small ones."""

import sys
import tracemalloc
from collections.abc import Callable, Iterable
from types import FrameType

import pytest
from attrs import evolve

import engine
from engine import Graph
from ops.half.ops import sign_stored
from ops.registry import REGISTRY
from ops.schema.backends import EVERY
from ops.tensor.errors import OpError
from ops.tensor.layout import Layout
from tests.helpers.ops.scaled_uses import Use, stored_uses, uses

SMALL, LARGE = 2**12, 2**38
"""Elements of the longest axis; the tensors have some more."""
MOST_CALLS = 20_000
"""Function calls that a large tensor may cost more than a small one; most cost none more, the most some hundreds."""
MOST_BYTES = 2**20


class TooManyCallsError(BaseException):
    """An error that no `except Exception` takes."""


def _calls(work: Callable[[], object], most: int) -> int:
    """Returns how many functions are called, and ends where they are too many."""
    count = 0

    def note(_: FrameType, event: str, __: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")
        if count > most:
            raise TooManyCallsError(f"more than {most} calls")

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def _most_bytes(work: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _declare(use: Use) -> None:
    """Asks an operator and all of its kernels for everything that planning asks for."""
    schema, signature = sign_stored(use.schema, use.inputs, use.attrs, use.constants)
    schema.cost(signature)
    schema.forwards(signature)
    schema.stripes(signature, 2**16)
    if signature.inputs:
        schema.views(Layout.dense(signature.x), signature)
    schema.input_places(Layout.dense(signature.y), signature)
    for kernel in (k for k in schema.kernels if k.backend in EVERY and k.supports(signature)):
        kernel.workspace(signature)
        kernel.packed_specs(signature)
        kernel.unread_after_pack(signature)
        kernel.contiguous(signature)


def _plan(use: Use) -> None:
    graph = Graph()
    inputs = [graph.input(f"x{i}", spec.shape, spec.dtype) for i, spec in enumerate(use.inputs)]
    for i, var in enumerate(graph.add(use.schema, inputs, use.attrs)):
        graph.output(var, f"y{i}")
    engine.make_plan(graph, backend="auto")


def _is_taken(use: Use) -> bool:
    try:
        sign_stored(use.schema, use.inputs, use.attrs, use.constants)
    except OpError:
        return False
    return True


def test_every_operator_is_used() -> None:
    assert {use.schema.name for use in uses(SMALL)} == set(REGISTRY) - {"in_single"}
    assert all(map(_is_taken, uses(SMALL)))


def _check(work: Callable[[Use], None], small: Use, large: Use) -> None:
    work(small)  # what is loaded and compiled on first use is no cost of planning
    _calls(lambda: work(large), _calls(lambda: work(small), sys.maxsize) + MOST_CALLS)
    assert _most_bytes(lambda: work(large)) < MOST_BYTES, large


@pytest.mark.slow
def test_operators_of_large_tensors_declare_as_fast_as_those_of_small_ones() -> None:
    for small, large in zip(stored_uses(SMALL), stored_uses(LARGE), strict=True):
        if _is_taken(large):
            _check(_declare, small, large)


def _check_plans(small: Iterable[Use], large: Iterable[Use]) -> None:
    for pair in zip(small, large, strict=True):
        if all(map(_is_taken, pair)):
            _check(_plan, *(evolve(use, constants=frozenset()) for use in pair))


@pytest.mark.slow
def test_plans_of_large_tensors_cost_as_much_as_those_of_small_ones() -> None:
    of_floats = [{use.schema.name: use for use in uses(n)} for n in (SMALL, LARGE)]
    _check_plans(*(by_name.values() for by_name in of_floats))


@pytest.mark.slow
def test_plans_of_all_uses_of_large_tensors_cost_as_much_as_those_of_small_ones() -> None:
    _check_plans(stored_uses(SMALL), stored_uses(LARGE))
