"""Packed constants in files: those of weights that a plan keeps in a memory with a folder."""

import mmap
from collections.abc import Collection, Hashable, Mapping
from pathlib import Path

import numpy as np
from attrs import define, field

from allocator.problem import align_up
from engine.executor.binding import PackCache, shared_pack_cache
from engine.graph.deferred import Deferred, Entry
from engine.lower.calls import Call
from engine.planning.placed import PlacedPlan
from engine.planning.weights import identity, packed_by, read_constants
from engine.system.file_bytes import bytes_in_file
from ops.tensor.layout import CACHE_LINE
from ops.tensor.spec import Array


@define(eq=False)
class FilePacks(PackCache):
    """A cache of packed constants. What kernels make of weights that lie in a folder goes to files without names there.

    `folder_of` has the folder of each of these weights, by value. What has less than a page, and what several folders
    have a part in, stays in memory.
    """

    folder_of: Mapping[int, str] = field(factory=dict)

    def make(self, call: Call, constants: Mapping[int, Entry]) -> tuple[Array, ...]:
        """Packs the constants of a call. Raises OptionError, NoMemoryError."""
        folders = {self.folder_of.get(call.inputs[i], "") for i in constants}
        return _in_file(super().make(call, constants), folders)

    def hold(self, value: int, entry: Deferred) -> Array:
        """Returns a deferred constant that kernels read as it is. Raises OptionError, NoMemoryError."""
        (array,) = _in_file((super().hold(value, entry),), {self.folder_of.get(value, "")})
        entry.keep(array)
        return array


def packs_of(plan: PlacedPlan) -> PackCache:
    """Returns a cache for executables of a plan: in the folders of its memories, where weights lie in some."""
    entries = plan.lowered.constants.entries
    shared, folder_of = shared_pack_cache(entries.values()), _folders(plan)
    return FilePacks(shared.shared, folder_of=folder_of) if folder_of else shared


def packed_file_bytes(plan: PlacedPlan) -> int:
    """Returns how many of the plan's resident bytes of weights lie in files when it runs here."""
    lowered, folder_of, sizes = plan.lowered, _folders(plan), dict[Hashable, int]()
    if not folder_of:
        return 0
    for call in lowered.calls:
        packed = dict(packed_by(call, lowered))
        folders = {folder_of.get(call.inputs[i], "") for i in call.signature.constants}
        sizes |= packed if _file_folder(sum(packed.values()), folders) else {}
    for value in read_constants(lowered):
        entry = lowered.constants.entries[value]
        if isinstance(entry, Deferred) and _file_folder(entry.nbytes, {folder_of.get(value, "")}):
            sizes[identity(entry)] = entry.nbytes
    return sum(sizes.values())


def _folders(plan: PlacedPlan) -> dict[int, str]:
    """Returns the folder of each constant that lies in a memory with one, by value."""
    folders = dict[int, str]()
    for placed in plan.memories:
        for value, row in placed.contents.row_of.items():
            folder = placed.memories[int(placed.assigned.memory[row])].folder
            if folder and row >= placed.contents.chunks:
                folders[value] = folder
    return folders


def _file_folder(nbytes: int, folders: Collection[str]) -> str:
    """Returns the folder in which arrays of so many bytes lie in a file; "" where they stay in memory."""
    return "".join(folders) if len(folders) == 1 and nbytes >= mmap.PAGESIZE else ""


def _in_file(arrays: tuple[Array, ...], folders: Collection[str]) -> tuple[Array, ...]:
    """Returns the arrays in one file of the folder; the same ones where they stay in memory."""
    ends = np.cumsum([align_up(array.nbytes, CACHE_LINE) for array in arrays]).tolist()
    is_dense = all(array.flags.c_contiguous and not array.dtype.hasobject for array in arrays)
    folder = _file_folder(sum(array.nbytes for array in arrays), folders)
    if not folder or not is_dense:
        return arrays
    row, written = bytes_in_file(Path(folder), ends[-1], CACHE_LINE), list[Array]()
    for array, first in zip(arrays, (0, *ends), strict=False):
        there: Array = np.ndarray(array.shape, array.dtype, row, first)
        np.copyto(there, array)
        there.flags.writeable = False
        written.append(there)
    return tuple(written)
