"""Sum, mean, minimum and maximum of any number of broadcast inputs (ONNX Sum, Mean, Min, Max)."""

import operator
from collections.abc import Sequence
from functools import partial, reduce

import numpy as np

from ops.common.apply import Mixed, V, combine
from ops.common.blocks import Block, Passes, blocked
from ops.common.costs import flops_per_element
from ops.common.elementwise import Dtypes, broadcast
from ops.schema.backward import Backward, Tensor, Terms
from ops.schema.schema import Binding, Cost, GradientRule, Kernel, OpSchema, Signature, Thunk, overwrites_from, unless
from ops.tensor.spec import FLOATS, NUMBERS, Array
from ops.vector.bytecode import Script
from ops.vector.kernel import vector_kernel

_MOST_INPUTS = 2**31 - 1


def _folded(function: np.ufunc, block: Block) -> tuple[Thunk, ...]:
    """Folds into a temporary and copies once at the end: any input may lie where the output lies."""
    (total,) = block.temporaries
    rest = (partial(function, total, a, out=total) for a in block.inputs[1:])
    return (partial(np.copyto, total, block.x), *rest, partial(np.copyto, block.y, total))


def _sum(block: Block) -> tuple[Thunk, ...]:
    return _folded(np.add, block)


def _mean(block: Block) -> tuple[Thunk, ...]:
    return (*_sum(block), partial(np.divide, block.y, block.number(len(block.inputs)), block.y))


def _min(block: Block) -> tuple[Thunk, ...]:
    return _folded(np.minimum, block)


def _max(block: Block) -> tuple[Thunk, ...]:
    return _folded(np.maximum, block)


def _is_pair(signature: Signature) -> bool:
    return len(signature.inputs) == 2


_not_pair = unless(_is_pair, "not two inputs")


def _is_single(signature: Signature) -> bool:
    return len(signature.inputs) == 1


_not_single = unless(_is_single, "not one input")


def _copy(call: Binding) -> Thunk:
    return partial(np.copyto, call.y, call.x)


def _pair(function: np.ufunc, call: Binding) -> Thunk:
    return partial(function, *call.inputs, out=call.y)


def _cost(signature: Signature) -> Cost:
    return flops_per_element(len(signature.inputs))(signature)


def _sum_gradient(b: Backward) -> Terms:
    return b.terms(*(lambda: b.dy for _ in b.inputs))


def _mean_gradient(b: Backward) -> Terms:
    share = b.dy / float(len(b.inputs))
    return b.terms(*(lambda: share for _ in b.inputs))


def _extreme_gradient(b: Backward) -> Terms:
    """Returns the gradients of a maximum or minimum: all inputs that are the extreme share it evenly.

    torch.maximum does the same, and torch.amax over a stack.
    """
    chosen = [b.cast(b.equal(x, b.y), b.signature.y.dtype) for x in b.inputs]
    share = b.dy / reduce(operator.add, chosen)

    def term(mask: Tensor) -> Tensor:
        return mask * share

    return b.terms(*(partial(term, mask) for mask in chosen))


def _folding(code: str, *, mean: bool = False) -> Kernel:
    """Returns the compiled kernel: one instruction for each further input, and for the mean one more."""

    def append(script: Script, _: Signature, values: Sequence[int], __: tuple[Array, ...]) -> int:
        total = values[0] if len(values) > 1 else script.append("copy", values[0])
        for value in values[1:]:
            total = script.append(code, total, value)
        return script.append("over", total, numbers=(float(len(values)),)) if mean and len(values) > 1 else total

    return vector_kernel(append)


def _variadic(
    name: str,
    dtypes: Dtypes,
    passes: Passes,
    pair: np.ufunc | None,
    summary: str,
    *,
    gradient: GradientRule,
    vector: Kernel,
) -> OpSchema:
    """Returns a schema; `pair` is the ufunc that does the whole work where there are two inputs."""
    single = Kernel("copy", _copy, unsupported=_not_single)
    pairs = () if pair is None else (Kernel("pair", partial(_pair, pair), unsupported=_not_pair),)
    return OpSchema(
        name,
        broadcast(dtypes),
        (vector, single, *pairs, blocked(passes, temporaries=1)),
        (1, _MOST_INPUTS),
        overwrites=overwrites_from(0),
        cost=_cost,
        summary=summary,
        gradient=gradient,
        elementwise=True,
    )


SUM = _variadic("sum", NUMBERS, _sum, np.add, "Sum of all inputs.", gradient=_sum_gradient, vector=_folding("add"))
MEAN = _variadic(
    "mean",
    FLOATS,
    _mean,
    None,
    "Arithmetic mean of all inputs.",
    gradient=_mean_gradient,
    vector=_folding("add", mean=True),
)
MIN = _variadic(
    "min",
    NUMBERS,
    _min,
    np.minimum,
    "Smallest of all inputs; NaN wins.",
    gradient=_extreme_gradient,
    vector=_folding("min"),
)
MAX = _variadic(
    "max",
    NUMBERS,
    _max,
    np.maximum,
    "Largest of all inputs; NaN wins.",
    gradient=_extreme_gradient,
    vector=_folding("max"),
)
OPS = (SUM, MEAN, MIN, MAX)


def sum(*operands: Mixed[V]) -> V:
    """Returns the sum of all operands, element by element."""
    return combine(SUM, *operands)


def mean(*operands: Mixed[V]) -> V:
    """Returns the arithmetic mean of all operands, element by element."""
    return combine(MEAN, *operands)


def min(*operands: Mixed[V]) -> V:
    """Returns the smallest of all operands, element by element."""
    return combine(MIN, *operands)


def max(*operands: Mixed[V]) -> V:
    """Returns the largest of all operands, element by element."""
    return combine(MAX, *operands)
