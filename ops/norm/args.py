"""Arguments of the compiled normalizations: what their kernels write, and what their compiled code reads."""

from ops.native.records import record

LRN = record("x y pixels channels x_pitch y_pitch size: int64", "factor bias beta: float64")
"""Local response normalization of channels-last pixels.

x, y: addresses; pitches: bytes from pixel to pixel; size: channels of a window; factor: alpha / size.
"""
MOST_CHANNELS = 2048
"""Channels of a pixel of the compiled local response normalization: three pixels lie on the stack."""
