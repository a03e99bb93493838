"""Arguments of the compiled convolutions: what their kernels write, and what their compiled code reads.

Fields with three entries have one for each spatial dimension (depth, height, width). Pitches and hops are in bytes.
"""

from ops.native.records import record

WINDOWS = "group_bytes hops[4] outputs[4] sizes[3] kernel[3] strides[3] dilations[3] begins[3]: int64"
"""Fields of windows over x, which `indirect_code` reads beside `x` and `zeros`.

group_bytes: bytes from the inputs of a group to those of the next. hops: bytes from an image of x to the next, and
along the three dimensions. outputs: images, and outputs along the three dimensions.
"""
TILED_CONV = record(
    "x zeros panels bias added added_pitch y y_hops[4] line groups channels depth: int64",
    WINDOWS,
    "activation: int64",
    "low high slope: float64",
    "idle tile_rows table_rows panel block_tiles chunk_runs: int64",
)
"""Convolution by tiles of float32.

x, zeros, panels, bias, y: addresses; zeros is a run of zeros, which taps in the padding read. added: the address of a
tensor to add, or 0. y_hops: bytes from an image of y to the next, and along the three dimensions. line: pixels of y in
a row at the last of these hops, which a tile does not leave: a line of y, or all of y. channels: outputs of a group.
depth: floats of a run. activation, low, high, slope: what a tile does to its last sums; idle: the activation NONE of
sums that are continued. tile_rows: most pixels of a tile. table_rows: addresses of one run of a tile in the table.
panel: outputs of a panel. block_tiles: tiles that are multiplied by a panel before the next panel. chunk_runs: runs of
a panel at a time.
"""
PAD = record("x hops[5] sizes[3] channels y images padded[3] begins[3]: int64")
"""Copy of x into a dense, channels-last tensor with a margin of zeros.

x, y: addresses. hops: bytes from an image to the next, along the three dimensions, and from a channel to the next.
sizes: elements of x along the three dimensions. padded: those of y. begins: where x begins in y.
"""
PLANES = record(
    "x weights bias y padded rows: int64",
    "x_shape[4] y_shape[4] padded_shape[2] rows_shape[2] geometry[8]: int64",
    "low high: float64",
)
"""Depthwise convolution of dense planes, or one of its gradients.

x (N, C, H, W), weights (M * C, taps), bias, y (N, M * C, OH, OW): addresses. padded, rows: addresses of scratch arrays,
for one channel with its padding, and for rows of sums or of dy. geometry: strides, dilations, begin pads and kernel,
two of each. low, high: bounds of the results.
"""
TABLE = 8192
"""Most addresses of runs that a block of tiles has: 64 KiB of stack."""
MOST_TILE_ROWS = 16
"""No tile has more pixels."""
PACKED = record(
    "x panels bias y room residual images channels height width outputs out_height out_width depth tiles: int64",
    "geometry[8]: int64",
    "limits[2]: float64",
)
"""A convolution out of packed panels, of dense float32.

x (images, channels, height, width), panels (ceil(outputs / 32), depth, 32) of weights, bias (outputs,), y (images,
outputs, out_height, out_width); room (tiles, depth, 14) holds the inputs of a block of tiles. The geometry is strides,
dilations, begin pads and kernel, two of each. `residual` has y's shape, and may be y itself.
"""
