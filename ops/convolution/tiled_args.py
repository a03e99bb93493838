"""The words of a call of `ops.convolution.tiled_code`: the number of each, and where three dimensions begin."""

X, ZEROS, PANELS, BIAS, ADDED, ADDED_PITCH, Y, Y_PITCH = range(8)
"""Addresses; pitches in bytes. ADDED is 0 where nothing is added. ZEROS is a run of zeros, for taps in the padding."""
GROUPS, CHANNELS, DEPTH, GROUP_BYTES = range(8, 12)
"""Groups; outputs of a group; floats of a run; bytes from the inputs of a group to those of the next."""
HOPS = 12
"""Bytes from an image of x to the next, and along the three spatial dimensions."""
OUTPUTS = 16
"""Images and outputs along the three dimensions."""
SIZES, KERNEL, STRIDES, DILATIONS, BEGINS = range(20, 35, 3)
"""Three of each."""
FINISH = 35
"""Activation, low, high, slope."""
IDLE = 39
"""The finish of what goes on: NONE."""
TILE_ROWS, TABLE_ROWS, PANEL, BLOCK_TILES, CHUNK_RUNS = range(40, 45)
"""Most pixels of a tile, and its room in the table; channels of a panel; tiles that meet a panel before the next one;
runs of a panel at a time."""
COUNT = 45
TABLE = 8192
"""Addresses of runs that a block may have."""
MOST_ROWS = 16
"""No tile has more pixels."""
MOST_TILES = 512
"""No block has more tiles."""
