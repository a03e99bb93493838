"""Arguments of compiled gather and scatter: what their kernels write, and what their compiled code reads."""

import numpy as np

from ops.native.records import record
from ops.tensor.layout import CACHE_LINE

NUMBERS = (
    *(np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64),
    *(np.float32, np.float64),
)
"""Types of elements that are sorted by compiled code, which is made for each of them."""
GATHER, SCATTER, ADD_FLOATS, ADD_DOUBLES, ADD_INTS = range(5)
"""Rows of the data are read; written; or added to."""
ROWS = record(
    "kind run_bytes item_bytes data indices flat index_bytes picks loops: int64",
    "length data_step index_step flat_step: int64",
)
"""Rows of `run_bytes` bytes that are copied between `data`, where indices say, and `flat`, in the order of the indices.

data, indices, flat: addresses. index_bytes: bytes of an index. The last four fields are those of the innermost loop. A
LOOP for each of `loops` outer loops follows, then a PICK for each of `picks` indices of a tuple.
"""
INDICES = record("refused indices index_bytes picks loops length index_step: int64")
"""The check of all indices; the same loops and picks follow.

refused: the address of a REFUSED record, which an index that is outside its dimension is written into.
"""
REFUSED = record("index dim: int64")
"""An index, and the length of the dimension that it is outside of."""
LOOP = record("length data_step index_step flat_step: int64")
"""A loop: its length, and the bytes from turn to turn in the data, in the indices, in `flat`."""
PICK = record("dim step offset: int64")
"""One index of a tuple: length and bytes of the dimension that it goes into, and its bytes from the tuple's first."""
LINE = CACHE_LINE
"""Bytes of a row that threads do not share when they write where indices say."""
PLACES = record("marks size first shape ndim y columns count: int64")
"""The coordinates of marks that are not 0, which are appended to y, as many as it has columns.

`size` marks are bytes, of which the first stands at flat position `first` of a tensor of that shape; y is (ndim,
columns), and `count` is the address of the number of marks so far, which counts on.
"""
ADD_ROWS = record("rows places sums groups count total width: int64")
"""sums[i, places[j]] += rows[i, j] for all i and j, in this order.

rows (groups, count, width) and sums (groups, total, width) are of one type; places (count,) are int64 below `total`.
"""
SUPPRESS = record(
    "boxes scores images classes boxes_of_image is_centre has_least limit thresholds corners kept order y rows: int64"
)
"""Boxes (images, boxes, 4), scores (images, classes, boxes) of float32, and which of them are chosen.

At most `limit` boxes a class are chosen, those whose score is above the second of two thresholds (any number, where
`has_least` is not set) and whose intersection over union with no better one is above the first. Of equal scores the
first is better. `corners` and `kept` are float32 (boxes, 5), `order` is int64 (boxes,). y is int64 (rows, 3): as many
rows (image, class, box) are written as it has.
"""
BEST = record("data values places rows length k largest: int64")
"""The best k elements of each row, the best first, and their places; of equal elements the first is the better one.

data (rows, length) and values (rows, k) are of one type, places (rows, k) of int64.
"""
SLICES = record("x outer slices inner in_order order spare inverse first counts: int64")
"""The distinct ones of x[:, i, :]; x is (outer, slices, inner), all others are int64 (slices,).

They are numbered in ascending order (lexicographically in C order) where `in_order` is set, else as they first occur.
`inverse` takes the number of each slice, `first` where number k first occurs, `counts` how often (zeros behind the last
number). NaN equals NaN and is greater than all numbers; -0.0 equals 0.0.
"""
