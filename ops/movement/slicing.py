"""Slices of a tensor along some of its axes (ONNX Slice-13)."""

from functools import partial

import numpy as np
from attrs import frozen

from ops.common.apply import V, apply1
from ops.common.costs import copy_cost
from ops.common.lengths import Lengths, lengths
from ops.common.thunks import in_turn
from ops.movement.copies import Move
from ops.movement.kernels import view_operator
from ops.schema.attributes import Attribute, integers, optional
from ops.schema.backward import Backward, Terms
from ops.schema.schema import Attrs, Binding, Kernel, OpSchema, Signature, Specs, Thunk
from ops.symbolic.guesses import Guess, numbers_to
from ops.tensor.dims import Dim
from ops.tensor.errors import AttributeValueError, ShapeError
from ops.tensor.layout import Layout
from ops.tensor.spec import Array, Axes, Shape, normalize_axes, several


@frozen(eq=False)
class Range:
    """`length` elements along `axis` from `start`, every `step`-th."""

    axis: int
    start: int
    length: int
    step: int

    def of(self, x: Array) -> Array:
        """Returns the view of an array."""
        ahead = (np.s_[:],) * self.axis
        tail: Array = x[(*ahead, np.s_[self.start :: self.step])]
        view: Array = tail[(*ahead, np.s_[: self.length])]
        return view


def resolve_range(axis: int, start: int, end: int, step: int, dim: int) -> Range:
    """Returns the elements from `start` to before `end`; negatives count from the back, both are clamped into the axis.

    A start in front of the axis means its first element, backwards too, where numpy finds nothing. Raises
    AttributeValueError where the step is 0.
    """
    if step == 0:
        raise AttributeValueError(f"the step along axis {axis} is 0")
    if step == 1 and any(isinstance(n, Dim) for n in (start, end, dim)):
        first, last = _clamped(start, dim), _clamped(end, dim)
        return Range(axis, first, last - first if first <= last else 0, step)
    elements = range(*np.s_[max(start, -dim) : end : step].indices(dim))
    return Range(axis, elements.start, len(elements), step if len(elements) > 1 else 1)


def _clamped(position: int, dim: int) -> int:
    """Returns a position counted from the front, within an axis whose length may be a dimension."""
    if not isinstance(position, Dim) and position == 0:
        return 0
    if position < 0:
        return position + dim if -position < dim else 0
    return dim if dim <= position else position


def _ranges(attrs: Attrs, shape: Shape) -> tuple[Range, ...]:
    starts, ends = attrs["starts"], attrs["ends"]
    axes = attrs["axes"] if attrs["axes"] is not None else tuple(range(len(starts)))
    steps = attrs["steps"] if attrs["steps"] is not None else (1,) * len(starts)
    if not len(starts) == len(ends) == len(axes) == len(steps):
        raise ShapeError(f"starts {starts}, ends {ends}, axes {axes}, steps {steps} differ in length")
    rows = zip(normalize_axes(axes, len(shape)), starts, ends, steps, strict=True)
    return tuple(resolve_range(axis, start, end, step, shape[axis]) for axis, start, end, step in rows)


def _infer(inputs: Specs, attrs: Attrs) -> Specs:
    (x,) = inputs
    lengths = {r.axis: r.length for r in _ranges(attrs, x.shape)}
    return (x.with_shape([lengths.get(i, n) for i, n in enumerate(x.shape)]),)


def _views(layout: Layout, signature: Signature) -> tuple[Layout | None, ...]:
    for r in _ranges(signature.attrs, signature.x.shape):
        layout = layout.slice(r.axis, r.start, r.length, r.step)
    return (layout,)


def _slice(call: Binding) -> tuple[Move, ...]:
    source = call.x
    for r in _ranges(call.attrs, call.x.shape):
        source = r.of(source)
    return ((source, call.y),)


def _gradient(b: Backward) -> Terms:
    return (b.apply1(SLICE_GRADIENT, b.dy, shape=b.signature.x.shape, **b.attrs),)


def _infer_gradient(inputs: Specs, attrs: Attrs) -> Specs:
    x = inputs[0].with_shape(attrs["shape"])
    (y,) = _infer((x,), attrs)
    if y != inputs[0]:
        raise ShapeError(f"{inputs[0]} is no such slice of shape {x.shape}; that is {y}")
    return (x,)


def _slice_gradient(call: Binding) -> Thunk:
    target = call.y
    for r in _ranges(call.attrs, call.y.shape):
        target = r.of(target)
    return in_turn(partial(call.y.fill, 0), partial(np.copyto, target, call.x))


def _gradient_again(b: Backward) -> Terms:
    return (b.apply1(SLICE, b.dy, **{n: v for n, v in b.attrs.items() if n != "shape"}),)


_ATTRIBUTES = (
    Attribute("starts", integers),
    Attribute("ends", integers),
    Attribute("axes", optional(integers), None),
    Attribute("steps", optional(integers), None),
)
SLICE = view_operator(
    "slice",
    "Along each of `axes` (all leading ones where none are given) the elements starts:ends:steps.",
    infer=_infer,
    views=_views,
    moves=_slice,
    gradient=_gradient,
    attributes=_ATTRIBUTES,
)
SLICE_GRADIENT = OpSchema(
    name="slice_gradient",
    summary="Zeros of `shape`, but dy where that slice of them lies.",
    infer=_infer_gradient,
    kernels=(Kernel("numpy", _slice_gradient),),
    attributes=(Attribute("shape", integers), *_ATTRIBUTES),
    cost=copy_cost,
    gradient=_gradient_again,
)
OPS = (SLICE, SLICE_GRADIENT)


def slice(
    x: V,
    starts: Lengths,
    ends: Lengths,
    axes: Axes | None = None,
    steps: Axes | None = None,
) -> V:
    """Returns the elements starts:ends:steps along each of `axes` (all leading ones where that is None).

    One axis has plain numbers. Starts and ends may be vars of integers, which the run decides.
    """
    along = tuple(range(len(several(ends)))) if axes is None else several(axes)
    shape = x.spec.shape

    def most(i: int) -> Guess:
        return numbers_to(shape[along[i]], turn=i)

    def least(i: int) -> Guess:
        """Returns the first third of a long axis, and 0 and 1 in turn for a short one."""
        return tuple(n // 3 or j % 2 for j, n in enumerate(most(i)))

    begin = lengths(starts, least)
    return apply1(SLICE, x, starts=begin, ends=lengths(ends, most), axes=axes, steps=steps)
