"""The size of a tile of packed convolutions. The kernel, its door and its compiled code all use it."""

PIXELS, CHANNELS = 14, 32
"""Output pixels and output channels of one tile: its 28 vectors of sums leave four registers for their factors."""
