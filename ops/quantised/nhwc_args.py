"""The words of a call of `ops.quantised.nhwc_code.convolve`: the number of each, and where three dimensions begin."""

X, ZEROS, PANELS, STARTS, FACTORS, ADDED, ADDED_PITCH, Y, Y_PITCH, ITEMSIZE, FLIP = range(11)
"""Addresses; pitches and the size of an element of y in bytes. ZEROS is a run of zero points, for taps in the padding;
STARTS are what sums begin with, as many as the panels have channels, like FACTORS. ADDED is 0 where nothing is added,
FLIP are bits to turn in what is."""
GROUPS, CHANNELS, DEPTH, GROUP_BYTES = range(11, 15)
"""Groups; outputs of a group; quads of bytes of a run; bytes from the inputs of a group to those of the next."""
HOPS = 15
"""Bytes from an image of x to the next, and along the three spatial dimensions."""
OUTPUTS = 19
"""Images and outputs along the three dimensions."""
SIZES, KERNEL, STRIDES, DILATIONS, BEGINS = range(23, 38, 3)
"""Three of each."""
BLOCK_TILES = 38
"""Tiles that meet a panel before the next one."""
ZERO, LOW, HIGH, OWN_ZERO, OWN_FACTOR, MORE_ZERO, MORE_FACTOR = range(39, 46)
"""Floats: zero point and bounds of y, and zero points and factors of the sums and of what is added to them."""
RAW = 46
"""1 where sums are written as they are, in int32."""
TABLE = 8192
"""Addresses of runs that a block may have."""
