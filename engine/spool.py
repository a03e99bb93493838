"""An executable in files, which processes open without a copy of its weights: they map the same pages."""

import pickle
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any, BinaryIO
from weakref import finalize

import numpy as np
from attrs import define, field, frozen

from allocator.problem import align_up
from engine.api import Executable, compile_graph
from engine.executor.binding import packs_from
from engine.executor.pack_folder import PackFolder
from engine.graph.deferred import is_repeated
from engine.graph.graph import Graph
from engine.graph.mapped import MappedFile, map_file, mapping_of
from engine.saved import EmbeddedPlan
from engine.text.errors import OptionError
from ops.tensor.layout import CACHE_LINE, address_of
from ops.tensor.spec import Array

_SMALL = 4096
"""Bytes below which an array travels with the graph."""
_MEMORY = Path("/dev/shm")
"""A folder of files in memory, on Linux."""
_WEIGHTS, _GRAPH, _PACKS = "weights", "graph", "packs"


@frozen(eq=False)
class Contents:
    """What is compiled again: a graph, the keywords of `compile_graph`, the plan to follow, and parameters' values."""

    graph: Graph
    options: Mapping[str, Any]
    plan: EmbeddedPlan | None
    parameters: Mapping[str, Array]


@contextmanager
def spooled(contents: Contents, folder: Path | None = None) -> Iterator[Path]:
    """Writes contents to a new folder inside `folder`, by default one in memory; it is removed after the block."""
    with spooled_parts([contents], folder) as (spool,):
        yield spool


@contextmanager
def spooled_parts(parts: Sequence[Contents], folder: Path | None = None) -> Iterator[tuple[Path, ...]]:
    """Writes several contents to new folders, as `spooled` does; an array that several of them have is written once."""
    home = folder or (_MEMORY if _MEMORY.is_dir() else None)
    try:
        root = Path(mkdtemp(prefix="arenaplan-", dir=home))
    except OSError as error:
        raise OptionError(f"folder {str(home)!r}: no file can be written there: {error.strerror}") from error
    # Also where nobody takes all outputs: TemporaryDirectory then warns.
    remove = finalize(parts[0], rmtree, root, ignore_errors=True)
    try:
        spools = tuple(root / str(number) for number in range(len(parts)))
        with (root / _WEIGHTS).open("wb") as file:
            weights = _Weights(file, root / _WEIGHTS)
            for spool, contents in zip(spools, parts, strict=True):
                (spool / _PACKS).mkdir(parents=True)
                with (spool / _GRAPH).open("wb") as graph:
                    _Pickler(graph, weights).dump(contents)
        yield spools
    finally:
        remove()


def open_spool(spool: Path) -> Executable:
    """Compiles what lies in a folder. What kernels pack lies there, too, and is packed once for all processes."""
    with (spool / _GRAPH).open("rb") as file:
        contents: Contents = _Unpickler(file).load()
    with packs_from(PackFolder(folder=spool / _PACKS)):
        return compiled(contents)


def compiled(contents: Contents) -> Executable:
    """Compiles contents."""
    executable = compile_graph(contents.graph, embedded=contents.plan, **contents.options)
    executable.load(contents.parameters)
    return executable


@frozen
class _Place:
    """Where the bytes of an array lie; dense."""

    path: Path
    offset: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


@define(eq=False)
class _Weights:
    """A file of weights that grows, and where arrays lie."""

    file: BinaryIO
    path: Path
    placed: dict[int, tuple[Array, _Place]] = field(factory=dict)

    def place_of(self, array: Array) -> _Place:
        """Returns where an array lies: in the file that it was mapped from, or in this one."""
        if id(array) not in self.placed:
            self.placed[id(array)] = array, _in_its_file(array) or self._written(array)
        return self.placed[id(array)][1]

    def _written(self, array: Array) -> _Place:
        place = _Place(self.path, self.file.tell(), array.shape, array.dtype)
        self.file.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        self.file.write(bytes(align_up(array.nbytes, CACHE_LINE) - array.nbytes))
        return place


class _Pickler(pickle.Pickler):
    """Pickles all but large arrays, which stay in the files that they were mapped from, or go to a file of weights."""

    def __init__(self, graph: BinaryIO, weights: _Weights) -> None:
        super().__init__(graph, protocol=pickle.HIGHEST_PROTOCOL)
        self._weights = weights

    def persistent_id(self, value: Any) -> _Place | None:
        """Returns where an array lies; None for what is pickled as always."""
        if not isinstance(value, np.ndarray) or value.nbytes < _SMALL or value.dtype.hasobject or is_repeated(value):
            return None
        return self._weights.place_of(value)


def _in_its_file(array: Array) -> _Place | None:
    mapping = mapping_of(array)
    if not isinstance(mapping, MappedFile) or not array.flags.c_contiguous:
        return None
    offset = address_of(array) - address_of(np.frombuffer(mapping, np.uint8, 1))
    return _Place(mapping.path, offset, array.shape, array.dtype)


@define(eq=False, slots=False)
class _Arrays:
    """The arrays of a spool: each file is mapped once, and each place is one array."""

    files: dict[Path, MappedFile] = field(factory=dict)
    arrays: dict[_Place, Array] = field(factory=dict)

    def at(self, place: _Place) -> Array:
        """Returns the array of a place."""
        if place not in self.arrays:
            if place.path not in self.files:
                self.files[place.path] = map_file(place.path)
            self.arrays[place] = np.ndarray(place.shape, place.dtype, self.files[place.path], place.offset)
        return self.arrays[place]


class _Unpickler(pickle.Unpickler):
    """Reads what `_Pickler` wrote; arrays are parts of mapped files."""

    def __init__(self, graph: BinaryIO) -> None:
        super().__init__(graph)
        self._arrays = _Arrays()

    def persistent_load(self, place: _Place) -> Array:
        """Returns the array of a place."""
        return self._arrays.at(place)
