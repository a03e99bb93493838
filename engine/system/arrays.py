"""Arrays as views of bytes, from files, and in aligned memory."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from engine.text.errors import FeedError
from ops.tensor.layout import Layout, address_of, dense_strides
from ops.tensor.spec import FLOATS, Array, TensorSpec


def view_array(buffer: Array, layout: Layout, dtype: np.dtype[Any]) -> Array:
    """Returns a view of the tensor that `layout` describes inside a dense buffer.

    A dense tensor has the strides of C order also in dimensions of length 1: numpy compares strides to decide whether
    an operation in place is safe, and copies the operand where they differ.
    """
    dense = dense_strides(layout.shape, layout.itemsize)
    strides = dense if layout.strides == dense or layout.is_dense else layout.strides
    flat = buffer if buffer.flags.c_contiguous else buffer.reshape(-1).view(np.uint8)
    return np.ndarray(layout.shape, dtype, flat, layout.offset, strides)


def random_arrays(specs: Mapping[str, TensorSpec], seed: int) -> dict[str, Array]:
    """Returns seeded arrays by name: normal floats, or integers and bools from {0, 1}.

    What one gets does not depend on the others.
    """
    return {name: _drawn(spec, np.random.default_rng((seed, i))) for i, (name, spec) in enumerate(specs.items())}


def _drawn(spec: TensorSpec, random: "np.random.Generator") -> Array:
    if spec.dtype in FLOATS:
        return np.asarray(random.standard_normal(spec.shape)).astype(spec.dtype)
    return np.asarray(random.integers(0, 2, spec.shape)).astype(spec.dtype)


def read_array(path: Path, *, mapped: bool = False) -> Array:
    """Returns the array of a .npy file, or where it is to be `mapped`, one that is read as its elements are.

    Raises FeedError for anything else.
    """
    try:
        if mapped:
            return np.lib.format.open_memmap(path, mode="r")
        with path.open("rb") as file:
            return np.lib.format.read_array(file, allow_pickle=False)
    except (ValueError, EOFError, SyntaxError) as error:
        raise FeedError(f"{os.fspath(path)!r} is no .npy file of numbers: {error}") from error


def is_written_once(array: Array) -> bool:
    """Returns whether each element has bytes of its own; False for rare strides that are interleaved, too."""
    reach = array.itemsize
    for stride, length in sorted((abs(s), n) for s, n in zip(array.strides, array.shape, strict=True) if n > 1):
        if stride < reach:
            return not array.size
        reach += stride * (length - 1)
    return True


def aligned_empty(nbytes: int, alignment: int) -> Array:
    """Returns uninitialised bytes that start at a multiple of `alignment`."""
    raw = np.empty(nbytes + alignment, np.uint8)
    start = -address_of(raw) % alignment
    return raw[start : start + nbytes]


def largest_difference(ours: Mapping[str, Array], theirs: Mapping[str, Array]) -> float:
    """Returns the largest absolute difference of all outputs over their largest value; infinite where NaNs differ."""
    return max((_difference(ours[name], theirs[name]) for name in ours), default=0.0)


def _difference(ours: Array, theirs: Array) -> float:
    a, b = ours.astype(np.float64), theirs.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    if same.all():
        return 0.0
    with np.errstate(invalid="ignore"):
        apart = np.abs(a - b)[~same]
    scale = float(np.abs(b[np.isfinite(b)]).max(initial=0.0)) or 1.0
    return float(np.nan_to_num(apart, nan=np.inf).max()) / scale
