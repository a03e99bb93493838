"""Kernels of the library oneDNN, through its C API. The library is loaded on first use."""
