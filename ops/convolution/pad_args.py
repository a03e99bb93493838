"""The words of a call of `ops.convolution.pad_code.pad`."""

X, HOPS = 0, 1
"""Address; bytes from an image to the next, along three dimensions, and from a channel to the next."""
SIZES, CHANNELS = 6, 9
"""Elements along the three dimensions, and channels."""
Y, IMAGES, PADDED, BEGINS = 10, 11, 12, 15
"""Address of the dense copy, images, its sizes, and where x begins in it, three of each."""
COUNT = 18
