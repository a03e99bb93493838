"""Convolution, bias, addition of a tensor and activation on channels-last tensors, as one operator.

The output may be written over the tensor that is added: a residual addition takes the bytes of the operand that dies.
"""

from ops.attributes import Attribute, integer, integers
from ops.conv_finish import FINISH_ATTRIBUTES
from ops.nhwc.conv_columns import COLUMNS, POINTWISE
from ops.nhwc.conv_depthwise import DEPTHWISE
from ops.nhwc.conv_native import TILED
from ops.nhwc.conv_rows import ROWS
from ops.nhwc.conv_shapes import infer_nhwc_conv, nhwc_conv_cost, overwrites_residual
from ops.nhwc.depthwise_native import DEPTHWISE_NATIVE
from ops.onednn.convolution import CONVOLUTION
from ops.schema import OpSchema
from ops.stripes import nhwc_conv_stripes
from ops.windows import WINDOW_ATTRIBUTES

NHWC_CONV = OpSchema(
    name="nhwc_conv",
    summary="The activation of (convolution + bias + a tensor); x (N, spatial..., C), w (O, C / group, kernel...).",
    infer=infer_nhwc_conv,
    kernels=(DEPTHWISE_NATIVE, ROWS, TILED, DEPTHWISE, POINTWISE, COLUMNS, CONVOLUTION),
    arity=(2, 4),
    attributes=(
        *WINDOW_ATTRIBUTES,
        Attribute("group", integer, 1),
        Attribute("kernel_shape", integers, ()),
        *FINISH_ATTRIBUTES,
    ),
    overwrites=overwrites_residual,
    cost=nhwc_conv_cost,
    stripes=nhwc_conv_stripes,
)
OPS = (NHWC_CONV,)
