"""Kernels that declare that they write strided outputs compute the same as for dense ones, whatever the strides."""

from collections.abc import Sequence

import numpy as np
import pytest

import engine
import ops
from engine import Graph
from ops.elementwise.unary import IS_INF, IS_NAN, NEG
from ops.movement.copy import COPY
from ops.registry import REGISTRY
from ops.schema.backends import NUMPY, ONEDNN
from ops.schema.schema import Kernel, OpSchema, Signature, dense_only
from ops.tensor.errors import OpError
from ops.tensor.layout import Layout
from ops.tensor.spec import Array
from tests.helpers.ops.kernel_checks import bind, run, sign

_STEPS = (1, 2, 3, 4, 5, 8, 16)
"""Elements from one to the next, in inputs and outputs: what numpy does depends on them."""
_SPECIAL = (np.nan, np.inf, -np.inf, -0.0)
_DTYPES = ("float32", "float64", "float16", "int8", "uint8", "int32", "int64", "bool")


_MIXED = {"clip", "cast", "and", "or", "xor", "not", "pow", "where", "look_up", "quantised_add"}
"""Compiled, they take other types, a constant, or quantised values: tests in `vector` and `quantised` cover them."""


def _with_kernels(schemas: Sequence[OpSchema]) -> list[tuple[OpSchema, Kernel]]:
    """Returns operators with such kernels, without oneDNN's, which `tests/ops/onednn/test_rows.py` covers."""
    pairs = [(s, k) for s in schemas for k in s.kernels if k.writes is not dense_only and k.backend != ONEDNN]
    return [(s, k) for s, k in pairs if k.backend == NUMPY or s.name not in _MIXED]


ELEMENTWISE = _with_kernels([s for s in (*REGISTRY.values(), COPY) if s.elementwise or s is COPY])


def _drawn(shape: tuple[int, ...], dtype: str, seed: int) -> Array:
    """Draws numbers of both signs, some of them special, and no zeros: integers are divided by them."""
    rng = np.random.default_rng(seed)
    array = rng.normal(size=shape) * 3
    array = array + np.copysign(1, array)
    if dtype.startswith("float"):
        array.reshape(-1)[::5] = rng.choice(_SPECIAL, array.reshape(-1)[::5].size)
    return (np.abs(array) if dtype.startswith("u") else array).astype(dtype)


def strided(array: Array, step: int) -> Array:
    """Returns the same elements, those along the last axis `step` elements apart."""
    gaps = np.zeros((*array.shape[:-1], array.shape[-1] * step), array.dtype)
    gaps[..., ::step] = array
    return gaps[..., ::step]


def _signature(schema: OpSchema, kernel: Kernel, arrays: Sequence[Array]) -> Signature | tuple[()]:
    """Returns the signature, or () where the operator or the kernel does not take the arrays."""
    try:
        signature = sign(schema, arrays, {})
    except OpError:
        return ()
    return signature if kernel.supports(signature) else ()


def _operands(schema: OpSchema, dtype: str, length: int) -> list[list[Array]]:
    """Returns tensors of one shape; the last of several also of one element."""
    count = schema.arity[0]
    arrays = [_drawn((length,), dtype, seed) for seed in range(count)]
    return [arrays, [*arrays[:-1], arrays[-1][:1]]] if count > 1 else [arrays]


def _check_steps(kernel: Kernel, signature: Signature, arrays: Sequence[Array]) -> int:
    """Checks pairs of strides, and returns how many the kernel ran with."""
    (wanted,), count = run(kernel, signature, arrays), 0
    for step in _STEPS:
        inputs = [strided(a, step) for a in arrays]
        for out in _STEPS[1:]:
            y = strided(np.zeros_like(wanted), out)
            if not kernel.writes(Layout.of(y)):
                continue
            with np.errstate(all="ignore"):
                bind(kernel, signature, inputs, (y,))()
            same = np.array_equal(y, wanted, equal_nan=wanted.dtype.kind == "f")
            assert same, f"{kernel.name}: {arrays[0].dtype}, strides of {step} and {out} elements"
            count += 1
    return count


@pytest.mark.parametrize(("schema", "kernel"), ELEMENTWISE, ids=[f"{s.name}-{k.name}" for s, k in ELEMENTWISE])
def test_elementwise_kernels_write_strided_outputs_as_dense_ones(schema: OpSchema, kernel: Kernel) -> None:
    count = 0
    for dtype in _DTYPES:
        for length in (2, 17, 33):
            for arrays in _operands(schema, dtype, length):
                signature = _signature(schema, kernel, arrays)
                count += _check_steps(kernel, signature, arrays) if signature else 0
    assert count, "no signature reached the kernel"


@pytest.mark.parametrize("schema", [NEG, IS_NAN, IS_INF], ids=lambda s: s.name)
def test_operators_that_numpy_computes_wrongly_on_strides_are_written_densely(schema: OpSchema) -> None:
    for kernel in (k for k in schema.kernels if k.backend == NUMPY):
        assert not kernel.writes(Layout.of(np.zeros((4, 2), np.float32)[:, :1]))


@pytest.mark.parametrize("columns", [3, 4, 5])
def test_parts_of_rows_are_computed_inside_their_concatenation(columns: int) -> None:
    graph = Graph("columns")
    a, b = ops.split(graph.input("x", (64, columns)), [1, columns - 1], axis=1)
    graph.output(ops.concat([ops.neg(a), ops.tanh(a)], axis=1), "y")
    graph.output(ops.concat([ops.is_nan(a), ops.logical_not(ops.is_nan(a)), ops.is_nan(b)], axis=1), "nan")
    x = np.random.default_rng(0).normal(size=(64, columns)).astype(np.float32)
    x[::3, 0] = np.nan
    for executable in (
        engine.compile(graph, optimise=0),
        engine.compile(graph, mode="dynamic", optimise=0),
        engine.compile(graph, debug="poison", optimise=0),
    ):
        outputs = executable(x=x)
        assert np.array_equal(outputs["y"][:, 0], -x[:, 0], equal_nan=True)
        assert np.array_equal(outputs["nan"][:, 2:], np.isnan(x[:, 1:])) and outputs["nan"][:, 0].sum() == 22
