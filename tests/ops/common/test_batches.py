"""Kernels on batches whose images lie apart: the same bits, and nothing of what lies between."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ops.common.batches import dense_images, image_bytes
from ops.convolution.conv import CONV
from ops.convolution.fused import FUSED_CONV
from ops.convolution.gradient import CONV_INPUT_GRADIENT, CONV_WEIGHT_GRADIENT
from ops.convolution.transpose import CONV_TRANSPOSE
from ops.elementwise.activation import RELU
from ops.elementwise.binary import ADD
from ops.movement.concat import CONCAT
from ops.movement.copy import COPY
from ops.movement.views import TRANSPOSE
from ops.norm.batch_norm import BATCH_NORM
from ops.norm.batch_norm_training import BATCH_NORM_DATA_GRADIENT, BATCH_NORM_TRAINING, CHANNEL_SUMS
from ops.pool.gradient import MAX_POOL_GRADIENT
from ops.pool.pool import AVERAGE_POOL, MAX_POOL
from ops.schema.schema import Kernel, OpSchema, Signature, evaluate
from ops.tensor.layout import Layout
from ops.tensor.spec import Array, spec_of
from tests.helpers.ops.kernel_checks import bind, garbage, kernels, run, run_over

_GAP = 3
"""Elements between two images, and before the first."""


def _drawn(*shape: int) -> Array:
    return np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32)


def apart(array: Array) -> Array:
    """Returns the same batch with gaps between its images."""
    count, image = len(array), array.size // max(len(array), 1)
    buffer = np.full((count, image + _GAP), np.nan, array.dtype)
    images = buffer[:, _GAP:].reshape(array.shape)
    assert images.base is buffer or images.base is buffer.base
    images[...] = array
    return images


def _base(array: Array) -> Array:
    return array if array.base is None else array.base


X, DY = _drawn(3, 16, 6, 6), _drawn(3, 32, 6, 6)
ROW = np.abs(_drawn(16)) + 1
POINT, WINDOW, DEEP = _drawn(32, 16, 1, 1), _drawn(32, 16, 3, 3), _drawn(16, 1, 3, 3)
PADS = (1, 1, 1, 1)
CASES: tuple[tuple[OpSchema, tuple[Array, ...], dict[str, Any]], ...] = (
    (RELU, (X,), {}),
    (ADD, (X, X), {}),
    (COPY, (X,), {}),
    (CONCAT, (X, X), {"axis": 1}),
    (TRANSPOSE, (X,), {"perm": (0, 2, 3, 1)}),
    (MAX_POOL, (X,), {"kernel_shape": (3, 3), "pads": PADS}),
    (AVERAGE_POOL, (X,), {"kernel_shape": (2, 2), "strides": (2, 2)}),
    (MAX_POOL_GRADIENT, (X[..., ::2, ::2], X), {"kernel_shape": (2, 2), "strides": (2, 2)}),
    (CONV, (X, POINT), {}),
    (CONV, (X, WINDOW, _drawn(32)), {"pads": PADS}),
    (CONV, (X, DEEP), {"pads": PADS, "group": 16}),
    (FUSED_CONV, (X, POINT), {"activation": "clip", "low": 0.0}),
    (FUSED_CONV, (X, POINT, _drawn(32), DY), {"activation": "leaky_relu", "slope": 0.1}),
    (FUSED_CONV, (X, WINDOW, _drawn(32), DY), {"pads": PADS, "activation": "clip", "low": 0.0, "high": 0.5}),
    (FUSED_CONV, (X, DEEP), {"pads": PADS, "group": 16, "activation": "clip", "low": 0.0}),
    (CONV_TRANSPOSE, (X, _drawn(16, 8, 2, 2)), {"strides": (2, 2)}),
    (CONV_TRANSPOSE, (X, _drawn(16, 8, 1, 1)), {}),
    (CONV_INPUT_GRADIENT, (DY, WINDOW), {"pads": PADS}),
    (CONV_WEIGHT_GRADIENT, (X, DY), {"kernel_shape": (3, 3), "pads": PADS}),
    (BATCH_NORM, (X, ROW, ROW, ROW, ROW), {}),
    (BATCH_NORM_TRAINING, (X, ROW, ROW), {}),
    (CHANNEL_SUMS, (X, X + 1, ROW, ROW), {}),
    (BATCH_NORM_DATA_GRADIENT, (X, X + 1, ROW, ROW, ROW, ROW, ROW), {}),
)
CONSTANT = {CONV: frozenset({1, 2}), FUSED_CONV: frozenset({1, 2}), CONV_TRANSPOSE: frozenset({1})}
NAMES = [f"{schema.name}-{i}" for i, (schema, _, _) in enumerate(CASES)]


def _signed(schema: OpSchema, arrays: Sequence[Array], attrs: dict[str, Any]) -> list[Signature]:
    """Returns the signature without constants and, where there may be some, with them: other kernels pack these."""
    constants = frozenset(i for i in CONSTANT.get(schema, ()) if i < len(arrays))
    specs = [spec_of(a) for a in arrays]
    return [schema.sign(specs, attrs, which) for which in dict.fromkeys((frozenset[int](), constants))]


def _output(kernel: Kernel, array: Array) -> Array:
    """Returns an output array, with gaps between its images where the kernel declares that it can write so."""
    spread = apart(array) if array.ndim > 1 else array
    return spread if kernel.writes(Layout.of(spread)) else garbage(spec_of(array))


@pytest.mark.parametrize(("schema", "arrays", "attrs"), CASES, ids=NAMES)
def test_images_that_lie_apart_are_read_and_written(
    schema: OpSchema, arrays: tuple[Array, ...], attrs: dict[str, Any]
) -> None:
    for signature in _signed(schema, arrays, attrs):
        for kernel in kernels(schema, signature):
            wanted = run(kernel, signature, arrays)
            outputs = [_output(kernel, np.zeros_like(a)) for a in wanted]
            inputs = [apart(a) if a.ndim > 2 else a for a in arrays]
            with np.errstate(all="ignore"):
                bind(kernel, signature, inputs, outputs)()
            for got, want in zip(outputs, wanted, strict=True):
                assert got.tobytes() == want.tobytes(), kernel.name
                assert np.isnan(_base(got)).sum() in (0, _GAP * len(got)), f"{kernel.name} wrote between images"


@pytest.mark.parametrize(("schema", "arrays", "attrs"), CASES, ids=NAMES)
def test_batches_with_holes_are_overwritten_element_by_element(
    schema: OpSchema, arrays: tuple[Array, ...], attrs: dict[str, Any]
) -> None:
    """Checks each declared overwrite of a dense input that the kernel can write into such layouts."""
    for signature in _signed(schema, arrays, attrs):
        ways = [w for w in schema.forwards(signature) if signature.inputs[w.input] == signature.outputs[w.output]]
        for kernel in kernels(schema, signature):
            for way in (w for w in ways if arrays[w.input].ndim > 2 and not w.offset):
                _check_over(kernel, signature, arrays, way.input)


def _check_over(kernel: Kernel, signature: Signature, arrays: Sequence[Array], position: int) -> None:
    wanted, over = run(kernel, signature, arrays), apart(arrays[position])
    if not kernel.writes(Layout.of(over)) or not kernel.accepts(signature, position, Layout.of(over)):
        return
    assert run_over(kernel, signature, arrays, position, over)[0].tobytes() == wanted[0].tobytes(), kernel.name


@given(
    hnp.arrays(np.float32, hnp.array_shapes(min_dims=1, max_dims=4, max_side=4), elements=st.floats(-9, 9, width=32))
)
def test_images_begin_at_multiples_of_their_distance(array: Array) -> None:
    spread = apart(array)
    for n in range(len(spread)):
        assert spread[n:].ctypes.data == spread.ctypes.data + n * image_bytes(spread)


def test_dense_images_are_recognised() -> None:
    x = Layout.of(np.zeros((4, 6, 2), np.float32))
    assert dense_images(x) and dense_images(x.slice(1, 2, 3)) and dense_images(x.slice(0, 1, 2))
    assert not dense_images(x.slice(2, 0, 1)) and not dense_images(x.slice(1, 0, 3, 2))
    assert not dense_images(x.transpose((1, 0, 2))) and not dense_images(Layout.of(np.zeros((), np.float32)))
    assert not dense_images(x.slice(0, 0, 1).expand((4, 6, 2)))


def test_evaluate_reads_images_that_lie_apart() -> None:
    (output,) = evaluate(CONV, apart(X), POINT)
    assert output.tobytes() == evaluate(CONV, X, POINT)[0].tobytes()
