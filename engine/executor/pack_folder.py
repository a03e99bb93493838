"""Packed constants in files, which the processes of a machine map and share."""

import mmap
import os
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from attrs import define

from allocator.problem import align_up
from engine.executor.binding import PackCache, pack_call
from engine.graph.deferred import Deferred, Entry
from engine.lower.calls import Call
from ops.tensor.layout import CACHE_LINE
from ops.tensor.spec import Array, TensorSpec, spec_of


@define(eq=False)
class PackFolder(PackCache):
    """A cache of the packed constants of one plan, in a folder that other processes have, too.

    The first process that needs the constants of a call packs them and writes a file; all map it. Where two pack at
    once, the file of the first counts. Small ones are packed by each process.
    """

    folder: Path = Path()

    def pack(self, call: Call, constants: Mapping[int, Entry]) -> tuple[Array, ...]:
        """Returns the packed constants of a call, from its file."""
        specs = call.kernel.packed_specs(call.signature)
        if sum(spec.nbytes for spec in specs) < mmap.PAGESIZE:
            return pack_call(call, constants)
        return self._shared(f"call-{call.tick}", specs, lambda: pack_call(call, constants))

    def hold(self, value: int, entry: Deferred) -> Array:
        """Returns a deferred constant that kernels read as it is, from its file."""
        if entry.nbytes < mmap.PAGESIZE:
            return entry.array()
        (array,) = self._shared(f"value-{value}", (entry.spec,), lambda: (entry.array(),))
        entry.keep(array)
        return array

    def _shared(
        self, name: str, specs: tuple[TensorSpec, ...], make: Callable[[], tuple[Array, ...]]
    ) -> tuple[Array, ...]:
        path = self.folder / name
        if not path.exists():
            arrays = make()
            if not all(array.flags.c_contiguous for array in arrays):
                return arrays
            _write_once(path, arrays)
            specs = tuple(map(spec_of, arrays))
            del arrays
        return mapped_arrays(path, specs)


def _write_once(path: Path, arrays: tuple[Array, ...]) -> None:
    """Writes arrays to a file; where another process was first, its file stays: that one is mapped already."""
    staged = path.with_name(f"{path.name}.{os.getpid()}")
    with staged.open("wb") as out:
        for array in arrays:
            out.write(array.tobytes().ljust(align_up(array.nbytes, CACHE_LINE), b"\0"))
    try:
        os.link(staged, path)
    except FileExistsError:
        pass
    finally:
        staged.unlink()


def mapped_arrays(path: Path, specs: tuple[TensorSpec, ...]) -> tuple[Array, ...]:
    """Returns the arrays that lie in a file one behind the other, each at a multiple of a cache line; read-only."""
    with path.open("rb") as file:
        mapping = mmap.mmap(file.fileno(), os.fstat(file.fileno()).st_size, access=mmap.ACCESS_READ)
    arrays, offset = [], 0
    for spec in specs:
        arrays.append(np.ndarray(spec.shape, spec.dtype, mapping, offset))
        offset += align_up(spec.nbytes, CACHE_LINE)
    return tuple(arrays)
