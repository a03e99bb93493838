"""Activations with parameters of their own, or of few passes (ONNX Relu, LeakyRelu, PRelu, Clip, HardSwish ...)."""

from functools import partial

import numpy as np

from ops.common.apply import Mixed, V, apply1
from ops.common.blocks import Block, Passes, blocked
from ops.common.costs import flops_per_element
from ops.common.elementwise import (
    like_input,
    require_one_dtype,
    ufunc_kernel,
    unary,
)
from ops.elementwise.activation_gradients import (
    CLIP_GRADIENT,
    HARD_SIGMOID_GRADIENT,
    HARD_SWISH_GRADIENT,
    LEAKY_RELU_GRADIENT,
    PRELU_GRADIENT,
    RELU_GRADIENT,
    SHRINK_GRADIENT,
    SOFTSIGN_GRADIENT,
    TANH_GRADIENT,
)
from ops.elementwise.comparison import GREATER, LESS
from ops.elementwise.variadic import MAX
from ops.schema.attributes import Attribute, number
from ops.schema.backward import Backward, Tensor, Terms
from ops.schema.schema import (
    Attrs,
    Binding,
    GradientRule,
    Kernel,
    OpSchema,
    Overwrite,
    Signature,
    Specs,
    Thunk,
    any_strides,
    overwrites_from,
)
from ops.tensor.errors import ShapeError
from ops.tensor.limits import constant, highest, lowest
from ops.tensor.spec import FLOATS, INTEGERS, NUMBERS, SIGNED, TensorSpec, broadcast_shapes
from ops.vector.kernel import opcode


def activation(
    name: str,
    passes: Passes,
    summary: str,
    *,
    gradient: GradientRule,
    temporaries: int = 0,
    masks: int = 0,
    flops: int = 4,
    vector: tuple[Kernel, ...] = (),
    **defaults: float,
) -> OpSchema:
    """Returns a float activation computed block by block, or by `vector`; `defaults` are its numeric attributes."""
    return OpSchema(
        name,
        like_input(FLOATS),
        (*vector, blocked(passes, temporaries=temporaries, masks=masks)),
        attributes=tuple(Attribute(n, number, v) for n, v in defaults.items()),
        overwrites=overwrites_from(0),
        cost=flops_per_element(flops),
        summary=summary,
        gradient=gradient,
        elementwise=True,
    )


def _relu(call: Binding) -> Thunk:
    """Returns a call of numpy's clip, which computes maximum(x, 0) in one pass and keeps NaN as maximum does."""
    dtype = call.y.dtype
    top = constant(np.inf, dtype) if dtype in FLOATS else highest(dtype)
    return partial(call.x.clip, constant(0, dtype), top, call.y)


def _leaky_relu(block: Block) -> tuple[Thunk, ...]:
    (low,), zero = block.temporaries, block.number(0)
    return (
        partial(np.minimum, block.x, zero, out=low),
        partial(np.multiply, low, block.number(block.attrs["alpha"]), low),
        partial(np.maximum, block.x, zero, out=block.y),
        partial(np.add, block.y, low, block.y),
    )


def _infer_prelu(inputs: Specs, _: Attrs) -> Specs:
    require_one_dtype(inputs, FLOATS | INTEGERS)
    x, slope = inputs
    if broadcast_shapes(x.shape, slope.shape) != x.shape:
        raise ShapeError(f"slope of shape {slope.shape} does not broadcast to x of shape {x.shape}")
    return (x,)


def _prelu(block: Block) -> tuple[Thunk, ...]:
    (x, slope), (low,), zero = block.inputs, block.temporaries, block.number(0)
    return (
        partial(np.minimum, x, zero, out=low),
        partial(np.multiply, low, slope, low),
        partial(np.maximum, x, zero, out=block.y),
        partial(np.add, block.y, low, block.y),
    )


def _over_tensor(signature: Signature) -> tuple[Overwrite, ...]:
    """Permits x, unless it is so small that it might be a bound or a slope as well."""
    return (Overwrite(0, 0),) if signature.x.size > 1 else ()


def _infer_clip(inputs: Specs, _: Attrs) -> Specs:
    require_one_dtype(inputs, NUMBERS)
    for bound in inputs[1:]:
        _require_single(bound)
    return (inputs[0],)


def _require_single(bound: TensorSpec) -> None:
    if bound.size != 1 or bound.ndim > 1:
        raise ShapeError(f"a bound of shape {bound.shape} is no scalar")


def _clip(call: Binding) -> Thunk:
    x, lo, hi = call.inputs
    return partial(x.clip, lo.reshape(()), hi.reshape(()), call.y)


def _thresholded_relu(block: Block) -> tuple[Thunk, ...]:
    (low,) = block.masks
    return (
        partial(np.greater, block.x, block.number(block.attrs["alpha"]), low),
        partial(np.logical_not, low, low),
        partial(np.copyto, block.y, block.x),
        partial(np.copyto, block.y, block.number(0), where=low),
    )


def _shrink(block: Block) -> tuple[Thunk, ...]:
    (moved,), (far,) = block.temporaries, block.masks
    edge, bias = block.attrs["lambd"], block.number(block.attrs["bias"])
    return (
        partial(moved.fill, 0),
        partial(np.less, block.x, block.number(-edge), far),
        partial(np.add, block.x, bias, moved, where=far),
        partial(np.greater, block.x, block.number(edge), far),
        partial(np.subtract, block.x, bias, moved, where=far),
        partial(np.copyto, block.y, moved),
    )


def _hard_sigmoid(block: Block) -> tuple[Thunk, ...]:
    y = block.y
    return (
        partial(np.multiply, block.x, block.number(block.attrs["alpha"]), y),
        partial(np.add, y, block.number(block.attrs["beta"]), y),
        partial(y.clip, block.number(0), block.number(1), y),
    )


def _hard_swish(block: Block) -> tuple[Thunk, ...]:
    (gate,) = block.temporaries
    return (
        partial(np.add, block.x, block.number(3), gate),
        partial(gate.clip, block.number(0), block.number(6), gate),
        partial(np.divide, gate, block.number(6), gate),
        partial(np.multiply, block.x, gate, block.y),
    )


def _softsign(block: Block) -> tuple[Thunk, ...]:
    (scale,) = block.temporaries
    return (
        partial(np.absolute, block.x, scale),
        partial(np.add, scale, block.number(1), scale),
        partial(np.divide, block.x, scale, block.y),
    )


def _relu_gradient(b: Backward) -> Terms:
    return (b.apply1(RELU_GRADIENT, b.dy, b.y),)


def _tanh_gradient(b: Backward) -> Terms:
    return (b.apply1(TANH_GRADIENT, b.dy, b.y),)


def _leaky_relu_gradient(b: Backward) -> Terms:
    """Returns the gradient; it reads y, which has the sign of x unless alpha is below 0."""
    alpha = b.attrs["alpha"]
    return (b.apply1(LEAKY_RELU_GRADIENT, b.dy, b.y if alpha >= 0 else b.x, alpha=alpha),)


def _prelu_gradient(b: Backward) -> Terms:
    x, slope = b.inputs

    def below() -> Tensor:
        return b.where(b.apply1(LESS, x, 0.0), x, b.constant(0.0, b.signature.x))

    return b.terms(lambda: b.apply1(PRELU_GRADIENT, b.dy, x, slope), lambda: below() * b.dy)


def _clip_gradient(b: Backward) -> Terms:
    """Returns the gradients; x gets 0 where it meets a bound (as in torch.relu6).

    A bound gets the gradient of all elements that it holds back; hi wins over lo.
    """
    x, lo, hi = b.inputs

    def low() -> Tensor:
        zero = b.constant(0.0, b.signature.x)
        held = b.where(b.apply1(LESS, x, lo), b.dy, zero)
        return b.reshape(b.sum(b.where(b.apply1(LESS, lo, hi), held, zero)), lo.shape)

    def high() -> Tensor:
        held = b.where(b.apply1(GREATER, b.apply1(MAX, x, lo), hi), b.dy, b.constant(0.0, b.signature.x))
        return b.reshape(b.sum(held), hi.shape)

    return b.terms(lambda: b.apply1(CLIP_GRADIENT, b.dy, b.y, lo, hi), low, high)


def _thresholded_relu_gradient(b: Backward) -> Terms:
    """Returns the gradient; it reads y, or x where the threshold is below 0.

    In that case, a y of 0 does not tell whether x was above the threshold.
    """
    alpha = b.attrs["alpha"]
    if alpha >= 0:
        return (b.apply1(RELU_GRADIENT, b.dy, b.y),)
    return (b.apply1(RELU_GRADIENT, b.dy, b.x, threshold=alpha),)


def _shrink_gradient(b: Backward) -> Terms:
    """Returns the gradient; it reads y, which is 0 where no gradient flows.

    Elsewhere y is 0 only where x is the bias or its opposite.
    """
    return (b.apply1(SHRINK_GRADIENT, b.dy, b.y),)


def _hard_sigmoid_gradient(b: Backward) -> Terms:
    return (b.apply1(HARD_SIGMOID_GRADIENT, b.dy, b.y, alpha=b.attrs["alpha"]),)


def _hard_swish_gradient(b: Backward) -> Terms:
    return (b.apply1(HARD_SWISH_GRADIENT, b.dy, b.x),)


def _softsign_gradient(b: Backward) -> Terms:
    return (b.apply1(SOFTSIGN_GRADIENT, b.dy, b.y),)


RELU = unary(
    "relu",
    FLOATS | SIGNED,
    Kernel("clip", _relu, writes=any_strides),
    "max(x, 0); NaN stays NaN.",
    gradient=_relu_gradient,
    code="relu",
)
TANH = unary("tanh", FLOATS, ufunc_kernel(np.tanh), "Hyperbolic tangent.", gradient=_tanh_gradient, code="tanh")
PRELU = OpSchema(
    "prelu",
    _infer_prelu,
    (opcode("prelu"), blocked(_prelu, temporaries=1)),
    (2, 2),
    overwrites=_over_tensor,
    cost=flops_per_element(4),
    summary="x where x > 0, else slope * x; slope broadcasts to x.",
    gradient=_prelu_gradient,
    elementwise=True,
)
CLIP = OpSchema(
    "clip",
    _infer_clip,
    (opcode("clip"), Kernel("clip", _clip)),
    (3, 3),
    overwrites=_over_tensor,
    cost=flops_per_element(2),
    summary="min(max(x, lo), hi) for scalars lo and hi; hi wins where lo is above it.",
    gradient=_clip_gradient,
    elementwise=True,
)
LEAKY_RELU = activation(
    "leaky_relu",
    _leaky_relu,
    "x where x > 0, else alpha * x.",
    gradient=_leaky_relu_gradient,
    vector=(opcode("leaky_relu", "alpha"),),
    temporaries=1,
    alpha=0.01,
)
THRESHOLDED_RELU = activation(
    "thresholded_relu",
    _thresholded_relu,
    "x above alpha, else 0.",
    gradient=_thresholded_relu_gradient,
    vector=(opcode("thresholded_relu", "alpha"),),
    masks=1,
    alpha=1.0,
)
SHRINK = activation(
    "shrink",
    _shrink,
    "x + bias below -lambd, x - bias above lambd, else 0.",
    gradient=_shrink_gradient,
    vector=(opcode("shrink", "bias", "lambd"),),
    temporaries=1,
    masks=1,
    bias=0.0,
    lambd=0.5,
)
HARD_SIGMOID = activation(
    "hard_sigmoid",
    _hard_sigmoid,
    "min(max(alpha * x + beta, 0), 1)",
    gradient=_hard_sigmoid_gradient,
    vector=(opcode("hard_sigmoid", "alpha", "beta"),),
    alpha=0.2,
    beta=0.5,
)
HARD_SWISH = activation(
    "hard_swish",
    _hard_swish,
    "x * min(max(x / 6 + 1/2, 0), 1)",
    gradient=_hard_swish_gradient,
    vector=(opcode("hard_swish"),),
    temporaries=1,
)
SOFTSIGN = activation(
    "softsign", _softsign, "x / (1 + |x|)", gradient=_softsign_gradient, vector=(opcode("softsign"),), temporaries=1
)
OPS = (RELU, TANH, PRELU, CLIP, LEAKY_RELU, THRESHOLDED_RELU, SHRINK, HARD_SIGMOID, HARD_SWISH, SOFTSIGN)


def relu(x: V) -> V:
    """Returns max(x, 0)."""
    return apply1(RELU, x)


def tanh(x: V) -> V:
    """Returns the hyperbolic tangent."""
    return apply1(TANH, x)


def leaky_relu(x: V, alpha: float = 0.01) -> V:
    """Returns x where x > 0, else alpha * x."""
    return apply1(LEAKY_RELU, x, alpha=alpha)


def hard_sigmoid(x: V, alpha: float = 0.2, beta: float = 0.5) -> V:
    """Returns min(max(alpha * x + beta, 0), 1)."""
    return apply1(HARD_SIGMOID, x, alpha=alpha, beta=beta)


def hard_swish(x: V) -> V:
    """Returns x * min(max(x / 6 + 1/2, 0), 1)."""
    return apply1(HARD_SWISH, x)


def softsign(x: V) -> V:
    """Returns x / (1 + |x|)."""
    return apply1(SOFTSIGN, x)


def thresholded_relu(x: V, alpha: float = 1.0) -> V:
    """Returns x where x > alpha, else 0."""
    return apply1(THRESHOLDED_RELU, x, alpha=alpha)


def shrink(x: V, bias: float = 0.0, lambd: float = 0.5) -> V:
    """Returns x + bias below -lambd, x - bias above lambd, else 0."""
    return apply1(SHRINK, x, bias=bias, lambd=lambd)


def prelu(x: V, slope: Mixed[V]) -> V:
    """Returns x where x > 0, else slope * x; slope broadcasts to x."""
    return apply1(PRELU, x, slope)


def clip(x: V, lo: Mixed[V] | None = None, hi: Mixed[V] | None = None) -> V:
    """Returns min(max(x, lo), hi) for scalars; a bound that is None is the smallest or largest number of x's dtype."""
    dtype = x.spec.dtype
    return apply1(CLIP, x, lowest(dtype) if lo is None else lo, highest(dtype) if hi is None else hi)
