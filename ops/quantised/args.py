"""Arguments of the compiled kernels of quantised values: what they are called with, and what their code reads.

Addresses and bytes, unless something else is said. `flip` is 128 for int8, 0 for uint8: the bits that are inverted in
each byte, which turns int8 into uint8 that is 128 more.
"""

from ops.convolution.args import WINDOWS
from ops.native.records import record
from ops.windows.args import GEOMETRY

CONV_ARGS = record(
    "x zeros panels starts factors added added_pitch y y_pitch itemsize flip groups channels depth: int64",
    WINDOWS,
    "block_tiles: int64",
    "zero low high own_zero own_factor added_zero added_factor: float64",
    "raw x_flip: int64",
)
"""Convolution of channels-last values.

zeros: a run of zero points, which taps in the padding read. starts: what sums begin with; it has as many entries as the
panels have outputs, like factors. added: values to add, or 0; flip is theirs. itemsize: of y. channels: outputs of a
group. depth: quads of bytes of a run. block_tiles: tiles that are multiplied by a panel before the next panel. zero,
low, high: zero point and bounds of y; own_zero, own_factor, added_zero, added_factor: zero points and factors of the
sums, and of what is added to them. raw: 1 where sums are written as int32. x_flip: of x, in a depthwise convolution.
"""
COPY_PIXELS = record("x pitch y pixels groups channels padded_channels flip: int64")
"""Copy of pixels, each group of channels padded with zeros; pitch: from a pixel of x to the next."""
COPY_LINES = record("x pitch y lines width channels begin padded_width pad flip: int64")
"""Copy of lines of `width` pixels into lines of `padded_width`, from pixel `begin` on; pad: the byte that pads."""
START_SUMS = record("zero signed column_sums starts count: int64")
"""The start of the sums of a product. zero: the address of the zero point of a, or 0. signed: 1 if it is int8."""
CORRECT = record("zero signed a depth y columns rows b_zeros: int64")
"""Subtraction of b_zeros times the sums of rows of a - zero from a product y (rows, columns)."""
LINEAR_ARGS = record("x y scale zero lines length x_hop y_hop backwards signed: int64")
"""Quantisation of `lines` lines of `length` elements, or (backwards is 1) the way back; hops: from line to line."""
ADD_ARGS = record(
    "a b y lines length a_hop b_hop y_hop a_flip b_flip: int64",
    "a_zero a_factor b_zero b_factor zero low high: float64",
)
"""Sum of two tensors; zero points of a and b are those of uint8; zero, low and high are of y."""
LOOK_UP_ARGS = record("x y table lines length x_hop y_hop: int64")
"""y = table[x] for lines of bytes."""
MAX_POOL_ARGS = record("x x_pitch y y_pitch images channels flip: int64", GEOMETRY)
"""Largest value of each window; pitches: from pixel to pixel."""
