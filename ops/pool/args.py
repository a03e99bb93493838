"""Arguments of compiled pooling of (N, C, spatial...): what its kernels write, and what its compiled code reads.

Kinds are those of `ops.windows.args`.
"""

from ops.native.records import record
from ops.windows.args import GEOMETRY

PLANES = record("kind x y channels x_image y_image: int64", GEOMETRY, "images: int64")
"""Windows over planes; x_image and y_image are bytes from image to image."""
MAXIMA = record("dy x dx best places channels span: int64", GEOMETRY)
"""The gradient of windows' maxima over dense planes: dy (channels, outputs...), x and dx (channels, sizes...).

best, places: addresses of `span` maxima and their places, of one row of windows in steps of one.
"""
GLOBAL = record("kind x y rows length: int64")
"""Each of `rows` dense rows of `length` elements becomes one element."""
