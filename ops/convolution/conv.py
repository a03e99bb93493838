"""Convolution over 1, 2, 3 or more spatial dimensions (ONNX Conv-22)."""

from ops.common.tiling import conv_stripes
from ops.common.windows import WINDOW_ATTRIBUTES
from ops.convolution.depthwise import DEPTHWISE
from ops.convolution.gemm import COLUMNS, POINTWISE
from ops.convolution.gradient import conv_gradient
from ops.convolution.images import IMAGES
from ops.convolution.packed import PACKED
from ops.convolution.shapes import conv_cost, infer_conv
from ops.schema.attributes import Attribute, integer, integers
from ops.schema.schema import OpSchema

CONV = OpSchema(
    name="conv",
    summary="y[n, o] = b[o] + sum over channels c of x[n, c] correlated with w[o, c]; x (N, C, spatial...).",
    infer=infer_conv,
    kernels=(PACKED, POINTWISE, DEPTHWISE, IMAGES, COLUMNS),
    arity=(2, 3),
    attributes=(*WINDOW_ATTRIBUTES, Attribute("group", integer, 1), Attribute("kernel_shape", integers, ())),
    cost=conv_cost,
    gradient=conv_gradient,
    stripes=conv_stripes,
)
OPS = (CONV,)
