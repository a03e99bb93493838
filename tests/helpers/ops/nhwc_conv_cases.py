"""Cases and checks of compiled channels-last convolutions."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from ops.convolution.nhwc import NHWC_CONV
from ops.schema.schema import Kernel, Signature
from ops.tensor.spec import Array, spec_of
from tests.helpers.ops.activations import PIECEWISE_LINEAR
from tests.helpers.ops.compiled_kernel_checks import placed, run_native
from tests.helpers.ops.kernel_checks import run, same, sign
from tests.helpers.ops.sample_arrays import normal
from tests.helpers.ops.window_cases import least_sizes, lengths, window_attrs

Case = tuple[list[Array], dict[str, Any]]
"""Inputs and attributes."""


def draw_case(draw: st.DrawFn, channels: int, out: int, group: int, largest: Sequence[int]) -> Case:
    """Draws a convolution over one to three dimensions, with a bias and a tensor to add, or without.

    Strides, dilations and paddings vary, paddings may be wider than windows, and batches may be empty.
    `largest` are the largest sizes where there are up to two dimensions, and where there are three.
    """
    ndim = draw(st.integers(1, 3))
    most = 3 if ndim < 3 else 2
    attrs = window_attrs(draw, ndim, most, most, 3) | {"group": group} | draw(st.sampled_from(PIECEWISE_LINEAR))
    kernel = lengths(draw, ndim, most)
    sizes = [draw(st.integers(n, largest[ndim == 3])) for n in least_sizes(kernel, attrs)]
    shapes = [(draw(st.integers(0, 2)), *sizes, channels), (out, channels // group, *kernel), (out,)]
    seed, operands = draw(st.integers(0, 99)), draw(st.integers(2, 4))
    arrays = normal(seed, *shapes[:operands])
    if operands == 4:
        arrays += normal(seed + 100, sign(NHWC_CONV, arrays, attrs).y.shape)
    return arrays, attrs


def network_layer(channels: int, size: int, out: int, window: int = 1, stride: int = 1, **more: Any) -> Case:
    """Returns a layer of a network on one image of `size` by `size` pixels, with a bias and a lower bound of zero."""
    arrays = normal(0, (1, size, size, channels), (out, channels // more.get("group", 1), window, window), (out,))
    arrays[1] /= np.float32(np.sqrt(arrays[1][0].size))
    pads = (window // 2,) * 4
    return arrays, {"strides": (stride, stride), "pads": pads, "activation": "clip", "low": 0.0} | more


def case_signature(case: Case) -> Signature:
    """Returns the signature with constant weights."""
    return NHWC_CONV.sign([spec_of(a) for a in case[0]], case[1], frozenset({1}))


def spaced(arrays: list[Array], extra: int) -> list[Array]:
    """Returns the data and what is added with gaps between pixels, weights and bias without."""
    return [placed(a, 0 if i in (1, 2) else extra) for i, a in enumerate(arrays)]


def check_native(kernel: Kernel, plain: Kernel, case: Case, parts: int, extra: int, *, close: float) -> None:
    """Checks a kernel against a plain one, into an output of its own and into the bytes of what is added."""
    signature = case_signature(case)
    (wanted,) = run(plain, signature, case[0])
    (got,) = run_native(kernel, signature, spaced(case[0], extra), parts, extra)
    same(got, wanted, close, close)
    if len(case[0]) == 4:
        (over,) = run_native(kernel, signature, spaced(case[0], extra), parts, extra, over=3)
        same(over, got)


def check_same_in_parts(kernel: Kernel, case: Case) -> None:
    """Checks that the number of parts changes no bit."""
    results = [run_native(kernel, case_signature(case), case[0], n)[0].tobytes() for n in (1, 2, 3, 4, 7)]
    assert len(set(results)) == 1


def spread_specials(array: Array, rng: np.random.Generator, count: int) -> None:
    """Writes up to `count` of each of NaN and the infinities into an array."""
    flat = array.reshape(-1)
    for special in (np.nan, np.inf, -np.inf):
        flat[rng.integers(0, max(flat.size, 1), min(count, flat.size))] = special
