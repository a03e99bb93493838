"""Tensors turned from (N, C, spatial...) to (N, spatial..., C), and what is known of an operator on such tensors.

A tensor is turned by moving its last axes, the spatial ones, to behind the first. How many these are is one number for
all that hangs together; so a tensor whose channels are two axes for a moment (a channel shuffle) is turned as well.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
from attrs import frozen

import ops
from engine.graph.operator import Operator
from engine.graph.var import Var
from engine.passes.cleanup.movement import Perm
from engine.passes.edit import Edit
from ops.tensor.spec import Shape


@frozen(eq=False)
class Turned:
    """An operator on turned tensors.

    `reads` are the positions of inputs that are turned; `build` is given all inputs so, and adds what computes the
    outputs, turned where it `leaves` them so. `gains` tells operators for whose sake others are turned.
    """

    reads: tuple[int, ...]
    build: Callable[[Sequence[Var]], tuple[Var, ...]]
    leaves: bool = True
    gains: bool = False


Rule = Callable[[Edit, Operator, int], Turned | None]
"""Of an operator and a number of spatial axes: how it is computed, or None where it cannot be."""


def order(ndim: int, spatial: int) -> Perm:
    """The axes in the order in which a turned tensor has them."""
    return (0, *range(ndim - spatial, ndim), *range(1, ndim - spatial))


def inverse(perm: Perm) -> Perm:
    """The permutation that undoes another."""
    return tuple(int(axis) for axis in np.argsort(perm))


def turned_shape(shape: Shape, spatial: int) -> Shape:
    """The shape that a turned tensor has."""
    return tuple(shape[axis] for axis in order(len(shape), spatial))


def is_free(shape: Shape, spatial: int) -> bool:
    """Whether turning moves no element: one pixel, or one channel."""
    inner, outer = shape[len(shape) - spatial :], shape[1 : len(shape) - spatial]
    return math.prod(inner) <= 1 or math.prod(outer) <= 1


def turn(var: Var, spatial: int) -> Var:
    """The turned tensor."""
    if is_free(var.shape, spatial):
        return ops.reshape(var, turned_shape(var.shape, spatial))
    return ops.transpose(var, order(var.ndim, spatial))


def turn_back(var: Var, spatial: int, shape: Shape) -> Var:
    """The tensor of that shape that was turned."""
    if is_free(shape, spatial):
        return ops.reshape(var, shape)
    return ops.transpose(var, inverse(order(var.ndim, spatial)))


def turn_constant(edit: Edit, var: Var, spatial: int) -> Var:
    """A constant, turned."""
    array = edit.constants[var]
    return edit.constant(np.ascontiguousarray(array.transpose(order(array.ndim, spatial))), edit.name(var))


def has_channels(var: Var, spatial: int) -> bool:
    """Whether it has a batch, channels, and so many spatial axes."""
    return var.ndim >= spatial + 2


def is_image(var: Var, spatial: int) -> bool:
    """The same with one axis of channels."""
    return var.ndim == spatial + 2
