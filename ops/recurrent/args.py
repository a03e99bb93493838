"""Arguments of the compiled LSTM: what `compiled` writes, and what `code` reads."""

from ops.native.records import record

LSTM_ARGS = record(
    "gates panels h c first_h first_c y last_h last_c: int64",
    "time batch hidden directions begin count block backwards[2] starts ends: int64",
    "kind: int64",
    "low high slope: float64",
)
"""The steps `begin` to `begin + count` of both directions, in the order in which they run.

gates: (directions, block, batch, 4 * hidden) floats, of which the first `count` rows of a direction have what x gives,
in the order of x. panels: weights of the state, a matrix for each direction, as panels of a product. h, c: the states
(directions, batch, hidden) between blocks. first_h, first_c: addresses of what they are at first, or 0 for zeros. y,
last_h, last_c: outputs; y is 0 where it is not wanted. backwards: 1 for a direction that runs from the end. starts,
ends: 1 in the first and in the last block. kind, low, high, slope: a FINISH record (`ops.native.emit.tile_shapes`).
"""
