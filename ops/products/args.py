"""The words of a compiled product of matrices: what ops.products.code reads and ops.products.compiled writes."""

COUNT, TABLE = 0, 1
"""How many products, and the address of their table: four addresses for each, of a, b, y and what is added, or 0."""
ROWS, DEPTH, COLUMNS = 2, 3, 4
A_PITCH, Y_PITCH, ADDED_PITCH = 5, 6, 7
"""Bytes from a row to the next; elements of a row are neighbours."""
B_KIND, B_PITCH = 8, 9
"""How b lies, and the bytes from one of its rows (or columns) to the next."""
PACKED, BY_ROWS, BY_COLUMNS = 0, 1, 2
"""Panels, (panels, depth, width) and scaled; elements of a row are neighbours; elements of a column are."""
FACTOR = 10
"""Of the product, where b is not packed."""
BIAS, BIAS_HOP = 11, 12
"""Its address, or that of zeros; and what that grows by from a column to the next, in bytes: 4 or 0."""
FINISH = 13
"""Four words: activation, low, high, slope; as ops.native.emit.tile_shapes says, and the smooth activations beyond
them."""
PLAIN = 17
"""The same four for sums that are not finished yet."""
BLOCK_TILES, CHUNK = 21, 22
"""Tiles of rows that one panel meets before the next; steps along the depth before the next tile."""
COLUMNS_AT_ONCE = 23
"""Columns that very few rows are multiplied by at a time."""
LENGTH = 24
GELU_ERF, GELU_TANH, SILU = 8, 9, 10
"""Activations that are a pass of their own over a tile that is written."""
MOST_CHUNK = 512
"""Steps along the depth of a panel that is packed on the stack."""
