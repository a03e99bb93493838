"""What the compiled pooling of (N, C, spatial...) and its kernels agree on."""

LARGEST, AVERAGE, AVERAGE_PADDED = range(3)
"""What is done with the elements of a window; AVERAGE_PADDED counts padding, too."""
