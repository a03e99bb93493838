"""Kernels of the library oneDNN, through its C API. Nothing here is loaded before it is asked for."""
