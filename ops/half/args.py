"""The words of a conversion: addresses, kind, lengths of five axes, strides of both sides in elements."""

AXES = 5
SOURCE, TARGET, KIND, LENGTHS = 0, 1, 2, 3
SOURCE_STRIDES, TARGET_STRIDES = LENGTHS + AXES, LENGTHS + 2 * AXES
FROM_HALF, FROM_BFLOAT, TO_HALF, TO_BFLOAT, SAME = range(5)
"""Kinds: to and from float32, and float32 as it is."""
