"""Descriptions of tensors and of post-operations, as plain data and as objects of the library."""

import math
from typing import Any

from attrs import frozen

from ops.onednn.declarations import ANY_LAYOUT, F32, MOST_DIMS, USER_SCRATCHPAD
from ops.onednn.library import Library, RefusedError, check
from ops.tensor.errors import SchemaError
from ops.tensor.layout import dense_strides
from ops.tensor.spec import Shape

_MOST_ELEMENTS = 2**31 - 1
"""Beyond that, numbers of some implementations overflow, and one divides by nought."""


@frozen
class Tensor:
    """Dimensions in the library's order, and strides in elements; without strides the library chooses the layout."""

    shape: Shape
    strides: Shape = ()
    dtype: int = F32

    def descriptor(self, at: Library) -> Any:
        """Returns the library's memory descriptor. Raises RefusedError for more elements than it counts in its code."""
        if math.prod(self.shape) > _MOST_ELEMENTS:
            raise RefusedError(f"{math.prod(self.shape)} elements are more than {_MOST_ELEMENTS}")
        dims = numbers(at, self.shape)
        if self.strides:
            strides = numbers(at, self.strides)
            return at.new("memory_desc", "memory_desc_create_with_strides", len(self.shape), dims, self.dtype, strides)
        return at.new("memory_desc", "memory_desc_create_with_tag", len(self.shape), dims, self.dtype, ANY_LAYOUT)


def dense(shape: Shape, dtype: int = F32) -> Tensor:
    """Returns a dense tensor in C order."""
    return Tensor(shape, dense_strides(shape, 1), dtype)


def channels_last(shape: Shape, pitch: int, dtype: int = F32) -> Tensor:
    """Returns (N, spatial..., C), `pitch` elements from pixel to pixel; the library's order is (N, C, spatial...)."""
    batch, *spatial, channels = shape
    steps = [pitch * s for s in dense_strides((batch, *spatial), 1)]
    return Tensor((batch, channels, *spatial), (steps[0], 1, *steps[1:]), dtype)


def numbers(at: Library, values: Shape) -> Any:
    """Returns a `dnnl_dims_t`."""
    return at.ffi.new("dnnl_dims_t", [*values, *(0 for _ in range(MOST_DIMS - len(values)))])


@frozen
class Sum:
    """Addition of the target's previous values."""


@frozen
class Eltwise:
    """A function of one number, applied to each element."""

    algorithm: int
    alpha: float = 0.0
    beta: float = 0.0


@frozen
class Binary:
    """A function of two numbers, the second one from a tensor, which broadcasts along dimensions of one element."""

    algorithm: int
    tensor: Tensor


Post = Sum | Eltwise | Binary


def attributes(at: Library, posts: tuple[Post, ...]) -> Any:
    """Returns attributes of a primitive whose scratchpad the caller owns, and which applies `posts` to its sums."""
    attrs = at.new("primitive_attr", "primitive_attr_create")
    check(at.lib.dnnl_primitive_attr_set_scratchpad_mode(attrs, USER_SCRATCHPAD), "primitive_attr_set_scratchpad_mode")
    if posts:
        chain = at.new("post_ops", "post_ops_create")
        for post in posts:
            check(_append(at, chain, post), "post_ops_append")
        check(at.lib.dnnl_primitive_attr_set_post_ops(attrs, chain), "primitive_attr_set_post_ops")
    return attrs


def _append(at: Library, chain: Any, post: Post) -> int:
    match post:
        case Sum():
            status = at.lib.dnnl_post_ops_append_sum(chain, 1.0, 0, F32)
        case Eltwise(algorithm, alpha, beta):
            status = at.lib.dnnl_post_ops_append_eltwise(chain, algorithm, alpha, beta)
        case Binary(algorithm, tensor):
            status = at.lib.dnnl_post_ops_append_binary(chain, algorithm, tensor.descriptor(at))
        case _:
            raise SchemaError(f"{post!r} is not a post-operation")
    return int(status)
