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
_CHANNELS = "images channels elements: int64"
"""Images, channels of an image, and elements of a channel: fields of records whose data are (N, C, elements)."""
SCALE_SHIFT = record("x y factors shifts: int64", _CHANNELS)
"""Addresses of dense data x and y, which may be the same, and of a factor and a shift a channel."""
MOMENTS = record("x means variances: int64", _CHANNELS, "x_pitch: int64")
"""Addresses of data, and of the mean and the variance of each channel; x_pitch: elements from an image to the next."""
CHANNEL_SUMS = record("x dy means factors products sums: int64", _CHANNELS, "x_pitch dy_pitch: int64")
"""Addresses of data, and of numbers a channel; pitches: elements from an image to the next."""
COMBINE = record("x dy y means x_factors middles dy_factors: int64", _CHANNELS)
"""Addresses of dense data, of which y may be x or dy, and of numbers a channel."""
MOST_CHANNELS = 2048
"""Channels of a pixel of the compiled local response normalization: three pixels lie on the stack."""
