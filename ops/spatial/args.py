"""Arguments of compiled resizing, regions and moved windows: what callers write, and what compiled code reads."""

from ops.native.records import record

RESIZE = record(
    "x y outer outputs_a middle outputs_b tail inner length_b is_last: int64",
    "taps[2] indices[2] weights[2] outside[2]: int64",
    "x_steps[5] y_steps[5]: int64",
    "value: float64",
)
"""Tensors are seen as (outer, a, middle, b, tail, inner); a and b are the axes that change, fields of 2 have both.

length_b: elements of x along b; is_last: whether b is the last axis. Each output is a sum over taps: indices and
weights are the addresses of (taps, outputs) int64 and float32, outside that of a byte for each output that is 1 where
`value` is written. Steps are elements from one to the next along outer, a, middle, b and tail.
"""
OUTER, A, MIDDLE, B, TAIL = range(5)
"""Dimensions of steps."""
REGIONS = record("x y edges table regions images channels lengths[2] outputs[2] is_max: int64")
"""Regions of images x (images, channels, lengths) of one type, which become y (regions, channels, outputs).

`ops.spatial.region_tables` says what stands in a row of `table` (int64) and of `edges` (the type of x) for each region.
"""
DEFORMED = record(
    "x y offset mask images channels lengths[2] kernel[2] strides[2] begins[2] dilations[2] outputs[2]: int64"
)
"""Windows of x (images, channels, lengths) whose taps are moved; y is (images, channels, taps, places), of one type.

Each group of channels counts as an image. offset is (images, taps, 2, places), and mask (images, taps, places), or 0.
"""
