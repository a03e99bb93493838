"""Compiled products: in any number of parts, from and into rows with gaps, at addresses that are barely aligned."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ops.native.emit.tile_shapes import ALIGNMENT, SHAPES, tile_shape
from ops.products.case import Product, batched
from ops.products.compiled import FEW, _operands, has_near_columns, has_near_rows, packed_panels
from ops.products.fused import FUSED_MATMUL
from ops.products.gemm import GEMM
from ops.products.matmul import MATMUL
from ops.schema.backends import NUMBA, NUMPY
from ops.schema.schema import Kernel, OpSchema, Signature
from ops.tensor.layout import Layout
from ops.tensor.spec import Array, TensorSpec
from tests.helpers.ops.activations import ACTIVATIONS
from tests.helpers.ops.compiled_kernel_checks import placed, run_native
from tests.helpers.ops.kernel_checks import run, same, sign
from tests.helpers.ops.sample_arrays import normal
from tests.ops.products.test_fused import Case, cases, parts, signed


def _compiled(schema: OpSchema, signature: Signature) -> list[Kernel]:
    return [k for k in schema.kernels if k.backend == NUMBA and k.supports(signature)]


def _near(arrays: list[Array], attrs: dict[str, Any], constants: frozenset[int], extra: int) -> None:
    """Checks that one, two and three parts give the same bits, near the result of the operators one by one."""
    signature, wanted = signed(arrays, attrs, constants), parts(arrays, attrs)
    most = float(np.abs(wanted[np.isfinite(wanted)]).max(initial=1))
    for kernel in _compiled(FUSED_MATMUL, signature):
        results = [run_native(kernel, signature, arrays, n, extra)[0] for n in (1, 2, 3)]
        same(np.array(results[0]), wanted, rtol=2e-4, atol=1e-4 * most)
        assert results[1].tobytes() == results[2].tobytes() == results[0].tobytes(), kernel.name


@settings(max_examples=30)
@given(cases(), st.integers(1, 15), st.integers(0, 3), st.booleans())
def test_compiled_matmul_is_the_same_in_any_parts_and_places(case: Case, first: int, extra: int, packs: bool) -> None:
    arrays, attrs = case
    if arrays[0].dtype != np.float32 or not parts(*case).size:
        return
    stored = [placed(a, extra if a.ndim > 1 and a.shape[-1] > 1 else 0, first) for a in arrays]
    _near(stored, attrs, frozenset({1}) if packs else frozenset(), extra)


@settings(max_examples=15)
@given(st.integers(1, 40), st.integers(500, 2100), st.integers(1, 70), st.booleans(), st.sampled_from(ACTIVATIONS))
def test_compiled_matmul_sums_long_rows_in_chunks(m: int, k: int, n: int, turned: bool, finish: dict[str, Any]) -> None:
    arrays = normal(m * k + n, (m, k), (n, k) if turned else (k, n), (n,), (m, n))
    for constants in (frozenset[int](), frozenset({1})):
        _near(arrays, {"transpose_b": turned, "alpha": 0.5, **finish}, constants, 0)


def test_compiled_matmul_of_many_rows_reads_panels_block_by_block() -> None:
    arrays = normal(0, (700, 1100), (1100, 50), (50,), (700, 50))
    for constants in (frozenset[int](), frozenset({1})):
        _near(arrays, {"activation": "silu"}, constants, 1)


@pytest.mark.parametrize("rows", [1, FEW, FEW + 1, 30])
def test_heads_are_read_where_they_lie(rows: int) -> None:
    q, k = (normal(s, (2, n, 3 * 8))[0].reshape(2, n, 3, 8).transpose(0, 2, 1, 3) for s, n in ((0, rows), (1, 21)))
    attrs: dict[str, Any] = {"transpose_b": True, "alpha": 0.25}
    signature = signed([q, k], attrs)
    for kernel in _compiled(FUSED_MATMUL, signature):
        assert all(kernel.accepts(signature, i, Layout.of(v)) for i, v in enumerate((q, k)))
        (got,) = run_native(kernel, signature, [q, k], 2)
        same(np.array(got), parts([q, k], attrs), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("rows", [1, 20])
@pytest.mark.parametrize("finish", ACTIVATIONS)
def test_compiled_matmul_reads_its_addend_before_it_overwrites_it(rows: int, finish: dict[str, Any]) -> None:
    arrays = normal(4, (rows, 1500), (1500, 37), (37,), (rows, 37))
    signature = signed(arrays, finish, frozenset({1}))
    for kernel in _compiled(FUSED_MATMUL, signature):
        (wanted,) = run_native(kernel, signature, arrays, 1)
        shared = [*arrays[:3], placed(arrays[3], 2)]
        (got,) = run_native(kernel, signature, shared, 2, over=3)
        assert got.tobytes() == wanted.tobytes()


@given(st.integers(1, 9), st.integers(0, 5), st.integers(1, 9), st.integers(0, 3), st.booleans())
def test_gemm_adds_a_row_or_a_matrix(m: int, k: int, n: int, added: int, turned: bool) -> None:
    a, b, row, full = normal(m + 10 * n, (m, k), (n, k) if turned else (k, n), (n,), (m, n))
    arrays = [a, b, *((), (row,), (row[None],), (full,))[added]]
    attrs = {"alpha": 0.5, "trans_b": turned}
    signature = sign(GEMM, arrays, attrs, {1})
    (wanted,) = run(GEMM.kernel(signature, (NUMPY,)), signature, arrays)
    results = _compiled(GEMM, signature)
    assert len(results) == (2 if m > 1 else 1)
    for kernel in results:
        same(np.array(run(kernel, signature, arrays)[0]), wanted, rtol=1e-4, atol=1e-5)


def test_gemms_that_compiled_matmul_leaves_to_blas() -> None:
    a, b, column = normal(0, (3, 4), (4, 5), (3, 1))
    for arrays, attrs in (([a.T, b], {"trans_a": True}), ([a, b, column], {}), ([a, b, b[0]], {"beta": 0.5})):
        assert not _compiled(GEMM, sign(GEMM, arrays, attrs))
    wide = [v.astype(np.float64) for v in (a, b)]
    assert not _compiled(MATMUL, sign(MATMUL, wide, {}))


@pytest.mark.parametrize(("left", "right"), [((6,), (6,)), ((6,), (6, 9)), ((9, 6), (6,)), ((2, 9, 6), (6,))])
def test_compiled_matmul_takes_vectors_as_rows_or_columns(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    arrays = normal(1, left, right)
    signature = sign(MATMUL, arrays, {})
    (kernel,) = _compiled(MATMUL, signature)
    same(np.array(run(kernel, signature, arrays)[0]), np.asarray(np.matmul(*arrays)), rtol=1e-5, atol=1e-5)


def test_near_rows_and_columns_are_recognised() -> None:
    dense = np.zeros((3, 4, 5), np.float32)
    turned = dense.transpose(0, 2, 1)
    assert has_near_rows(Layout.of(dense)) and not has_near_columns(Layout.of(dense))
    assert has_near_columns(Layout.of(turned)) and not has_near_rows(Layout.of(turned))
    assert has_near_rows(Layout.of(dense[:, ::2])) and not has_near_rows(Layout.of(dense[..., ::2]))
    assert not has_near_rows(Layout.of(dense[:, ::-1]))


def test_panels_begin_at_a_line_and_end_with_zeros() -> None:
    (b,) = normal(2, (3, tile_shape().channels + 1))
    panels = packed_panels(b, 2.0)
    assert panels.shape == (2, 3, tile_shape().channels) and panels.ctypes.data % ALIGNMENT == 0
    assert (panels[1, :, 0] == 2 * b[:, -1]).all() and not panels[1, :, 1:].any()


@pytest.mark.parametrize("activation", ["gelu_erf", "gelu_tanh", "silu"])
def test_smooth_activations_from_end_to_end(activation: str) -> None:
    x = np.concatenate([np.linspace(-12, 12, 4001), [0.0, -0.0, np.inf, -np.inf, np.nan, 1e30, -1e30, 3e38, -3e38]])
    arrays = [x[:, None].astype(np.float32), np.ones((1, 1), np.float32)]
    signature = signed(arrays, {"activation": activation})
    with np.errstate(all="ignore"):
        wanted = parts([a.astype(np.float64) for a in arrays], {"activation": activation}).astype(np.float32)
    for kernel in _compiled(FUSED_MATMUL, signature):
        same(run(kernel, signature, arrays)[0], wanted, rtol=2e-6, atol=2e-6)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [s for s in SHAPES if s is not tile_shape()])
def test_compiled_matmul_tiles_for_other_processors_give_the_same(shape: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ops.products.compiled.tile_shape", lambda: shape)
    for rows, turned in ((1, False), (3, True), (33, False), (33, True)):
        arrays = normal(rows, (rows, 600), (41, 600) if turned else (600, 41), (41,), (rows, 41))
        for finish in ACTIVATIONS[1:7:2]:
            for constants in (frozenset[int](), frozenset({1})):
                _near(arrays, {"transpose_b": turned, **finish}, constants, 1)


def test_addresses_of_a_batch_are_those_of_its_matrices() -> None:
    a, b = normal(0, (2, 1, 3, 4, 5), (3, 5, 6))
    y, added = normal(1, (2, 2, 3, 4, 6), (6,))
    batch = batched(a[:, :, ::-1], b, y, (added,))
    rows = [[v.ctypes.data for v in (p.a, p.b, p.y, *p.added)] for p in map(batch.__getitem__, np.ndindex(batch.lead))]
    assert _operands(batch).tolist() == rows


def test_compiled_matmul_binds_many_small_matrices_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = normal(0, (3000, 4, 4), (3000, 4, 4))
    signature = sign(MATMUL, [a, b], {})
    (kernel,) = _compiled(MATMUL, signature)
    taken: list[tuple[int, ...]] = []
    take = Product.__getitem__

    def watched(product: Product, place: tuple[int, ...]) -> Product:
        taken.append(place)
        return take(product, place)

    monkeypatch.setattr(Product, "__getitem__", watched)
    (got,) = run(kernel, signature, [a, b])
    assert taken == [(0,)]
    same(got, a @ b, 1e-4, 1e-4)


@pytest.mark.parametrize("alpha", [1e10, 1.5, 1e-30, 0.0, float("nan")])
@pytest.mark.parametrize("schema", [FUSED_MATMUL, GEMM])
@pytest.mark.parametrize("constants", [frozenset[int](), frozenset({1})])
def test_factors_that_weights_cannot_take_are_left_to_blas(
    alpha: float, schema: OpSchema, constants: frozenset[int]
) -> None:
    specs = [TensorSpec(shape, np.dtype("float32")) for shape in ((5, 16), (16, 8))]
    assert schema.kernel(schema.sign(specs, {"alpha": 0.25}, constants), (NUMBA, NUMPY)).backend == NUMBA
    assert schema.kernel(schema.sign(specs, {"alpha": alpha}, constants), (NUMBA, NUMPY)).backend == NUMPY
