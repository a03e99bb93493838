"""Compiled quantisation with one scale against the kernel of numpy, bit for bit."""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ops.quantised.linear import DEQUANTIZE_LINEAR, QUANTIZE_LINEAR
from ops.quantised.linear_compiled import LINEAR
from ops.schema.schema import OpSchema
from ops.tensor.spec import Array, spec_of
from tests.helpers.ops.compiled_kernel_checks import placed, run_native
from tests.helpers.ops.kernel_checks import bind, garbage, run, same, scratch_bytes, sign


def check(schema: OpSchema, arrays: list[Array], parts: int, extra: int, **attrs: Any) -> None:
    signature = sign(schema, arrays, attrs)
    if not LINEAR.supports(signature):
        return
    (wanted,) = run(schema.kernels[-1], signature, arrays)
    x, *parameters = arrays
    (got,) = run_native(LINEAR, signature, [placed(x, extra), *parameters], parts, extra)
    same(got, wanted)


SHAPES = st.lists(st.integers(0, 20), min_size=2, max_size=4).map(tuple)


@settings(max_examples=40, deadline=None)
@given(SHAPES, st.sampled_from(["uint8", "int8"]), st.booleans(), st.integers(1, 3), st.integers(0, 9))
def test_compiled_quantize_linear_equals_numpy(shape: Any, to: str, with_zero: bool, parts: int, extra: int) -> None:
    rng = np.random.default_rng(sum(shape) + extra)
    x = (rng.standard_normal(shape) * 100).astype(np.float32)
    x[rng.random(shape) < 0.1] = rng.choice(np.array([np.nan, np.inf, -np.inf, 0.5, 1.5], np.float32))
    scale = np.asarray(rng.choice([0.5, 1.0, 0.37, 0.0]), np.float32)
    zero = [rng.integers(-100, 100, ()).astype(to)] if with_zero else []
    check(QUANTIZE_LINEAR, [x, scale, *zero], parts, extra, to=to)


@settings(max_examples=30, deadline=None)
@given(SHAPES, st.sampled_from(["uint8", "int8"]), st.booleans(), st.integers(1, 3), st.integers(0, 9))
def test_compiled_dequantize_linear_equals_numpy(
    shape: Any, dtype: str, with_zero: bool, parts: int, extra: int
) -> None:
    rng = np.random.default_rng(sum(shape) + extra)
    x, scale = rng.integers(-128, 256, shape).astype(dtype), np.asarray(rng.random(1), np.float32)
    zero = [rng.integers(-100, 100, 1).astype(dtype)] if with_zero else []
    check(DEQUANTIZE_LINEAR, [x, scale, *zero], parts, extra)


def test_compiled_quantize_linear_allocates_nothing() -> None:
    x = np.zeros((300, 300), np.float32)
    signature = QUANTIZE_LINEAR.sign([spec_of(x), spec_of(np.ones(1, np.float32))], {})
    thunk = bind(LINEAR, signature, [x, np.ones(1, np.float32)], [garbage(signature.y)])
    assert scratch_bytes(thunk) < 1 << 12
