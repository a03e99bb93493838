"""oneDNN's channels-last pooling against the one in plain numpy."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ops.onednn.library import objection
from ops.pool.nhwc import NHWC_AVERAGE_POOL, NHWC_MAX_POOL
from ops.pool.onednn import AVERAGE_POOL, MAX_POOL
from ops.schema.schema import Kernel, OpSchema
from ops.tensor.layout import Layout
from ops.tensor.spec import Array, TensorSpec
from tests.helpers.ops.kernel_checks import bind, run, run_without_allocation, sign
from tests.helpers.ops.onednn_checks import check, numbers

pytestmark = pytest.mark.skipif(bool(objection()), reason=objection() or "oneDNN is there")
BOTH = pytest.mark.parametrize(
    ("schema", "kernel"), [(NHWC_MAX_POOL, MAX_POOL), (NHWC_AVERAGE_POOL, AVERAGE_POOL)], ids=["max", "average"]
)
RTOL = 1e-6


@st.composite
def pools(draw: Any) -> tuple[Array, dict[str, Any]]:
    """Draws one to three dimensions, with windows that lie in the padding or reach beyond it, dilated or not."""
    ndim = draw(st.integers(1, 3))

    def some(low: int, high: int, count: int = ndim) -> tuple[int, ...]:
        return tuple(draw(st.lists(st.integers(low, high), min_size=count, max_size=count)))

    kernel = some(1, 4)
    attrs = {
        "kernel_shape": kernel,
        "strides": some(1, 3),
        "pads": tuple(min(p, k) for p, k in zip(some(0, 3, 2 * ndim), kernel * 2, strict=True)),
        "dilations": draw(st.sampled_from([(), (), (), some(1, 2)])),
        "ceil_mode": draw(st.booleans()),
    }
    sizes = [draw(st.integers(7, 24 if ndim < 3 else 9)) for _ in range(ndim)]
    return numbers(1, draw(st.integers(1, 2)), *sizes, draw(st.sampled_from([1, 3, 16, 17, 40, 64]))), attrs


def check_kind(case: tuple[Array, dict[str, Any]], kind: str, place: int, threads: int) -> None:
    """Checks the maximum, or the average of the elements inside the tensor or of all."""
    x, attrs = case
    if kind == "max":
        check(NHWC_MAX_POOL, [x], attrs, place, threads)
    else:
        check(NHWC_AVERAGE_POOL, [x], attrs | {"count_include_pad": kind == "all"}, place, threads, RTOL)


@settings(max_examples=25, deadline=None)
@given(pools(), st.sampled_from(["max", "inside", "all"]), st.integers(0, 15), st.integers(1, 3))
def test_onednn_pool_equals_numpy(case: tuple[Array, dict[str, Any]], kind: str, place: int, threads: int) -> None:
    check_kind(case, kind, place, threads)


@pytest.mark.slow
@settings(max_examples=600, deadline=None)
@given(pools(), st.sampled_from(["max", "inside", "all"]), st.integers(0, 15), st.integers(1, 3))
def test_onednn_pool_equals_numpy_in_many_cases(
    case: tuple[Array, dict[str, Any]], kind: str, place: int, threads: int
) -> None:
    check_kind(case, kind, place, threads)


@BOTH
def test_onednn_pool_takes_pools_of_networks_and_allocates_nothing(schema: OpSchema, kernel: Kernel) -> None:
    x, attrs = numbers(2, 1, 56, 56, 64), {"kernel_shape": (3, 3), "strides": (2, 2), "pads": (1, 1, 1, 1)}
    assert check(schema, [x], attrs, rtol=RTOL)
    signature = sign(schema, [x], attrs)
    run_without_allocation(kernel, signature, [x])


@settings(max_examples=25, deadline=None)
@given(pools(), st.integers(0, 99), st.booleans())
def test_onednn_maxima_inside_a_wider_tensor_have_the_bits_of_those_apart(
    case: tuple[Array, dict[str, Any]], seed: int, special: bool
) -> None:
    x, attrs = case
    rng = np.random.default_rng(seed)
    if special:
        x = rng.choice(
            np.array([0.0, -0.0, -1.0, 1.0, np.nan, -np.inf], np.float32), x.shape, p=(0.4, 0.4, *[0.05] * 4)
        )
    signature = sign(NHWC_MAX_POOL, [x], attrs)
    if not MAX_POOL.supports(signature):
        return
    (wanted,) = run(MAX_POOL, signature, [x])
    wide = np.zeros((*x.shape[:-1], x.shape[-1] + 9), np.float32)
    inside = wide[..., 4:-5]
    inside[...] = x
    around = np.zeros((*signature.y.shape[:-1], x.shape[-1] + 5), np.float32)
    bind(MAX_POOL, signature, [inside], [around[..., 2:-3]])()
    assert np.array_equal(np.isnan(around[..., 2:-3]), np.isnan(wanted))
    numbers_only = ~np.isnan(wanted)
    assert around[..., 2:-3][numbers_only].tobytes() == wanted[numbers_only].tobytes()
    assert not around[..., :2].any() and not around[..., -3:].any()


def test_onednn_averages_are_given_dense_arrays_so_that_sums_do_not_depend_on_places() -> None:
    x = numbers(3, 1, 20, 20, 48)
    signature = sign(NHWC_AVERAGE_POOL, [x[..., :32].copy()], {"kernel_shape": (3, 3)})
    inside = Layout.of(x[..., 8:40])
    assert AVERAGE_POOL.supports(signature)
    assert not AVERAGE_POOL.accepts(signature, 0, inside) and not AVERAGE_POOL.writes(inside)
    assert MAX_POOL.accepts(signature, 0, inside) and MAX_POOL.writes(inside)


@pytest.mark.parametrize(
    "attrs",
    [
        {"kernel_shape": (2, 2), "dilations": (2, 2)},
        {"kernel_shape": (3, 3), "pads": (3, 3, 0, 0)},
        {"kernel_shape": (3, 3), "strides": (2, 2), "ceil_mode": True, "count_include_pad": True},
    ],
)
def test_onednn_pool_leaves_unsupported_windows_to_other_kernels(attrs: dict[str, Any]) -> None:
    x = TensorSpec((1, 24, 24, 32), np.dtype("float32"))
    assert not AVERAGE_POOL.supports(NHWC_AVERAGE_POOL.sign([x], attrs))
    assert AVERAGE_POOL.supports(NHWC_AVERAGE_POOL.sign([x], {"kernel_shape": (3, 3)}))
    assert not AVERAGE_POOL.supports(NHWC_AVERAGE_POOL.sign([x.with_shape((0, 9, 9, 16))], {"kernel_shape": (3, 3)}))
