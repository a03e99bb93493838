"""Gradients of activations: one pass each, in place over the gradient of the output.

They read the output of the activation wherever it tells the slope, since it lives anyway: what went into the activation
may then be overwritten by it. At kinks they do what PyTorch does for the same function.
"""

from collections.abc import Callable
from functools import partial

import numpy as np

from ops.common.blocks import Block, Passes, blocked
from ops.common.costs import flops_per_element
from ops.common.elementwise import require_one_dtype
from ops.schema.attributes import Attribute, number
from ops.schema.backward import Backward, Tensor, Terms
from ops.schema.schema import Attrs, Kernel, OpSchema, Overwrite, Signature, Specs, Thunk, overwrites_from
from ops.tensor.errors import GradientError, ShapeError
from ops.tensor.spec import FLOATS, Array

_BITS = {n: np.dtype(f"int{8 * n}") for n in (2, 4, 8)}


def _infer(inputs: Specs, _: Attrs) -> Specs:
    """Infers from dy and the input that decides the slope, of one spec; further inputs broadcast to it."""
    require_one_dtype(inputs, FLOATS)
    dy, x = inputs[:2]
    if dy.shape != x.shape:
        raise ShapeError(f"a gradient of shape {dy.shape} does not belong to {x.shape}")
    return (dy,)


Curve = Callable[[Backward], Tensor]
"""The gradient of what tells the slope, in the rule of the gradient."""


def no_curve(_: Backward) -> Tensor:
    """Raises GradientError, for activations without a rule for the second derivative."""
    raise GradientError("has no rule for its second derivative")


def flat(b: Backward) -> Tensor:
    """Returns zeros, for slopes that are constant almost everywhere."""
    return b.zeros(b.signature.y)


def slope(
    name: str,
    passes: Passes,
    summary: str,
    *,
    temporaries: int = 1,
    masks: int = 0,
    flops: int = 2,
    curve: Curve = no_curve,
    words: tuple[Attribute, ...] = (),
    kernels: tuple[Kernel, ...] = (),
    **defaults: float,
) -> OpSchema:
    """Returns the schema of dy times a slope that the second input tells.

    `passes` read dy and that input before they write. `curve` is the gradient of that input; `defaults` are numeric
    attributes; `kernels` are given where one of `passes` is not all.
    """

    def gradient(b: Backward) -> Terms:
        return b.terms(lambda: b.apply1(schema, b.dy, b.inputs[1], **b.attrs), partial(curve, b))

    schema = OpSchema(
        name,
        _infer,
        kernels or (blocked(passes, temporaries=temporaries, masks=masks),),
        (2, 2),
        (*words, *(Attribute(n, number, v) for n, v in defaults.items())),
        overwrites=overwrites_from(0),
        elementwise=True,
        cost=flops_per_element(flops),
        summary=summary,
        gradient=gradient,
    )
    return schema


def spread(mask: Array, buffer: Array) -> tuple[Thunk, ...]:
    """Returns steps that set all bits of an element of `buffer` where the mask holds, and clear the others."""
    bits = buffer.view(_BITS[buffer.itemsize])  # two plain passes, no masked copy; tools/bench_gradients.py times them
    return (partial(np.copyto, bits, mask.view(np.int8)), partial(np.negative, bits, bits))


def keep(dy: Array, bits: Array, y: Array) -> Thunk:
    """Returns the step y = dy where the bits are set, else 0, whatever dy is; dy may have no dimensions."""
    kind = _BITS[dy.itemsize]
    return partial(np.bitwise_and, dy.view(kind), bits.view(kind), y.view(kind))


def choose(a: Array, b: Array, bits: Array, y: Array) -> tuple[Thunk, ...]:
    """Returns steps that write y = a where the bits are set, else b.

    They change b and the bits; y may be a, b or the bits.
    """
    left, right, chosen, out = (v.view(_BITS[v.itemsize]) for v in (a, b, bits, y))
    return (
        partial(np.bitwise_xor, left, right, right),
        partial(np.bitwise_and, right, chosen, chosen),
        partial(np.bitwise_xor, left, right, right),
        partial(np.bitwise_xor, right, chosen, out),
    )


def _relu(block: Block) -> tuple[Thunk, ...]:
    """Returns steps that write dy where y is above the threshold or NaN, else 0; PyTorch keeps dy for NaN too."""
    (dy, y), (bits,), (mask,) = block.inputs, block.temporaries, block.masks
    return (
        partial(np.less_equal, y, block.number(block.attrs["threshold"]), mask),
        *block.once(_others),
        keep(dy, bits, block.y),
    )


def _others(block: Block) -> tuple[Thunk, ...]:
    """Returns steps that set all bits of an element where the mask does not hold."""
    (bits,), (mask,) = block.temporaries, block.masks
    return partial(np.logical_not, mask, mask), *spread(mask, bits)


def _leaky_relu(block: Block) -> tuple[Thunk, ...]:
    (dy, y), (bits, low), (mask,) = block.inputs, block.temporaries, block.masks
    return (
        partial(np.greater, y, block.number(0), mask),
        *spread(mask, bits),
        partial(np.multiply, dy, block.number(block.attrs["alpha"]), low),
        *choose(dy, low, bits, block.y),
    )


def _prelu(block: Block) -> tuple[Thunk, ...]:
    (dy, x, slopes), (bits, low), (mask,) = block.inputs, block.temporaries, block.masks
    return (
        partial(np.greater, x, block.number(0), mask),
        *spread(mask, bits),
        partial(np.multiply, dy, slopes, low),
        *choose(dy, low, bits, block.y),
    )


def _within(y: Array, lo: Array, hi: Array, masks: tuple[Array, ...]) -> tuple[Thunk, ...]:
    """Returns steps that write lo < y < hi to the first mask."""
    inside, below = masks
    return (
        partial(np.greater, y, lo, inside),
        partial(np.less, y, hi, below),
        partial(np.logical_and, inside, below, inside),
    )


def _clip(block: Block) -> tuple[Thunk, ...]:
    (dy, y, lo, hi), (bits,) = block.inputs, block.temporaries
    return (*_within(y, lo, hi, block.masks), *spread(block.masks[0], bits), keep(dy, bits, block.y))


def _hard_sigmoid(block: Block) -> tuple[Thunk, ...]:
    (dy, y), (bits,) = block.inputs, block.temporaries
    return (
        *_within(y, block.number(0), block.number(1), block.masks),
        *spread(block.masks[0], bits),
        keep(dy, bits, block.y),
        partial(np.multiply, block.y, block.number(block.attrs["alpha"]), block.y),
    )


def _shrink(block: Block) -> tuple[Thunk, ...]:
    (dy, y), (bits,), (mask,) = block.inputs, block.temporaries, block.masks
    return (partial(np.not_equal, y, block.number(0), mask), *spread(mask, bits), keep(dy, bits, block.y))


def _hard_swish(block: Block) -> tuple[Thunk, ...]:
    """Returns steps that compute the slope (0 below -3, x / 3 + 1/2 between, 1 above 3), and multiply dy by it."""
    (dy, x), (gate, bits), masks, three = block.inputs, block.temporaries, block.masks, block.number(3)
    return (
        partial(np.divide, x, three, gate),
        partial(np.add, gate, block.number(0.5), gate),
        *_within(x, block.number(-3), three, masks),
        *spread(masks[0], bits),
        keep(gate, bits, gate),
        partial(np.greater_equal, x, three, masks[0]),
        partial(np.copyto, bits, masks[0]),
        partial(np.add, gate, bits, gate),
        partial(np.multiply, dy, gate, block.y),
    )


def _softsign(block: Block) -> tuple[Thunk, ...]:
    (dy, y), (rest,) = block.inputs, block.temporaries
    return (
        partial(np.absolute, y, rest),
        partial(np.subtract, block.number(1), rest, rest),
        partial(np.square, rest, rest),
        partial(np.multiply, dy, rest, block.y),
    )


def _tanh(block: Block) -> tuple[Thunk, ...]:
    (dy, y), (rest,) = block.inputs, block.temporaries
    return (
        partial(np.square, y, rest),
        partial(np.subtract, block.number(1), rest, rest),
        partial(np.multiply, dy, rest, block.y),
    )


def _tanh_curve(b: Backward) -> Tensor:
    dy, y = b.inputs
    return b.dy * dy * y * -2.0


def _infer_wide(inputs: Specs, attrs: Attrs) -> Specs:
    """Infers like the activation, which has checked the further inputs."""
    require_one_dtype(inputs, FLOATS)
    return _infer(inputs[:2], attrs)


def _over_tensors(signature: Signature) -> tuple[Overwrite, ...]:
    """Permits dy and x, unless they are so small that they might be a bound or a slope as well."""
    return (Overwrite(0, 0), Overwrite(0, 1)) if signature.x.size > 1 else ()


def _wide(name: str, arity: int, passes: Passes, summary: str, *, temporaries: int, masks: int) -> OpSchema:
    """Returns the schema of a gradient whose slope depends on more inputs."""

    def gradient(b: Backward) -> Terms:
        again = partial(b.apply1, schema, b.dy, *b.inputs[1:])
        return b.terms(again, partial(flat, b), *(partial(no_curve, b) for _ in range(2, arity)))

    schema = OpSchema(
        name,
        _infer_wide,
        (blocked(passes, temporaries=temporaries, masks=masks),),
        (arity, arity),
        overwrites=_over_tensors,
        cost=flops_per_element(2),
        summary=summary,
        gradient=gradient,
    )
    return schema


RELU_GRADIENT = slope(
    "relu_gradient",
    _relu,
    "dy where y is above `threshold`, else 0.",
    masks=1,
    curve=flat,
    threshold=0.0,
)
LEAKY_RELU_GRADIENT = slope(
    "leaky_relu_gradient",
    _leaky_relu,
    "dy where y > 0, else alpha * dy.",
    temporaries=2,
    masks=1,
    curve=flat,
    alpha=0.01,
)
HARD_SIGMOID_GRADIENT = slope(
    "hard_sigmoid_gradient", _hard_sigmoid, "alpha * dy where 0 < y < 1, else 0.", masks=2, curve=flat, alpha=0.2
)
SHRINK_GRADIENT = slope("shrink_gradient", _shrink, "dy where y is not 0, else 0.", masks=1, curve=flat)
HARD_SWISH_GRADIENT = slope(
    "hard_swish_gradient",
    _hard_swish,
    "dy times 0 below x = -3, x / 3 + 1/2 between, 1 above 3.",
    temporaries=2,
    masks=2,
    flops=5,
)
SOFTSIGN_GRADIENT = slope("softsign_gradient", _softsign, "dy * (1 - |y|) squared.", flops=4)
TANH_GRADIENT = slope("tanh_gradient", _tanh, "dy * (1 - y * y)", flops=3, curve=_tanh_curve)
PRELU_GRADIENT = _wide(
    "prelu_gradient", 3, _prelu, "dy where x > 0, else slope * dy; slope broadcasts.", temporaries=2, masks=1
)
CLIP_GRADIENT = _wide("clip_gradient", 4, _clip, "dy where lo < y < hi, else 0.", temporaries=1, masks=2)
OPS = (
    *(RELU_GRADIENT, LEAKY_RELU_GRADIENT, PRELU_GRADIENT, CLIP_GRADIENT, HARD_SIGMOID_GRADIENT, SHRINK_GRADIENT),
    *(HARD_SWISH_GRADIENT, SOFTSIGN_GRADIENT, TANH_GRADIENT),
)
