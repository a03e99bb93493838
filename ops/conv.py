"""Convolution over 1, 2, 3 or more spatial dimensions (ONNX Conv-22)."""

from ops.attributes import Attribute, integer, integers
from ops.conv_depthwise import DEPTHWISE
from ops.conv_gemm import COLUMNS, POINTWISE
from ops.conv_gradient import conv_gradient
from ops.conv_images import IMAGES
from ops.conv_packed import PACKED
from ops.conv_shapes import conv_cost, infer_conv
from ops.schema import OpSchema
from ops.stripes import conv_stripes
from ops.windows import WINDOW_ATTRIBUTES

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
