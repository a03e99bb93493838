"""Transposed convolution (ONNX ConvTranspose-22)."""

from collections.abc import Sequence

from ops.common.apply import Operand, V, apply1
from ops.common.windows import Sizes, each, spatial_attributes
from ops.convolution.conv import CONV
from ops.convolution.gradient import terms_of, weight_gradient, window_attributes
from ops.convolution.onednn_transpose import DECONVOLUTION
from ops.convolution.transpose_gemm import TRANSPOSE_ATTRIBUTES, TRANSPOSE_KERNELS, infer_transpose, transpose_cost
from ops.convolution.transpose_shapes import transpose_case
from ops.schema.backward import Backward, Tensor, Terms
from ops.schema.schema import OpSchema


def _gradient(b: Backward) -> Terms:
    """Returns the gradients. The windows lie over y, so dy takes the place that x has in those of a convolution."""
    w = b.inputs[1]
    case = transpose_case(b.x.spec, w.spec, b.attrs)

    def data() -> Tensor:
        dx = b.apply1(CONV, b.dy, w, **window_attributes(case.windows), group=case.group)
        ends, axes = dx.shape[2:], range(2, len(dx.shape))
        pixels = case.windows.outputs  # of an output that was made larger, further windows could be read
        return dx if ends == pixels else b.slice(dx, (0,) * len(pixels), pixels, axes)

    return terms_of(b, data, lambda: weight_gradient(b, b.dy, b.x, case.windows, case.group))


CONV_TRANSPOSE = OpSchema(
    name="conv_transpose",
    summary="Each element of x (N, C, spatial...) adds its multiple of w (C, O / group, kernel...) to y.",
    infer=infer_transpose,
    kernels=(*TRANSPOSE_KERNELS, DECONVOLUTION),
    arity=(2, 3),
    attributes=TRANSPOSE_ATTRIBUTES,
    cost=transpose_cost,
    gradient=_gradient,
)
OPS = (CONV_TRANSPOSE,)


def conv_transpose(
    x: V,
    w: Operand,
    b: Operand | None = None,
    *,
    strides: Sizes = 1,
    pads: Sizes = 0,
    dilations: Sizes = 1,
    group: int = 1,
    auto_pad: str = "NOTSET",
    output_padding: Sizes = 0,
    output_shape: Sequence[int] = (),
) -> V:
    """Computes the transpose of `conv`: adds a multiple of w (C, O / group, kernel...) to y for each element of x."""
    attrs = spatial_attributes(x.spec, strides, pads, dilations)
    more = {"output_padding": each(output_padding, x.spec.ndim - 2), "output_shape": tuple(output_shape)}
    return apply1(CONV_TRANSPOSE, x, w, *(() if b is None else (b,)), **attrs, **more, group=group, auto_pad=auto_pad)
