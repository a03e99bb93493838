"""The fused product against its parts: a product of matrices, a scale, additions, an activation."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ops.elementwise.activation import LEAKY_RELU
from ops.elementwise.smooth import GELU, SWISH
from ops.products.fused import FUSED_MATMUL
from ops.schema.backends import ONEDNN
from ops.schema.schema import Signature, evaluate
from ops.tensor.errors import AttributeValueError, OpError, ShapeError
from ops.tensor.spec import Array, TensorSpec
from tests.helpers.ops.activations import ACTIVATIONS
from tests.helpers.ops.kernel_checks import kernels, run, run_over, run_without_allocation, same, sign, strided_copies
from tests.helpers.ops.sample_arrays import normal

Case = tuple[list[Array], dict[str, Any]]
_SMOOTH: dict[str, Any] = {
    "gelu_erf": (GELU, {}),
    "gelu_tanh": (GELU, {"approximate": "tanh"}),
    "silu": (SWISH, {}),
}


def parts(arrays: list[Array], attrs: dict[str, Any]) -> Array:
    """Computes the product, the additions and the activation one after the other."""
    a, b, *added = arrays
    sums = np.matmul(a, b.swapaxes(-1, -2) if attrs.get("transpose_b") else b) * a.dtype.type(attrs.get("alpha", 1.0))
    for each in added:
        sums = sums + each
    activation = attrs.get("activation", "none")
    if activation in _SMOOTH:
        schema, options = _SMOOTH[activation]
        with np.errstate(over="ignore"):
            return evaluate(schema, sums, **options)[0]
    if activation == "leaky_relu":
        return evaluate(LEAKY_RELU, sums, alpha=attrs["slope"])[0]
    return np.asarray(sums.clip(attrs.get("low", -math.inf), attrs.get("high", math.inf)))


def signed(arrays: list[Array], attrs: dict[str, Any], constants: frozenset[int] = frozenset()) -> Signature:
    """Returns the signature; b and the bias may be constants."""
    return sign(FUSED_MATMUL, arrays, attrs, constants)


SIZES = st.sampled_from([0, 1, 2, 3, 5, 13, 14, 16, 29, 33])


@st.composite
def cases(draw: Any) -> Case:
    """Draws one b for all, one for each, or some that broadcast; tensors to add in full, or broadcast."""
    m, k, n = draw(SIZES), draw(SIZES), draw(SIZES)
    batch = draw(st.sampled_from([(), (), (2,), (3, 2), (0,), (1, 2)]))
    shared = draw(st.booleans())
    right = () if shared else tuple(draw(st.sampled_from([1, d])) for d in batch[draw(st.integers(0, len(batch))) :])
    attrs = {"transpose_b": draw(st.booleans()), "alpha": draw(st.sampled_from([1.0, 0.125]))}
    shapes = [(*batch, m, k), (*right, *((n, k) if attrs["transpose_b"] else (k, n))), (n,)]
    seed, dtype = draw(st.integers(0, 99)), draw(st.sampled_from(["float32", "float32", "float32", "float64"]))
    arrays = normal(seed, *shapes[: draw(st.integers(2, 3))], dtype=dtype)
    if len(arrays) > 2 and draw(st.booleans()):
        full = draw(st.booleans())
        lead = (*batch, m) if full else tuple(draw(st.sampled_from([1, d])) for d in (*batch, m))
        arrays += normal(seed + 1, (*lead, n), dtype=dtype)
    return arrays, attrs | draw(st.sampled_from(ACTIVATIONS))


def check(arrays: list[Array], attrs: dict[str, Any], constants: frozenset[int] = frozenset()) -> None:
    """Checks every kernel against the operators one by one, also over the added tensor."""
    signature, wanted = signed(arrays, attrs, constants), parts(arrays, attrs)
    for kernel in kernels(FUSED_MATMUL, signature):
        (got,) = run(kernel, signature, arrays)
        same(got, wanted, rtol=2e-4, atol=1e-4 * float(np.abs(wanted[np.isfinite(wanted)]).max(initial=1)))
        for way in FUSED_MATMUL.forwards(signature):
            (over,) = run_over(kernel, signature, arrays, way.input)
            if kernel.backend == ONEDNN:  # adds in another order there
                same(over, got, rtol=1e-5, atol=1e-5)
            else:
                assert over.tobytes() == got.tobytes(), kernel.name


@settings(max_examples=60)
@given(cases(), st.sampled_from([frozenset[int](), frozenset({1, 2})]))
def test_fused_matmul_kernels_equal_their_parts(case: Case, constants: frozenset[int]) -> None:
    check(*case, constants)


@settings(max_examples=20)
@given(cases())
def test_fused_matmul_does_not_depend_on_input_strides(case: Case) -> None:
    arrays, attrs = case
    signature = signed(arrays, attrs)
    for kernel in kernels(FUSED_MATMUL, signature):
        wanted = run(kernel, signature, arrays)[0]
        for stored in zip(*(strided_copies(a) for a in arrays), strict=True):
            same(run(kernel, signature, stored)[0], wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("finish", ACTIVATIONS)
def test_fused_matmul_of_an_encoder_allocates_nothing(finish: dict[str, Any]) -> None:
    for shapes in (
        [(1, 128, 384), (384, 1536), (1536,)],
        [(1, 128, 1536), (1536, 384), (384,), (1, 128, 384)],
        [(12, 128, 32), (12, 32, 128), (128,), (1, 128, 128)],
        [(1, 2048), (2048, 1000), (1000,)],
    ):
        arrays = normal(1, *shapes)
        signature, wanted = signed(arrays, finish, frozenset({1, 2})), parts(arrays, finish)
        for kernel in kernels(FUSED_MATMUL, signature):
            y = run_without_allocation(kernel, signature, arrays)
            same(y, wanted, rtol=1e-4, atol=1e-4 * float(np.abs(wanted).max()))


@pytest.mark.parametrize("finish", ACTIVATIONS)
def test_fused_matmul_keeps_nan_and_infinities_of_its_parts(finish: dict[str, Any]) -> None:
    for rows in (1, 20):
        arrays = normal(2, (rows, 5), (5, 37), (37,), (rows, 37))
        arrays[3][0, ::7], arrays[3][0, 1::7], arrays[3][0, 2::7] = np.nan, np.inf, -np.inf
        with np.errstate(all="ignore"):
            check(arrays, finish)
            check(arrays, finish, frozenset({1, 2}))
            arrays[0][0, 2] = np.nan
            check(arrays, finish)


def test_fused_matmul_refuses_operands_that_do_not_fit() -> None:
    a, b, c = (TensorSpec(s, np.dtype("float32")) for s in ((2, 5, 3), (3, 4), (4,)))
    with pytest.raises(ShapeError, match=r"the tensor to add is float32\[2,5,1\], but the product is float32\[2,5,4\]"):
        FUSED_MATMUL.sign([a, b, c, a.with_shape((2, 5, 1))], {})
    with pytest.raises(ShapeError, match="the bias is"):
        FUSED_MATMUL.sign([a, b, a], {})
    with pytest.raises(ShapeError, match=r"3 columns of .* against 4 rows"):
        FUSED_MATMUL.sign([a, b], {"transpose_b": True})
    with pytest.raises(ShapeError, match="takes matrices"):
        FUSED_MATMUL.sign([a, c], {})
    with pytest.raises(AttributeValueError, match="activation 'silu' has no low"):
        FUSED_MATMUL.sign([a, b], {"activation": "silu", "low": 0.0})
    with pytest.raises(OpError, match="float16"):
        FUSED_MATMUL.sign([s.with_dtype("float16") for s in (a, b)], {})


def test_fused_matmul_overwrites_only_a_tensor_like_its_output() -> None:
    arrays = normal(0, (2, 5, 3), (3, 4), (4,), (2, 5, 4))
    assert [w.input for w in FUSED_MATMUL.forwards(signed(arrays, {}))] == [3]
    assert not FUSED_MATMUL.forwards(signed([*arrays[:3], arrays[3][:1]], {}))
