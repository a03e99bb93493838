"""What the compiled local response normalization and its kernel agree on."""

MOST_CHANNELS = 2048
"""Channels of a pixel: three pixels lie on the stack."""
