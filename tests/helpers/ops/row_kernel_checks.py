"""Checks of compiled kernels that compute on rows: numbers, shapes, and the comparison with numpy's kernels."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from ops.schema.backends import NUMBA, NUMPY
from ops.schema.schema import OpSchema
from ops.tensor.layout import Layout
from ops.tensor.spec import Array, Shape
from tests.helpers.ops.compiled_kernel_checks import placed, run_native
from tests.helpers.ops.kernel_checks import run, run_without_allocation, sign

SHAPES: tuple[Shape, ...] = (
    *((), (1,), (5,), (3, 1), (2, 17), (4, 1, 9), (2, 5, 33), (3, 2, 2, 20), (2, 1100), (40, 3), (2, 70, 2), (1, 300)),
)
PARTS = st.sampled_from([1, 2, 3])


def row_numbers(seed: int, shape: Shape, odd: float = 0.0) -> Array:
    """Returns normal numbers, some of them NaN or infinite."""
    rng = np.random.default_rng(seed)
    x = 3 * rng.standard_normal(shape)
    return np.asarray(np.where(rng.random(shape) < odd, rng.choice([np.nan, np.inf, -np.inf], shape), x), np.float32)


def _laid(x: Array, extra: int) -> Array:
    return placed(x, extra) if x.ndim else x


def check_against_numpy(
    schema: OpSchema, arrays: list[Array], parts: int, extra: int = 0, rtol: float = 1e-5, **attrs: Any
) -> None:
    """Checks against numpy's kernel; the first input and outputs of its shape have `extra` elements between pixels."""
    signature = sign(schema, arrays, attrs)
    kernel = schema.kernel(signature, (NUMBA,))
    assert kernel.backend == NUMBA
    wanted = run(schema.kernel(signature, (NUMPY,)), signature, arrays)
    laid = [_laid(arrays[0], extra if kernel.accepts(signature, 0, _wide(arrays[0], extra)) else 0), *arrays[1:]]
    if all(y.shape for y in signature.outputs) and arrays[0].ndim:
        between = extra if extra and kernel.writes(_wide(np.empty(signature.y.shape, np.float32), extra)) else 0
        outputs = run_native(kernel, signature, laid, parts, between)
    else:
        outputs = run(kernel, signature, arrays)
    for got, want in zip(outputs, wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=rtol, atol=1e-5)


def _wide(x: Array, extra: int) -> Layout:
    return Layout.of(placed(np.empty(x.shape, x.dtype), extra) if x.ndim else x)


def check_allocates_nothing(schema: OpSchema, arrays: list[Array], **attrs: Any) -> None:
    """Checks that the compiled kernel takes the arrays, has no workspace, and allocates nothing."""
    signature = sign(schema, arrays, attrs)
    kernel = schema.kernel(signature)
    assert (kernel.backend, kernel.workspace(signature)) == (NUMBA, 0)
    run_without_allocation(kernel, signature, arrays)
