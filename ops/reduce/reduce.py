"""Reductions over axes (ONNX ReduceSum, ReduceMean, ReduceMax ... in their newest versions)."""

from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any

import numpy as np
from attrs import frozen

from ops.common.apply import V, apply1
from ops.common.blocks import Index, working_dtype
from ops.common.costs import flops_per_input_element
from ops.common.elementwise import Dtypes, require_dtype
from ops.common.fold import (
    ATTRIBUTES,
    Fold,
    Load,
    dense_for_sums,
    fold_scratch,
    kept_shape,
    mapped,
    reduced_axes,
    reduced_spec,
)
from ops.common.thunks import in_turn
from ops.reduce.args import ABS, DIVIDED, MAX, MIN, ROOT, SQUARE, SUM
from ops.reduce.onednn import largest, smallest
from ops.reduce.reduce_compiled import reduce_kernel
from ops.schema.backward import Backward, Tensor, Terms
from ops.schema.schema import Attrs, Binding, GradientRule, Kernel, OpSchema, Signature, Specs, Thunk, no_contiguity
from ops.tensor.limits import constant, highest, lowest
from ops.tensor.spec import BOOL, FLOATS, INTEGERS, NUMBERS, Array, Axes, TensorSpec

Finish = Callable[[Array, int], tuple[Thunk, ...]]
"""Passes over the folded rows; the number says how many elements went into each."""


def _axes(signature: Signature) -> tuple[int, ...]:
    return reduced_axes(signature.attrs, signature.x.ndim)


def _rows(signature: Signature, dtype: np.dtype[Any]) -> TensorSpec:
    return TensorSpec(kept_shape(signature.x.shape, _axes(signature)), dtype)


def _reduction(
    name: str,
    kernel: Kernel,
    summary: str,
    dtypes: Dtypes = NUMBERS,
    *,
    gradient: GradientRule,
    vector: tuple[Kernel, ...] = (),
) -> OpSchema:
    def infer(inputs: Specs, attrs: Attrs) -> Specs:
        require_dtype(inputs[0], dtypes)
        return (reduced_spec(inputs[0], attrs),)

    kernels = (*vector, kernel)
    return OpSchema(
        name, infer, kernels, attributes=ATTRIBUTES, cost=flops_per_input_element(1), summary=summary, gradient=gradient
    )


def _extreme(function: np.ufunc, empty: Callable[[np.dtype[Any]], Array]) -> Kernel:
    """Returns the kernel of a maximum or minimum; of no elements it is `empty`."""

    def bind(call: Binding) -> Thunk:
        rows = call.y.reshape(_rows(call.signature, call.y.dtype).shape)
        if not call.x.size:
            return partial(rows.fill, empty(call.y.dtype))
        return partial(function.reduce, call.x, _axes(call.signature), None, rows, keepdims=True)

    return Kernel("numpy", bind)


def _below_all(dtype: np.dtype[Any]) -> Array:
    return constant(-np.inf, dtype) if dtype in FLOATS else lowest(dtype)


def _above_all(dtype: np.dtype[Any]) -> Array:
    return constant(np.inf, dtype) if dtype in FLOATS else highest(dtype)


def _as_is(_: Array, __: int) -> tuple[Thunk, ...]:
    return ()


def _mean(rows: Array, count: int) -> tuple[Thunk, ...]:
    return (partial(np.divide, rows, constant(count, rows.dtype), rows),)


def _root(rows: Array, _: int) -> tuple[Thunk, ...]:
    return (partial(np.sqrt, rows, rows),)


def _log(rows: Array, _: int) -> tuple[Thunk, ...]:
    return (partial(np.log, rows, rows),)


@frozen(eq=False)
class _Recipe:
    """A reduction: the function that folds, how elements are loaded, and how the result is finished.

    Integers may have to be folded `in_floats`.
    """

    function: np.ufunc = np.add
    load: Load | None = None
    finish: Finish = _as_is
    in_floats: bool = False

    def dtype(self, signature: Signature) -> np.dtype[Any]:
        """Returns the dtype of the fold."""
        if self.in_floats and signature.x.dtype in INTEGERS:
            return np.dtype("float64")
        return working_dtype(signature.x.dtype)

    def temporaries(self, signature: Signature) -> tuple[TensorSpec, ...]:
        """Returns the specs of the rows, a block and a part.

        There are no rows where they are made in the output, and no part where numpy folds all at once.
        """
        dtype = self.dtype(signature)
        if dtype == signature.x.dtype:
            none = TensorSpec((0,), dtype)
            return (none, none, none) if self.load is None else (none, *fold_scratch(signature, dtype))
        return (_rows(signature, dtype), *fold_scratch(signature, dtype))

    def bind(self, call: Binding) -> Thunk:
        """Returns the thunk: the fold, then its end, then a copy where the fold has another dtype than y."""
        rows, block, part = call.temporaries
        y = call.y.reshape(_rows(call.signature, call.y.dtype).shape)
        if rows.dtype == y.dtype:
            rows = y
        fold = Fold(call.x, _axes(call.signature), block, part)
        steps = (*fold.steps(self.function, rows, self.load), *self.finish(rows, fold.count))
        return in_turn(*steps) if rows is y else in_turn(*steps, partial(np.copyto, y, rows, casting="unsafe"))


def _folding(
    name: str, recipe: _Recipe, summary: str, *, gradient: GradientRule, vector: tuple[Kernel, ...] = ()
) -> OpSchema:
    contiguous = dense_for_sums if recipe.load is None else no_contiguity  # what is loaded is dense
    kernel = Kernel("fold", recipe.bind, recipe.temporaries, contiguous)
    return _reduction(name, kernel, summary, gradient=gradient, vector=vector)


_SHIFTED = _Recipe(load=mapped(np.exp), finish=_log, in_floats=True)


def _shift(signature: Signature) -> TensorSpec:
    return _rows(signature, _SHIFTED.dtype(signature))


def _log_sum_exp_temporaries(signature: Signature) -> Specs:
    return _shift(signature), *_SHIFTED.temporaries(signature)


def _log_sum_exp(call: Binding) -> Thunk:
    """Returns the thunk of log(sum(exp(x - m))) + m with m = max(x).

    m is clipped to finite numbers: infinity minus itself would be NaN.
    """
    m, rows, block, part = call.temporaries
    y = call.y.reshape(m.shape)
    if m.dtype == y.dtype:
        rows = y

    def load(source: Array, loaded: Array, where: Index) -> tuple[Thunk, ...]:
        minus = partial(np.subtract, loaded, m[where], loaded)
        return (partial(np.copyto, loaded, source), minus, partial(np.exp, loaded, loaded))

    fold = Fold(call.x, _axes(call.signature), block, part)
    steps: tuple[Thunk, ...] = (
        *fold.steps(np.maximum, m),
        partial(m.clip, lowest(m.dtype), highest(m.dtype), m),
        *fold.steps(np.add, rows, load),
        *_log(rows, fold.count),
        partial(np.add, rows, m, rows),
    )
    return in_turn(*steps) if rows is y else in_turn(*steps, partial(np.copyto, y, rows, casting="unsafe"))


def _kept(b: Backward, var: Tensor) -> Tensor:
    """Returns the output, or its gradient, with the reduced axes in it."""
    return b.reshape(var, kept_shape(b.signature.x.shape, _axes(b.signature)))


def _spread(b: Backward, var: Tensor) -> Tensor:
    return b.expand(_kept(b, var), b.signature.x.shape)


def _sum_gradient(b: Backward) -> Terms:
    return (_spread(b, b.dy),)


def _mean_gradient(b: Backward) -> Terms:
    count = prod(b.signature.x.shape[a] for a in _axes(b.signature))
    return (_spread(b, b.dy / float(max(count, 1))),)


def _extreme_gradient(b: Backward) -> Terms:
    """Returns the gradient: all elements that are the extreme share it evenly, as in torch.amax."""
    chosen = b.cast(b.equal(b.x, _kept(b, b.y)), b.signature.x.dtype)
    share = _kept(b, b.dy) / b.sum(chosen, _axes(b.signature))
    return (chosen * share,)


def _prod_gradient(b: Backward) -> Terms:
    """Returns the gradient of a product: dy times the product of all other elements.

    That product is the one of all elements but zeros, divided by x; it is 0 where another element is 0.
    """
    axes, (zero, one) = _axes(b.signature), (b.constant(v, b.signature.x) for v in (0.0, 1.0))
    is_zero = b.equal(b.x, zero)
    zeros = b.cast(is_zero, b.signature.x.dtype)
    safe = b.where(is_zero, one, b.x)
    others = b.apply1(REDUCE_PROD, safe, axes=axes) / safe
    lone = b.equal(b.sum(zeros, axes), zeros)
    return (b.where(lone, others * _kept(b, b.dy), zero),)


def _l1_gradient(b: Backward) -> Terms:
    return (b.sign(b.x) * _kept(b, b.dy),)


def _l2_gradient(b: Backward) -> Terms:
    """Returns the gradient, and 0 where the norm is 0, as in torch.linalg.norm."""
    zero = b.constant(0.0, b.signature.x)
    slope = b.where(b.equal(b.y, zero), zero, b.dy / b.y)
    return (b.x * _kept(b, slope),)


def _sum_square_gradient(b: Backward) -> Terms:
    return (b.x * _kept(b, b.dy * 2.0),)


def _log_sum_gradient(b: Backward) -> Terms:
    return (_spread(b, b.dy * b.exp(-b.y)),)


def _log_sum_exp_gradient(b: Backward) -> Terms:
    return (b.exp(b.x - _kept(b, b.y)) * _kept(b, b.dy),)


_EXTREMES = NUMBERS | {BOOL}
_VECTOR_MAX, _VECTOR_MIN = reduce_kernel(MAX), reduce_kernel(MIN)
REDUCE_MAX = _reduction(
    "reduce_max",
    _extreme(np.maximum, _below_all),
    "Largest element; NaN wins.",
    _EXTREMES,
    gradient=_extreme_gradient,
    vector=(largest(_VECTOR_MAX), _VECTOR_MAX),
)
REDUCE_MIN = _reduction(
    "reduce_min",
    _extreme(np.minimum, _above_all),
    "Smallest element; NaN wins.",
    _EXTREMES,
    gradient=_extreme_gradient,
    vector=(smallest(_VECTOR_MIN), _VECTOR_MIN),
)
REDUCE_SUM = _folding("reduce_sum", _Recipe(), "Sum.", gradient=_sum_gradient, vector=(reduce_kernel(SUM),))
REDUCE_PROD = _folding("reduce_prod", _Recipe(np.multiply), "Product.", gradient=_prod_gradient)
REDUCE_MEAN = _folding(
    "reduce_mean",
    _Recipe(finish=_mean, in_floats=True),
    "Mean; of integers, truncated.",
    gradient=_mean_gradient,
    vector=(reduce_kernel(SUM, DIVIDED),),
)
REDUCE_L1 = _folding(
    "reduce_l1", _Recipe(load=mapped(np.absolute)), "Sum of |x|.", gradient=_l1_gradient, vector=(reduce_kernel(ABS),)
)
REDUCE_SUM_SQUARE = _folding(
    "reduce_sum_square",
    _Recipe(load=mapped(np.square)),
    "Sum of x squared.",
    gradient=_sum_square_gradient,
    vector=(reduce_kernel(SQUARE),),
)
REDUCE_L2 = _folding(
    "reduce_l2",
    _Recipe(load=mapped(np.square), finish=_root, in_floats=True),
    "Root of the sum of x squared.",
    gradient=_l2_gradient,
    vector=(reduce_kernel(SQUARE, ROOT),),
)
REDUCE_LOG_SUM = _folding(
    "reduce_log_sum", _Recipe(finish=_log, in_floats=True), "log(sum(x))", gradient=_log_sum_gradient
)
REDUCE_LOG_SUM_EXP = _reduction(
    "reduce_log_sum_exp",
    Kernel("fold", _log_sum_exp, _log_sum_exp_temporaries),
    "log(sum(exp(x))), without overflow.",
    gradient=_log_sum_exp_gradient,
)
OPS = (
    *(REDUCE_MAX, REDUCE_MIN, REDUCE_SUM, REDUCE_PROD, REDUCE_MEAN),
    *(REDUCE_L1, REDUCE_L2, REDUCE_SUM_SQUARE, REDUCE_LOG_SUM, REDUCE_LOG_SUM_EXP),
)


OptionalAxes = Axes | None
"""All axes where it is None, none where it is empty."""


def reduce_max(x: V, axes: OptionalAxes = None, keepdims: bool = True) -> V:
    """Returns the largest element over `axes`, which stay with length 1 where `keepdims` is set."""
    return apply1(REDUCE_MAX, x, axes=axes, keepdims=keepdims)


def reduce_min(x: V, axes: OptionalAxes = None, keepdims: bool = True) -> V:
    """Returns the smallest element over `axes`, which stay with length 1 where `keepdims` is set."""
    return apply1(REDUCE_MIN, x, axes=axes, keepdims=keepdims)


def reduce_sum(x: V, axes: OptionalAxes = None, keepdims: bool = True) -> V:
    """Returns the sum over `axes`, which stay with length 1 where `keepdims` is set."""
    return apply1(REDUCE_SUM, x, axes=axes, keepdims=keepdims)


def reduce_prod(x: V, axes: OptionalAxes = None, keepdims: bool = True) -> V:
    """Returns the product over `axes`, which stay with length 1 where `keepdims` is set."""
    return apply1(REDUCE_PROD, x, axes=axes, keepdims=keepdims)


def reduce_mean(x: V, axes: OptionalAxes = None, keepdims: bool = True) -> V:
    """Returns the mean over `axes`, which stay with length 1 where `keepdims` is set."""
    return apply1(REDUCE_MEAN, x, axes=axes, keepdims=keepdims)


def reduce_l1(x: V, axes: OptionalAxes = None, keepdims: bool = True) -> V:
    """Returns the sum of |x| over `axes`, which stay with length 1 where `keepdims` is set."""
    return apply1(REDUCE_L1, x, axes=axes, keepdims=keepdims)


def reduce_l2(x: V, axes: OptionalAxes = None, keepdims: bool = True) -> V:
    """Returns the root of the sum of x squared over `axes`, which stay with length 1 where `keepdims` is set."""
    return apply1(REDUCE_L2, x, axes=axes, keepdims=keepdims)


def reduce_sum_square(x: V, axes: OptionalAxes = None, keepdims: bool = True) -> V:
    """Returns the sum of x squared over `axes`, which stay with length 1 where `keepdims` is set."""
    return apply1(REDUCE_SUM_SQUARE, x, axes=axes, keepdims=keepdims)


def reduce_log_sum(x: V, axes: OptionalAxes = None, keepdims: bool = True) -> V:
    """Returns log(sum(x)) over `axes`, which stay with length 1 where `keepdims` is set."""
    return apply1(REDUCE_LOG_SUM, x, axes=axes, keepdims=keepdims)


def reduce_log_sum_exp(x: V, axes: OptionalAxes = None, keepdims: bool = True) -> V:
    """Returns log(sum(exp(x))) over `axes`, which stay with length 1 where `keepdims` is set."""
    return apply1(REDUCE_LOG_SUM_EXP, x, axes=axes, keepdims=keepdims)
