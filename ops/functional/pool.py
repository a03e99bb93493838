"""Pooling on vars: x (N, C, spatial...)."""

from typing import Any, cast

from ops.functional.apply import V, apply, apply1
from ops.functional.spatial import Sizes, both_pads, each
from ops.pool.global_pooling import GLOBAL_AVERAGE_POOL, GLOBAL_LP_POOL, GLOBAL_MAX_POOL
from ops.pool.pool import AVERAGE_POOL, LP_POOL, MAX_POOL
from ops.spatial.depth_to_space import DEPTH_TO_SPACE, SPACE_TO_DEPTH


def _window(x: V, kernel_shape: Sizes, strides: Sizes, pads: Sizes, dilations: Sizes) -> dict[str, Any]:
    n = x.spec.ndim - 2
    return {
        "kernel_shape": each(kernel_shape, n),
        "strides": each(strides, n),
        "pads": both_pads(pads, n),
        "dilations": each(dilations, n),
    }


def max_pool(
    x: V,
    kernel_shape: Sizes,
    strides: Sizes = 1,
    pads: Sizes = 0,
    *,
    dilations: Sizes = 1,
    ceil_mode: bool = False,
    auto_pad: str = "NOTSET",
) -> V:
    """The largest element of each window."""
    window = _window(x, kernel_shape, strides, pads, dilations)
    return apply1(MAX_POOL, x, **window, ceil_mode=ceil_mode, auto_pad=auto_pad)


def max_pool_with_indices(
    x: V,
    kernel_shape: Sizes,
    strides: Sizes = 1,
    pads: Sizes = 0,
    *,
    dilations: Sizes = 1,
    ceil_mode: bool = False,
    auto_pad: str = "NOTSET",
    storage_order: int = 0,
) -> tuple[V, V]:
    """The largest element of each window, and where it is in the whole of x (int64)."""
    window = _window(x, kernel_shape, strides, pads, dilations)
    more = {"ceil_mode": ceil_mode, "auto_pad": auto_pad, "storage_order": storage_order}
    return cast(tuple[V, V], apply(MAX_POOL, (x,), **window, **more, with_indices=True))


def average_pool(
    x: V,
    kernel_shape: Sizes,
    strides: Sizes = 1,
    pads: Sizes = 0,
    *,
    dilations: Sizes = 1,
    ceil_mode: bool = False,
    auto_pad: str = "NOTSET",
    count_include_pad: bool = False,
) -> V:
    """The mean of each window; padding counts as zeros only with `count_include_pad`."""
    window = _window(x, kernel_shape, strides, pads, dilations)
    more = {"ceil_mode": ceil_mode, "auto_pad": auto_pad, "count_include_pad": count_include_pad}
    return apply1(AVERAGE_POOL, x, **window, **more)


def lp_pool(
    x: V,
    kernel_shape: Sizes,
    strides: Sizes = 1,
    pads: Sizes = 0,
    *,
    p: int = 2,
    dilations: Sizes = 1,
    ceil_mode: bool = False,
    auto_pad: str = "NOTSET",
) -> V:
    """(sum of |x| ** p) ** (1 / p) of each window."""
    window = _window(x, kernel_shape, strides, pads, dilations)
    return apply1(LP_POOL, x, **window, p=p, ceil_mode=ceil_mode, auto_pad=auto_pad)


def global_average_pool(x: V) -> V:
    """The mean of each channel: (N, C, 1...)."""
    return apply1(GLOBAL_AVERAGE_POOL, x)


def global_max_pool(x: V) -> V:
    """The largest element of each channel: (N, C, 1...)."""
    return apply1(GLOBAL_MAX_POOL, x)


def global_lp_pool(x: V, p: int = 2) -> V:
    """(sum of |x| ** p) ** (1 / p) of each channel: (N, C, 1...)."""
    return apply1(GLOBAL_LP_POOL, x, p=p)


def depth_to_space(x: V, blocksize: int, mode: str = "DCR") -> V:
    """(N, C, H, W) to (N, C / b / b, H * b, W * b)."""
    return apply1(DEPTH_TO_SPACE, x, blocksize=blocksize, mode=mode)


def space_to_depth(x: V, blocksize: int, mode: str = "DCR") -> V:
    """(N, C, H, W) to (N, C * b * b, H / b, W / b)."""
    return apply1(SPACE_TO_DEPTH, x, blocksize=blocksize, mode=mode)
