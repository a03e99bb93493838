"""Arguments of a compiled conversion between 16 bits and float32."""

from ops.native.records import record

AXES = 5
CONVERT = record(f"source target kind lengths[{AXES}] source_strides[{AXES}] target_strides[{AXES}]: int64")
"""Addresses, a kind, lengths of five axes, and strides of both sides in elements."""
FROM_HALF, FROM_BFLOAT, TO_HALF, TO_BFLOAT, SAME = range(5)
"""Kinds: to and from float32, and a copy of float32."""
