"""Arrays of callers: inputs of many kinds become arrays, and outputs are delivered, with clear errors."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from engine.lower.calls import Lowered
from engine.system.arrays import is_written_once
from engine.text.errors import FeedError, NoMemoryError
from ops.tensor.spec import BFLOAT16, LOST_MASK, NARROW, Array, TensorSpec, is_masked

_RAW_IN_FILES = NARROW | {BFLOAT16}
"""Types that numpy's files do not know: what is read from them are raw bytes of the same size."""


def as_arrays(what: str, values: Mapping[str, Any], specs: Mapping[str, TensorSpec]) -> dict[str, Array]:
    """Returns an array of each value: of one with DLPack or `__array__` without a copy, where that is possible.

    Numbers and nested lists become arrays of the wanted type. Raises FeedError.
    """
    return {name: as_array(f"{what} {name!r}", value, specs[name]) for name, value in values.items()}


def as_array(what: str, value: Any, spec: TensorSpec) -> Array:
    """Returns an array of one value, as `as_arrays` does. Raises FeedError."""
    try:
        return _as_array(value, spec)
    except FeedError as error:
        raise FeedError(f"{what}: {error}") from error.__cause__


def _as_array(value: Any, spec: TensorSpec) -> Array:
    if is_masked(value):
        raise FeedError(LOST_MASK)
    if isinstance(value, np.ndarray):
        return (
            value.view(spec.dtype)
            if spec.dtype in _RAW_IN_FILES and value.dtype == f"V{spec.dtype.itemsize}"
            else value
        )
    try:
        if hasattr(value, "__dlpack__"):
            return np.from_dlpack(value)
        return np.asarray(value) if hasattr(value, "__array__") else np.asarray(value, dtype=spec.dtype)
    except Exception as error:  # these methods are the caller's, and may raise anything
        reason = str(error) or type(error).__name__
        raise FeedError(f"a {type(value).__name__} is not an array of {spec.dtype}: {reason}") from error


def check_array(what: str, array: Array, spec: TensorSpec) -> None:
    """Raises FeedError where shape or dtype are not the expected ones."""
    if array.dtype != spec.dtype:
        raise FeedError(f"{what} has element type {array.dtype}, but {spec.dtype} is expected")
    if array.shape != spec.shape:
        raise FeedError(f"{what} has shape {array.shape}, but {spec.shape} is expected")


def check_names(what: str, arrays: Mapping[str, Any], expected: Mapping[str, Any], *, complete: bool) -> None:
    """Raises FeedError for an unknown name and, if `complete`, for a missing one."""
    if not isinstance(arrays, Mapping):
        raise FeedError(f"{what}s are given as a dict from name to array, not as a {type(arrays).__name__}")
    listed = ", ".join(map(repr, expected)) or "none"
    unknown = [name for name in arrays if name not in expected]
    if unknown:
        raise FeedError(f"there is no {what} {unknown[0]!r}; there are: {listed}")
    missing = [repr(name) for name in expected if name not in arrays]
    if complete and missing:
        raise FeedError(f"{what} {', '.join(missing)} is missing")


def read_feeds(feeds: Mapping[str, Any], specs: Mapping[str, TensorSpec]) -> dict[str, Array]:
    """Returns one checked array for each input. Raises FeedError."""
    check_names("input", feeds, specs, complete=True)
    arrays = as_arrays("input", {name: feeds[name] for name in specs}, specs)
    for name, array in arrays.items():
        check_array(f"input {name!r}", array, specs[name])
    return arrays


def kept(feeds: Mapping[str, Any], specs: Mapping[str, TensorSpec]) -> Mapping[str, Any]:
    """Returns the inputs, with dense copies of those of `specs`, whose arrays are not to change. Raises FeedError."""
    if not isinstance(feeds, Mapping):
        return feeds  # the run says what is wrong with it
    arrays = as_arrays("input", {name: feeds[name] for name in specs if name in feeds}, specs)
    return {**feeds, **{name: array.copy(order="C") for name, array in arrays.items()}}


def out_arrays(outs: Mapping[str, Any]) -> dict[str, Array]:
    """Returns arrays with the bytes of the caller's: numpy arrays as they are, views of tensors with DLPack.

    Raises FeedError.
    """
    arrays = {}
    for name, value in outs.items():
        if not isinstance(value, np.ndarray) and not hasattr(value, "__dlpack__"):
            raise FeedError(f"out={name!r} must be a numpy array or a tensor with DLPack, not a {type(value).__name__}")
        try:
            arrays[name] = value if isinstance(value, np.ndarray) else np.from_dlpack(value)
        except Exception as error:  # __dlpack__ is the caller's, and may raise anything
            raise FeedError(f"out={name!r} cannot be shared by DLPack: {error or type(error).__name__}") from error
    return arrays


def read_outs(outs: Mapping[str, Array], specs: Mapping[str, TensorSpec]) -> Mapping[str, Array]:
    """Returns the caller's output arrays, checked: they can be written. Raises FeedError."""
    check_names("output", outs, specs, complete=False)
    for name, array in outs.items():
        check_array(f"out={name!r}", array, specs[name])
        if is_masked(array):
            raise FeedError(f"out={name!r} is a masked array, whose mask would stay as it is: give its `data`")
        if not array.flags.writeable:
            raise FeedError(f"out={name!r} is read-only")
        if not is_written_once(array):
            raise FeedError(f"out={name!r} has elements that share bytes: give an array with bytes for each element")
    return outs


def deliver(array: Array, out: Array | None, copy: bool) -> Array:
    """Returns an output to the caller: the caller's array with its data, a copy, or the array itself.

    Raises NoMemoryError.
    """
    if out is not None:
        np.copyto(out, array)
        return out
    if not copy:
        return array
    try:
        return array.copy()
    except MemoryError as error:
        size = f"{array.dtype}{list(array.shape)} has {array.nbytes} bytes"
        raise NoMemoryError(
            f"an output that is {size}, too many for a copy on this machine; a static run lends it with copy=False"
        ) from error


def initial_values(lowered: Lowered) -> dict[str, Array]:
    """Returns the values of parameters before the first run, by name."""
    graph = lowered.graph
    return {v.name: p.initial for v, p in graph.parameters.items()}


def load_parameters(parameters: Mapping[str, Array], values: Mapping[str, Array]) -> None:
    """Writes the values into the parameters of the same names."""
    for name, array in parameters.items():
        if name in values:
            np.copyto(array, values[name])


def check_dense(what: str, array: Array) -> None:
    """Raises FeedError for an array that cannot be bound as it is."""
    if not array.flags.c_contiguous or not array.flags.aligned:
        raise FeedError(f"{what} is bound to the caller's array, so it must be dense and aligned")


def check_donated(donated: Collection[str], read: Mapping[str, Array]) -> None:
    """Raises FeedError where a bound input that is overwritten is read-only, or another one has bytes of it."""
    for name in donated:
        if not read[name].flags.writeable:
            raise FeedError(f"input {name!r} is donated and read-only; give an array that can be written")
        for other, array in read.items():
            if other != name and np.may_share_memory(array, read[name]):
                raise FeedError(f"input {name!r} is donated and shares bytes with input {other!r}; give a copy of one")


def check_apart(
    written: Mapping[str, Array], read: Mapping[str, Array], outs: Mapping[str, Array], arena: Sequence[Array]
) -> None:
    """Raises FeedError where arrays of one run share bytes that they must not share.

    `written` and `read` are bound outputs and inputs, by name: kernels access them while the network runs. `outs` are
    all output arrays of the caller; those that are not bound are written in the end. `arena` has its rows of bytes.
    """
    for name, array in read.items():
        if any(np.may_share_memory(array, row) for row in arena):
            raise FeedError(f"input {name!r} is bound and lies in the arena of this executable; give a copy of it")
    arrays = dict(outs) | dict(written)
    for name, array in arrays.items():
        if any(np.may_share_memory(array, row) for row in arena):
            raise FeedError(f"out={name!r} lies in the arena of this executable; give another array")
    check_unshared(read, arrays)


def check_unshared(read: Mapping[str, Array], outs: Mapping[str, Array]) -> None:
    """Raises FeedError where an output array shares bytes with an input that is read after it is written, or another
    output.
    """
    arrays = list(outs.items())
    for i, (name, array) in enumerate(arrays):
        others = [*read.items(), *arrays[:i]]
        shared = next((other for other, taken in others if np.may_share_memory(array, taken)), "")
        if shared:
            raise FeedError(f"out={name!r} shares bytes with {shared!r} of the same run; give another array")
