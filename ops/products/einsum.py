"""Sums of products by labels of axes (ONNX Einsum-28): any equation, ellipses and diagonals included."""

import math
import string
from collections.abc import Sequence
from functools import partial
from typing import cast

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ops.common.apply import V, apply
from ops.common.indices import element_strides
from ops.common.thunks import in_turn
from ops.products.einsum_equation import Equation, Labels, equation_text, read
from ops.products.einsum_plan import Step, Sum, Times, plan
from ops.schema.attributes import Attribute
from ops.schema.backward import Backward, Tensor, Terms
from ops.schema.schema import Attrs, Binding, Cost, Kernel, OpSchema, Signature, Specs, Thunk, all_contiguous
from ops.tensor.errors import DtypeError
from ops.tensor.spec import NUMBERS, Array, Shape, TensorSpec, compute_dtype

_MOST_OPERANDS = 32


def _equation(inputs: Specs, attrs: Attrs) -> Equation:
    return read(attrs["equation"], [s.shape for s in inputs])


def _infer(inputs: Specs, attrs: Attrs) -> Specs:
    x = inputs[0]
    if x.dtype not in NUMBERS or any(s.dtype != x.dtype for s in inputs):
        raise DtypeError(f"takes numbers of one element type, not {', '.join(s.dtype.name for s in inputs)}")
    return (x.with_shape(_equation(inputs, attrs).shape),)


def _sizes(equation: Equation, labels: Sequence[str]) -> Shape:
    return tuple(equation.sizes[label] for label in labels)


def _temporaries(signature: Signature) -> tuple[TensorSpec, ...]:
    """Returns the specs of copies of float16 inputs, then of the results of all steps.

    The result of the last step is left out where it is the output.
    """
    equation, dtype = _equation(signature.inputs, signature.attrs), compute_dtype(signature.x.dtype)
    half = dtype != signature.x.dtype
    results = [TensorSpec(_sizes(equation, s.result), dtype) for s in plan(equation)]
    copies = [s.with_dtype(dtype) for s in signature.inputs] if half else []
    return *copies, *(results if half else results[:-1])


def _hops(array: Array, labels: Labels) -> dict[str, int]:
    """Returns the bytes from one element to the next along each label; those of a repeated label add up (a diagonal).

    They are those of a dense array, since numpy's strides are arbitrary for axes of length 1.
    """
    hops: dict[str, int] = {}
    for label, stride in zip(labels, element_strides(array.shape), strict=True):
        hops[label] = hops.get(label, 0) + stride * array.itemsize
    return hops


def _strided(array: Array, shape: Shape, strides: Shape) -> Array:
    return np.empty(shape, array.dtype) if 0 in shape else as_strided(array, shape, strides)


def _view(equation: Equation, array: Array, labels: Labels, order: Labels) -> Array:
    """Returns the array with axes in this order, of length 1 for a label that it does not have."""
    hops = _hops(array, labels)
    shape = tuple(equation.sizes[n] if n in hops else 1 for n in order)
    return _strided(array, shape, tuple(hops.get(n, 0) for n in order))


def _matrices(equation: Equation, array: Array, labels: Labels, groups: tuple[Labels, Labels, Labels]) -> Array:
    """Returns the array as (batch..., rows, columns): labels of one group are neighbours, so they are one axis."""
    (batch, rows, columns), hops = groups, _hops(array, labels)
    lengths = (math.prod(_sizes(equation, group)) for group in (rows, columns))
    last = (hops[rows[-1]] if rows else max(array.nbytes, 1), hops[columns[-1]] if columns else array.itemsize)
    return _strided(array, (*_sizes(equation, batch), *lengths), (*(hops[n] for n in batch), *last))


def _thunk(equation: Equation, step: Step, tensors: Sequence[Array], target: Array) -> Thunk:
    if isinstance(step, Sum):
        rest = tuple(n for n in step.source.named if n not in step.result)
        source = _view(equation, tensors[step.source.index], step.source.labels, (*step.result, *rest))
        if not rest:
            return partial(np.copyto, target, source)
        axes = tuple(range(len(step.result), source.ndim))
        return partial(np.add.reduce, source, axis=axes, dtype=source.dtype, out=target)
    left, right = tensors[step.left.index], tensors[step.right.index]
    if isinstance(step, Times):
        views = (_view(equation, t, o.labels, step.result) for t, o in ((left, step.left), (right, step.right)))
        return partial(np.multiply, *views, target)
    batch, rows, depth, columns = step.batch, step.rows, step.depth, step.columns
    return partial(
        np.matmul,
        _matrices(equation, left, step.left.labels, (batch, rows, depth)),
        _matrices(equation, right, step.right.labels, (batch, depth, columns)),
        _matrices(equation, target, step.result, (batch, rows, columns)),
    )


def _einsum(call: Binding) -> Thunk:
    equation, count = _equation(call.signature.inputs, call.attrs), len(call.inputs)
    buffers = list(call.temporaries)
    tensors, thunks = list(call.inputs), list[Thunk]()
    half = compute_dtype(call.x.dtype) != call.x.dtype
    if half:
        tensors, buffers = buffers[:count], buffers[count:]
        thunks += (partial(np.copyto, wide, x) for wide, x in zip(tensors, call.inputs, strict=True))
    for step, target in zip(plan(equation), buffers if half else [*buffers, call.y], strict=True):
        thunks.append(_thunk(equation, step, tensors, target))
        tensors.append(target)
    if half:
        thunks.append(partial(np.copyto, call.y, tensors[-1], casting="same_kind"))
    return in_turn(*thunks)


def _operations(equation: Equation, step: Step) -> int:
    if isinstance(step, Sum):
        return math.prod(_sizes(equation, step.source.named))
    if isinstance(step, Times):
        return math.prod(_sizes(equation, step.result))
    return 2 * math.prod(_sizes(equation, (*step.batch, *step.rows, *step.depth, *step.columns)))


def _cost(signature: Signature) -> Cost:
    equation = _equation(signature.inputs, signature.attrs)
    return Cost(sum(_operations(equation, s) for s in plan(equation)), signature.nbytes)


def _gradient(b: Backward) -> Terms:
    """Returns the gradients: each is an einsum of dy and the other operands, over the labels that it does not have."""
    equation = _equation(b.signature.inputs, b.attrs)
    return b.terms(*(partial(_operand_gradient, b, equation, i) for i in range(len(b.inputs))))


def _operand_gradient(b: Backward, equation: Equation, position: int) -> Tensor:
    """Returns the gradient of one operand. Along labels that no other operand has, all elements have the same one."""
    others = [(b.dy, equation.result)] + [
        (b.reshape(x, _sizes(equation, _named(labels))), _named(labels))
        for i, (x, labels) in enumerate(zip(b.inputs, equation.operands, strict=True))
        if i != position
    ]
    own = tuple(dict.fromkeys(_named(equation.operands[position])))
    shared = {label for _, labels in others for label in labels}
    kept = tuple(label for label in own if label in shared)
    letters = dict(zip(equation.sizes, string.ascii_letters, strict=False))
    terms = ["".join(letters[n] for n in labels) for labels in (*(t[1] for t in others), kept)]
    term = b.apply1(EINSUM, *(t[0] for t in others), equation=f"{','.join(terms[:-1])}->{terms[-1]}")
    term = b.reshape(term, [equation.sizes[n] if n in shared else 1 for n in own])
    return _on_diagonals(b, equation, position, b.expand(term, _sizes(equation, own)))


def _named(labels: Labels) -> Labels:
    return tuple(label for label in labels if label)


def _on_diagonals(b: Backward, equation: Equation, position: int, term: Tensor) -> Tensor:
    """Expands one axis for each label to all axes of the operand; off the diagonal of a repeated label are zeros."""
    labels, shape = equation.operands[position], b.signature.inputs[position].shape
    first = {label: labels.index(label) for label in labels if label}
    term = b.reshape(
        term, [n if first.get(label) == i else 1 for i, (label, n) in enumerate(zip(labels, shape, strict=True))]
    )
    for axis, (label, n) in enumerate(zip(labels, shape, strict=True)):
        if label and first[label] != axis:
            beside = [n if i in (axis, first[label]) else 1 for i in range(len(shape))]
            term = term * b.constant(np.eye(n, dtype=b.signature.y.dtype).reshape(beside), b.signature.y)
    return term


EINSUM = OpSchema(
    name="einsum",
    summary="Sums of products of all operands over the labels that the result of the `equation` does not have.",
    infer=_infer,
    kernels=(Kernel("blas", _einsum, _temporaries, all_contiguous),),
    arity=(1, _MOST_OPERANDS),
    attributes=(Attribute("equation", equation_text),),
    cost=_cost,
    gradient=_gradient,
)
OPS = (EINSUM,)


def einsum(equation: str, *operands: V | Array) -> V:
    """Computes numpy.einsum: products of all operands, summed over the labels that the result does not have."""
    return cast(V, apply(EINSUM, operands, equation=equation)[0])
