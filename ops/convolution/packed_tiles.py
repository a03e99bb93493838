"""The tile of the packed product: what its door, its kernel and its vectors all speak of."""

PIXELS, CHANNELS = 14, 32
"""Output pixels and output channels of one tile: its 28 vectors of sums leave four registers for their factors."""
