"""Kernels that do not read their constants after they packed them: right on every layout that they accept."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from ops.convolution.packed import has_avx512
from ops.half.ops import Inner
from ops.onednn.library import objection
from ops.quantised.nhwc_tiled import has_vnni
from ops.registry import REGISTRY, find
from ops.schema.backends import NUMPY, ONEDNN
from ops.schema.schema import Kernel, OpSchema, Signature, every_input_read
from ops.tensor.layout import Layout
from ops.tensor.spec import Array, spec_of
from tests.helpers.ops.compiled_kernel_checks import placed
from tests.helpers.ops.kernel_checks import run, strided_copies

ROOM = {"pads": (1, 1, 1, 1)}
HALF = np.dtype("float16")
Shapes = tuple[tuple[int, ...], ...]
FLOATS: dict[str, list[tuple[Shapes, dict[str, Any]]]] = {
    "conv": [(((2, 16, 9, 11), (32, 16, 3, 3), (32,)), ROOM)],
    "fused_conv": [(((2, 16, 9, 11), (32, 16, 3, 3), (32,)), {**ROOM, "activation": "clip", "low": 0.0})],
    "conv_transpose": [(((1, 16, 7, 9), (16, 16, 3, 3), (16,)), ROOM)],
    "nhwc_conv_transpose": [(((1, 7, 9, 16), (16, 16, 3, 3), (16,)), ROOM)],
    "nhwc_conv": [
        (((2, 8, 9, 16), (48, 16, 3, 3), (48,)), ROOM),
        (((2, 8, 9, 16), (48, 16, 1, 1), (48,), (2, 8, 9, 48)), {}),
        (((2, 8, 9, 48), (48, 1, 3, 3), (48,)), {**ROOM, "group": 48}),
        (((2, 20, 21, 3), (48, 3, 3, 3), (48,)), ROOM),
    ],
    "lstm": [(((5, 3, 8), (2, 28, 8), (2, 28, 7), (2, 56)), {"given": ("bias",), "direction": "bidirectional"})],
    "matmul": [(((40, 64), (64, 48)), {}), (((2, 3, 5, 8), (8, 7)), {})],
    "gemm": [(((40, 64), (64, 48), (48,)), {}), (((40, 64), (48, 64), (40, 48)), {"trans_b": True, "alpha": 0.5})],
    "fused_matmul": [
        (((40, 64), (64, 48), (48,), (40, 48)), {"activation": "silu"}),
        (((2, 3, 5, 8), (7, 8), (7,)), {"transpose_b": True, "alpha": 0.5}),
    ],
}
CODES: dict[str, list[tuple[Shapes, str, dict[str, Any]]]] = {
    "matmul_integer": [(((40, 64), (64, 48), (), (48,)), "BBBB", {})],
    "nhwc_quantised_conv": [
        (((2, 8, 9, 16), (48, 16, 3, 3), (48,), (48,)), "Bbfi", {**ROOM, "x_zero": 3, "to": "float32"}),
        (((2, 8, 9, 48), (48, 1, 3, 3), (48,), (48,)), "Bbfi", {**ROOM, "x_zero": 3, "to": "float32", "group": 48}),
    ],
}
_INNER = find("fused_matmul")
AVX512 = {"conv: packed", "fused_conv: packed"}
VNNI = {"matmul_integer: tiled", "nhwc_quantised_conv: depthwise", "nhwc_quantised_conv: tiled"}
"""Kernels that other processors do not have."""
HALVES = [((40, 64), (64, 48), (48,)), ((2, 3, 5, 8), (8, 7))]


def _numbers(seed: int, shape: tuple[int, ...], code: str) -> Array:
    rng = np.random.default_rng(seed)
    dtype = np.dtype(code)
    if dtype.kind == "f":
        return rng.standard_normal(shape).astype(dtype)
    return rng.integers(0, 100, shape).astype(dtype)


def _cases() -> Iterator[Any]:
    """Returns (operator, its inputs, its attributes) of each case."""
    for name, floats in FLOATS.items():
        for i, (shapes, attrs) in enumerate(floats):
            yield pytest.param(find(name), [_numbers(i, s, "f") for i, s in enumerate(shapes)], attrs, id=f"{name}-{i}")
    for name, codes in CODES.items():
        for i, (shapes, types, attrs) in enumerate(codes):
            arrays = [_numbers(i, s, t) for i, (s, t) in enumerate(zip(shapes, types, strict=True))]
            yield pytest.param(find(name), arrays, attrs, id=f"{name}-{i}")
    for i, shapes in enumerate(HALVES):
        arrays = [_numbers(i, s, "e") for i, s in enumerate(shapes)]
        attrs = {"operator": Inner(_INNER, {"alpha": 0.5}), "to": HALF}
        yield pytest.param(find("in_single"), arrays, attrs, id=f"in_single-{i}")


CASES = list(_cases())


def _signed(schema: OpSchema, arrays: list[Array], attrs: dict[str, Any]) -> Signature:
    """Returns the signature with constant weights and biases; what has the shape of y is no constant."""
    specs = [spec_of(a) for a in arrays]
    y = schema.sign(specs, attrs).y
    return schema.sign(specs, attrs, frozenset(i for i, s in enumerate(specs) if i and s.shape != y.shape))


def _replacing(schema: OpSchema, signature: Signature) -> list[Kernel]:
    kernels = [k for k in schema.kernels if k.backend != ONEDNN or not objection()]
    return [k for k in kernels if k.unread_after_pack is not every_input_read and k.supports(signature)]


def _stored(array: Array) -> Iterator[Array]:
    """Yields the same elements in every layout."""
    yield array
    yield from strided_copies(array)
    if array.ndim:
        yield placed(array, 3)
    for first in range(array.ndim - 1):  # two axes turned, as a transpose leaves them
        for second in range(first + 1, array.ndim):
            yield np.ascontiguousarray(array.swapaxes(first, second)).swapaxes(first, second)


def _turned(signature: Signature, arrays: list[Array]) -> Iterator[list[Array]]:
    """Yields the inputs, of which one that is no constant is stored in every way."""
    for i, array in enumerate(arrays):
        if i not in signature.constants:
            yield from ([*arrays[:i], stored, *arrays[i + 1 :]] for stored in _stored(array))


@pytest.mark.parametrize(("schema", "arrays", "attrs"), CASES)
def test_constants_dropped_after_packing_are_never_read(
    schema: OpSchema, arrays: list[Array], attrs: dict[str, Any]
) -> None:
    signature = _signed(schema, arrays, attrs)
    plain = schema.sign(signature.inputs, attrs)
    wanted = run(schema.kernel(plain, (NUMPY,)), plain, arrays)
    tolerance = 2e-3 if wanted[0].dtype == HALF else 1e-4
    for kernel in _replacing(schema, signature):
        for stored in _turned(signature, arrays):
            lies = f"{kernel.name} on {[Layout.of(a).strides for a in stored]}"
            for got, want in zip(run(kernel, signature, stored), wanted, strict=True):
                np.testing.assert_allclose(got, want, tolerance, 20 * tolerance, err_msg=lies)


def test_every_kernel_that_drops_constants_is_among_the_cases() -> None:
    """The library's kernels have their own tests: they leave what compiled kernels compute faster."""
    seen = {id(k) for p in CASES for k in _replacing(p.values[0], _signed(*p.values))}
    dropping = [
        (s.name, k) for s in REGISTRY.values() for k in s.kernels if k.unread_after_pack is not every_input_read
    ]
    missing = {f"{name}: {k.name}" for name, k in dropping if k.backend != ONEDNN and id(k) not in seen}
    assert missing == (set() if has_avx512() else AVX512) | (set() if has_vnni() else VNNI)
