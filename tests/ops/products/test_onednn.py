"""oneDNN's products of matrices against those in plain numpy."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ops.convolution.packed import has_avx512
from ops.onednn.library import objection
from ops.products import onednn, onednn_strided
from ops.products.fused import FUSED_MATMUL
from ops.products.gemm import GEMM
from ops.products.matmul import MATMUL
from ops.products.onednn import PACKED
from ops.products.onednn_strided import STRIDED
from ops.schema.backends import NUMPY
from ops.schema.schema import OpSchema
from ops.tensor.layout import Layout
from ops.tensor.spec import Array, TensorSpec, spec_of
from tests.helpers.ops import activations
from tests.helpers.ops.kernel_checks import run, run_over, run_without_allocation, same, sign
from tests.helpers.ops.sample_arrays import normal

pytestmark = pytest.mark.skipif(bool(objection()), reason=objection() or "oneDNN is there")
SLOWER = {module: module._slower for module in (onednn, onednn_strided)}
needs_avx512 = pytest.mark.skipif(
    not has_avx512(), reason="without AVX-512 the library has only its own GEMM, which allocates"
)
ACTIVATIONS = [*activations.ACTIVATIONS, {"activation": "leaky_relu", "slope": 0.0}]


@pytest.fixture(autouse=True)
def _all_sizes() -> Iterator[None]:
    """Makes the library take all products, also those that it leaves to faster compiled kernels otherwise."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (onednn, onednn_strided):
            patch.setattr(module, "_slower", lambda _: False)
        yield


def check(schema: OpSchema, arrays: list[Array], attrs: dict[str, Any], constants: set[int], threads: int = 1) -> int:
    """Checks each of both kernels that takes the case against numpy's; returns how many took it."""
    signature = sign(schema, arrays, attrs, constants, threads)
    plain = sign(schema, arrays, attrs)
    (wanted,) = run(schema.kernel(plain, (NUMPY,)), plain, arrays)
    available = [k for k in (PACKED, STRIDED) if k.supports(signature)]
    atol = 1e-5 * float(np.abs(wanted[np.isfinite(wanted)]).max(initial=1))
    for kernel in available:
        (got,) = run(kernel, signature, arrays)
        same(got, wanted, rtol=1e-4, atol=atol)
        for way in schema.overwrites(signature):
            same(run_over(kernel, signature, arrays, way.input)[0], got)
    return len(available)


def _in_some_layout(draw: Any, array: Array) -> Array:
    """Draws a layout of the same elements."""
    orders = [array, array.swapaxes(-1, -2).copy().swapaxes(-1, -2), array[..., ::-1].copy()[..., ::-1]]
    if array.ndim > 2:
        orders.append(array.swapaxes(-2, -3).copy().swapaxes(-2, -3))
    return draw(st.sampled_from(orders))  # type: ignore[no-any-return]


@st.composite
def products(draw: Any) -> tuple[list[Array], dict[str, Any], set[int]]:
    """Draws batches that broadcast, single rows, scale, bias, addition; b constant or not, transposed or not."""
    rows, depth, width = (draw(st.integers(1, 40)) for _ in range(3))
    batch = tuple(draw(st.lists(st.integers(1, 3), max_size=3)))
    ones = tuple(draw(st.sampled_from([1, n])) for n in batch)
    exchanged = draw(st.booleans())
    b = (width, depth) if exchanged else (depth, width)
    lead = draw(st.sampled_from([(), ones, batch]))
    a, w, bias = normal(draw(st.integers(0, 99)), (*batch, rows, depth), (*lead, *b), (width,))
    arrays = [_in_some_layout(draw, a), _in_some_layout(draw, w), bias][: draw(st.integers(2, 3))]
    attrs = {"transpose_b": exchanged, "alpha": draw(st.sampled_from([1.0, 0.5]))} | draw(st.sampled_from(ACTIVATIONS))
    if len(arrays) > 2 and draw(st.booleans()):
        (y,) = sign(FUSED_MATMUL, arrays, attrs).outputs
        arrays += normal(5, draw(st.sampled_from([y.shape, y.shape[-1:], (1, *y.shape[1:])])))
    return arrays, attrs, draw(st.sampled_from([set(), {1}, {1, 2}])) & set(range(len(arrays)))


@needs_avx512
@settings(max_examples=30, deadline=None)
@given(products(), st.integers(1, 3))
def test_onednn_fused_matmul_equals_numpy(case: tuple[list[Array], dict[str, Any], set[int]], threads: int) -> None:
    check(FUSED_MATMUL, *case, threads)


@needs_avx512
@settings(max_examples=12, deadline=None)
@given(products())
def test_onednn_matmul_equals_numpy(case: tuple[list[Array], dict[str, Any], set[int]]) -> None:
    arrays, attrs, constants = case
    b = arrays[1].swapaxes(-1, -2) if attrs["transpose_b"] else arrays[1]
    check(MATMUL, [arrays[0], b], {}, constants & {1})


@needs_avx512
@settings(max_examples=12, deadline=None)
@given(st.tuples(*(st.integers(1, 40) for _ in range(3))), st.booleans(), st.sampled_from([1.0, 0.25]), st.data())
def test_onednn_gemm_equals_numpy(
    sizes: tuple[int, int, int], exchanged: bool, alpha: float, data: st.DataObject
) -> None:
    rows, depth, width = sizes
    a, b, c = normal(1, (rows, depth), (width, depth) if exchanged else (depth, width), (rows, width))
    arrays = [a, b, *data.draw(st.sampled_from([[], [c[0]], [c]]))]
    constants = data.draw(st.sampled_from([set(), {1}]))
    check(GEMM, arrays, {"trans_b": exchanged, "alpha": alpha}, constants)


@needs_avx512
@pytest.mark.parametrize("finish", ACTIVATIONS)
@pytest.mark.parametrize("constants", [set(), {1}])
def test_onednn_matmul_spreads_nan_and_infinities_as_numpy(finish: dict[str, Any], constants: set[int]) -> None:
    a, b = normal(2, (7, 20), (20, 33))
    a[1], b[1] = 0, np.abs(b[1]) + 1
    a[2, 1], a[4, 1], a[6, 1] = np.nan, np.inf, -np.inf
    with np.errstate(all="ignore"):
        taken = check(FUSED_MATMUL, [a, b, b[0].copy()], finish, constants)
    refused = finish.get("slope") == 0 or "gelu" in finish.get("activation", "")
    assert taken == (0 if refused else len(constants) + 1)


@needs_avx512
def test_onednn_products_with_silu_are_near_float64_over_all_of_float32() -> None:
    """One number and fifteen zeros times rows of ones: the products are exact."""
    x = np.arange(0, 2**32, 65537, dtype=np.uint32).view(np.float32)
    a = np.zeros((x.size, 16), np.float32)
    a[:, 0] = x
    a = a[np.isfinite(x)]
    arrays = [a, np.ones((16, 16), np.float32)]
    signature = sign(FUSED_MATMUL, arrays, {"activation": "silu"}, {1})
    assert PACKED.supports(signature)
    got, exact = run(PACKED, signature, arrays)[0][:, 5].astype(float), a[:, 0].astype(float)
    with np.errstate(over="ignore"):
        wanted = exact / (1 + np.exp(-exact))
    assert (np.abs(got - wanted) <= 4e-7 * np.abs(wanted) + 1e-36).all()


@needs_avx512
@pytest.mark.parametrize("constants", [set(), {1}])
def test_onednn_matmul_takes_the_scratchpad_alone(constants: set[int]) -> None:
    arrays = normal(3, (2, 128, 64), (64, 256), (256,), (2, 128, 256))
    attrs = {"alpha": 0.5, "activation": "silu"}
    signature = sign(FUSED_MATMUL, arrays, attrs, constants)
    for kernel in (k for k in (PACKED, STRIDED) if k.supports(signature)):
        run_without_allocation(kernel, signature, arrays)


@needs_avx512
def test_onednn_matmul_reads_heads_side_by_side_in_place() -> None:
    q, k = (a.transpose(0, 2, 1, 3) for a in normal(4, (1, 16, 3, 8), (1, 16, 3, 8)))
    signature = MATMUL.sign([spec_of(q), spec_of(k.swapaxes(-1, -2))], {})
    assert STRIDED.accepts(signature, 0, Layout.of(q))
    assert STRIDED.accepts(signature, 1, Layout.of(k.swapaxes(-1, -2)))
    assert not STRIDED.accepts(signature, 0, Layout.of(q[..., ::-1]))
    assert check(MATMUL, [q, k.swapaxes(-1, -2)], {}, set()) == 1


@pytest.mark.parametrize(
    ("rows", "depth", "width", "attrs", "taken"),
    [
        (128, 384, 1536, {}, False),
        (1, 1280, 1000, {}, False),
        (1, 4096, 4096, {}, True),
        (512, 3072, 768, {}, True),
        (512, 3072, 768, {"activation": "silu"}, True),
        (512, 3072, 768, {"activation": "gelu_erf"}, False),
        (512, 3072, 768, {"activation": "gelu_tanh"}, False),
    ],
)
def test_onednn_matmul_leaves_faster_cases_to_compiled_kernels(
    rows: int, depth: int, width: int, attrs: dict[str, Any], taken: bool
) -> None:
    specs = [TensorSpec(shape, np.dtype("float32")) for shape in ((rows, depth), (depth, width), (width,))]
    signature = FUSED_MATMUL.sign(specs, attrs, frozenset({1, 2}))
    with pytest.MonkeyPatch.context() as patch:
        for module, slower in SLOWER.items():
            patch.setattr(module, "_slower", slower)
        assert PACKED.supports(signature) == (taken and has_avx512())
        assert not STRIDED.supports(signature)
