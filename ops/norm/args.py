"""Arguments of the compiled normalizations: what their kernels write, and what their compiled code reads."""

from ops.native.records import record

LRN = record("x y pixels channels x_pitch y_pitch size: int64", "factor bias beta: float64")
"""Local response normalization of channels-last pixels.

x, y: addresses; pitches: bytes from pixel to pixel; size: channels of a window; factor: alpha / size.
"""
NORM = record(
    "rows length x y scales shifts means factors centred: int64", "epsilon: float64", "image_rows row_channels: int64"
)
"""Rows of `length` elements brought to mean 0 (where `centred` is 1) and variance 1.

x, y, scales, shifts, means and factors are addresses; 0 for shifts that are not there, and for means and factors that
are no outputs. Where scales and shifts are those of channels: rows of an image, and channels of a row.
"""
MOST_CHANNELS = 2048
"""Channels of a pixel of the compiled local response normalization: three pixels lie on the stack."""
