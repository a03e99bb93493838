"""Arguments of the compiled products of matrices: what `compiled` writes, and what `code` reads."""

from ops.native.records import record

PRODUCTS = record(
    "count operands rows depth columns a_pitch y_pitch added_pitch b_kind b_pitch: int64",
    "factor: float64",
    "bias bias_hop activation: int64",
    "low high slope: float64",
    "idle block_tiles chunk columns_at_once: int64",
)
"""Products y = activation(factor * a @ b + bias + added) of `count` matrices of one size.

operands: the address of as many OPERANDS. Pitches: bytes from a row to the next; elements of a row are neighbours.
b_kind: PACKED, BY_ROWS or BY_COLUMNS; b_pitch: bytes from one row (or column) of b to the next. factor: of the product,
if b is not packed. bias: an address, or that of zeros; bias_hop: bytes from its column to the next, 4 or 0.
activation, low, high, slope: as in `ops.native.emit.tile_shapes`, or one of the smooth activations. idle: the
activation NONE of sums that are continued. block_tiles: tiles of rows that are multiplied by a panel before the next
panel. chunk: steps along the depth at a time. columns_at_once: columns that very few rows are multiplied by at a time.
"""
OPERANDS = record("a b y added: int64")
"""Addresses of one product; `added` is 0 where nothing is added."""
PACKED, BY_ROWS, BY_COLUMNS = 0, 1, 2
"""How b is stored: as panels (panels, depth, width) that contain the factor; elements of a row, or of a column, are
neighbours."""
GELU_ERF, GELU_TANH, SILU = 8, 9, 10
"""Activations that are a pass of their own over a tile that is written."""
MOST_CHUNK = 512
"""Most steps along the depth of a panel that is packed on the stack: 64 KiB of it."""
