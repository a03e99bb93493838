"""Convolution, bias, addition of a tensor and activation on channels-last tensors, as one operator.

The output may overwrite the tensor that is added: a residual addition is computed in place.
"""

from ops.common.epilogue import FINISH_ATTRIBUTES, RESIDUAL
from ops.common.tiling import nhwc_conv_rows, nhwc_conv_stripes
from ops.common.windows import CONV_ATTRIBUTES
from ops.convolution.depthwise_tiled import DEPTHWISE_NATIVE
from ops.convolution.nhwc_depthwise import DEPTHWISE
from ops.convolution.nhwc_gemm import COLUMNS, POINTWISE
from ops.convolution.nhwc_shapes import infer_nhwc_conv
from ops.convolution.onednn import CONVOLUTION
from ops.convolution.rows import ROWS
from ops.convolution.shapes import conv_cost
from ops.convolution.tiled import TILED
from ops.schema.schema import OpSchema, overwrites_from

NHWC_CONV = OpSchema(
    name="nhwc_conv",
    summary="The activation of (convolution + bias + a tensor); x (N, spatial..., C), w (O, C / group, kernel...).",
    infer=infer_nhwc_conv,
    kernels=(DEPTHWISE_NATIVE, ROWS, TILED, DEPTHWISE, POINTWISE, COLUMNS, CONVOLUTION),
    arity=(2, 4),
    attributes=(*CONV_ATTRIBUTES, *FINISH_ATTRIBUTES),
    overwrites=overwrites_from(RESIDUAL),
    cost=conv_cost,
    stripes=nhwc_conv_stripes,
    rows=nhwc_conv_rows(RESIDUAL),
)
OPS = (NHWC_CONV,)
