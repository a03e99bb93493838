"""The gradients of a convolution by its input and by its weights, as operators, and the rule that uses them."""

import math
from collections.abc import Callable
from typing import Any

from ops.common.windows import WINDOW_ATTRIBUTES, Windows
from ops.convolution.shapes import case_of
from ops.convolution.transpose_gemm import TRANSPOSE_ATTRIBUTES, TRANSPOSE_KERNELS, infer_transpose
from ops.convolution.weight_gradient import WEIGHT_KERNELS, infer_weight_gradient, weight_gradient_cost
from ops.schema.attributes import Attribute, integer, integers
from ops.schema.backward import Backward, Tensor, Terms
from ops.schema.schema import Cost, OpSchema, Signature


def window_attributes(w: Windows) -> dict[str, Any]:
    """Returns the attributes of an operator with these windows; pads are numbers."""
    return {"strides": w.strides, "pads": w.begins + w.ends, "dilations": w.dilations}


def terms_of(b: Backward, data: Callable[[], Tensor], weights: Callable[[], Tensor]) -> Terms:
    """Returns these two gradients, and that of the bias if there is one: the sum of dy over all but the channels."""
    axes = [i for i in range(b.x.ndim) if i != 1]
    makers = (data, weights, lambda: b.sum(b.dy, axes, keepdims=False))
    return b.terms(*makers[: len(b.inputs)])


def weight_gradient(b: Backward, x: Tensor, dy: Tensor, w: Windows, group: int) -> Tensor:
    """Returns the gradient of the weights. The windows lie over x, one for each pixel of dy."""
    return b.apply1(CONV_WEIGHT_GRADIENT, x, dy, **window_attributes(w), group=group, kernel_shape=w.kernel)


def conv_gradient(b: Backward) -> Terms:
    """Returns the gradients of a convolution: dx is the transposed convolution of dy with the same weights."""
    case = case_of(b.signature)
    w = case.windows
    rest = tuple(n + begin + end - w.reach(a, o) for a, (n, begin, end, o) in enumerate(zip(*_lengths(w), strict=True)))

    def data() -> Tensor:
        more = {"group": case.group, "output_padding": rest}
        return b.apply1(CONV_INPUT_GRADIENT, b.dy, b.inputs[1], **window_attributes(w), **more)

    return terms_of(b, data, lambda: weight_gradient(b, b.x, b.dy, w, case.group))


def _lengths(w: Windows) -> tuple[tuple[int, ...], ...]:
    return w.sizes, w.begins, w.ends, w.outputs


def _input_gradient_cost(signature: Signature) -> Cost:
    """Returns the operations of the convolution, which count taps over pads: two for each tap of each pixel of dy."""
    return Cost(2 * signature.x.size * math.prod(signature.inputs[1].shape[1:]), signature.nbytes)


CONV_INPUT_GRADIENT = OpSchema(
    name="conv_input_gradient",
    summary="The gradient of a convolution by its input, of dy and its weights: a transposed convolution.",
    infer=infer_transpose,
    kernels=TRANSPOSE_KERNELS,
    arity=(2, 2),
    attributes=TRANSPOSE_ATTRIBUTES,
    cost=_input_gradient_cost,
)
CONV_WEIGHT_GRADIENT = OpSchema(
    name="conv_weight_gradient",
    summary="The gradient of a convolution by its weights, (O, C / group, kernel...), of its input and dy.",
    infer=infer_weight_gradient,
    kernels=WEIGHT_KERNELS,
    arity=(2, 2),
    attributes=(*WINDOW_ATTRIBUTES, Attribute("group", integer, 1), Attribute("kernel_shape", integers)),
    cost=weight_gradient_cost,
)
OPS = (CONV_INPUT_GRADIENT, CONV_WEIGHT_GRADIENT)
