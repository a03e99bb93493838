"""What computes: the back-ends that kernels belong to, and in which order they are asked."""

NUMPY, NUMBA, ONEDNN = BACKENDS = ("numpy", "numba", "onednn")
PLAIN = (NUMBA, NUMPY)
"""The back-ends that are always installed, the preferred one first. numpy has a kernel of every operator."""
EVERY = (ONEDNN, *PLAIN)
"""All back-ends, where oneDNN is installed."""
NOBODY = "nobody"
"""The back-end of operators that are planned and never run; it is asked last of all."""
