"""What is done with the elements of a sliding window over channels-last pixels."""

DEPTHWISE, SPREAD, LARGEST, AVERAGE, AVERAGE_PADDED = range(5)
"""SPREAD is a depthwise convolution with several outputs a channel; AVERAGE_PADDED counts padding, too."""
