"""What computes: the back-ends that kernels belong to, and in which order they are asked."""

NUMPY, NUMBA, ONEDNN = BACKENDS = ("numpy", "numba", "onednn")
PLAIN = (NUMBA, NUMPY)
"""What is always there, the faster one first. numpy has a kernel of every operator."""
EVERY = (ONEDNN, *PLAIN)
"""Where oneDNN is installed."""
