"""Tensors with channels last, (N, spatial..., C) in place of (N, C, spatial...), and operators on such tensors.

The spatial axes, which are the last ones, move behind the first axis. Their number is one for a whole region of
operators. So a tensor whose channels are two axes for a moment (a channel shuffle) can have channels last too.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
from attrs import frozen

import ops
from engine.graph.operator import Operator
from engine.graph.var import Var
from engine.passes.edit import Edit
from engine.passes.permutation import Perm, inverse
from ops.tensor.dims import Dim
from ops.tensor.spec import Shape


@frozen(eq=False)
class NhwcForm:
    """The form of an operator that computes it with channels last.

    `nhwc_inputs` are the positions of inputs that it reads with channels last. `build` takes all inputs, these in that
    layout, adds operators, and returns the outputs; they have channels last if `nhwc_outputs`. An operator that
    `prefers_nhwc` is faster with channels last: for its sake a region changes its layout.
    """

    nhwc_inputs: tuple[int, ...]
    build: Callable[[Sequence[Var]], tuple[Var, ...]]
    nhwc_outputs: bool = True
    prefers_nhwc: bool = False


Rule = Callable[[Edit, Operator, int], NhwcForm | None]
"""Takes an operator and the number of spatial axes, returns its form with channels last, or None where it has none."""


def nhwc_perm(ndim: int, spatial: int) -> Perm:
    """Returns the permutation from channels first to channels last."""
    return (0, *range(ndim - spatial, ndim), *range(1, ndim - spatial))


def nhwc_shape(shape: Shape, spatial: int) -> Shape:
    """Returns the shape with channels last of a tensor that has this shape with channels first."""
    return tuple(shape[axis] for axis in nhwc_perm(len(shape), spatial))


def keeps_element_order(shape: Shape, spatial: int) -> bool:
    """Returns whether both layouts have the elements in one order, always: there is one pixel, or one channel."""
    inner, outer = shape[len(shape) - spatial :], shape[1 : len(shape) - spatial]
    return any(not any(isinstance(n, Dim) for n in axes) and math.prod(axes) <= 1 for axes in (inner, outer))


def to_nhwc(var: Var, spatial: int) -> Var:
    """Adds the conversion of a tensor to channels last, and returns the result."""
    if keeps_element_order(var.shape, spatial):
        return ops.reshape(var, nhwc_shape(var.shape, spatial))
    return ops.transpose(var, nhwc_perm(var.ndim, spatial))


def to_nchw(var: Var, spatial: int, shape: Shape) -> Var:
    """Adds the conversion of a tensor back to channels first, where it has this shape, and returns the result."""
    if keeps_element_order(shape, spatial):
        return ops.reshape(var, shape)
    return ops.transpose(var, inverse(nhwc_perm(var.ndim, spatial)))


def constant_to_nhwc(edit: Edit, var: Var, spatial: int) -> Var:
    """Adds a copy of a constant with channels last, and returns it."""
    array = edit.constants[var]
    return edit.constant(np.ascontiguousarray(array.transpose(nhwc_perm(array.ndim, spatial))), edit.name(var))


def has_channels(var: Var, spatial: int) -> bool:
    """Returns whether a tensor has a batch axis, at least one channel axis, and this number of spatial axes."""
    return var.ndim >= spatial + 2


def is_image(var: Var, spatial: int) -> bool:
    """Returns whether a tensor has a batch axis, one channel axis, and this number of spatial axes."""
    return var.ndim == spatial + 2
