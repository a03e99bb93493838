"""What compiled dropout reads."""

from ops.native.records import record

DROP = record("x y size step scratch words seed threshold: int64", "scale: float64")
"""y = x * scale where the bits of an element are `threshold` or more, else 0.

x and y have `size` elements, at the same place or far from each other; `step` is the address of one int64; `scratch`
has so many words, a multiple of 4. An element has 32 bits: the same ones for the same element, step, seed and `words`.
"""
