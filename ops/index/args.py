"""Arguments of compiled gather and scatter: what their kernels write, and what their compiled code reads."""

from ops.native.records import record
from ops.tensor.layout import CACHE_LINE

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
