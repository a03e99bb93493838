"""Data of tensors that lies in files: in those beside the model, or in the model's own; mapped, not read."""

import mmap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from attrs import field, frozen

from engine.graph.mapped import map_file
from engine.onnx.wire_format import OWN_FILE
from engine.text.errors import ModelError
from ops.tensor.spec import Array, TensorSpec

_MOST_DIGITS = 20
"""Of a number of bytes: more than any file has."""
_MOST_SHOWN = 80


@frozen(eq=False)
class DataFiles:
    """Files below a folder; none where that is empty. `opened` has those that are mapped, by their location.

    Those that are not to be `mapped` are read into memory.
    """

    folder: Path | None
    opened: dict[str, mmap.mmap | bytes] = field(factory=dict, repr=False)
    mapped: bool = True

    def array(self, tensor: Any, spec: TensorSpec, what: str) -> Array:
        """The part of a file that a TensorProto names, dense and read-only, at any address. Raises ModelError."""
        told = {entry.key: entry.value for entry in tensor.external_data}
        location = told.get("location", "")
        mapping, offset = self._mapping(location, spec, what), _number(told, "offset", 0, what)
        length = _number(told, "length", spec.nbytes, what)
        if length != spec.nbytes:
            raise ModelError(f"{what} does not hold the data of a {spec}: it has {length} bytes")
        if offset + length > len(mapping):
            raise ModelError(f"{what} needs {length} bytes from {offset} on; {Path(location).name} has {len(mapping)}")
        if not spec.size:
            return np.empty(spec.shape, spec.dtype)
        found = np.frombuffer(mapping, spec.dtype.newbyteorder("<"), spec.size, offset).reshape(spec.shape)
        return found.astype(spec.dtype, copy=False)

    def _mapping(self, location: str, spec: TensorSpec, what: str) -> mmap.mmap | bytes:
        if location not in self.opened:
            try:
                mapping = self._opened(self._path(location, what), spec, what)
            except (OSError, RuntimeError) as error:  # RuntimeError: links in a circle
                said = getattr(error, "strerror", "") or str(error)
                raise ModelError(f"{what} cannot be read from {_shown(location)}: {said}") from error
            if not mapping:
                return b""
            self.opened[location] = mapping
        return self.opened[location]

    def _opened(self, path: Path, spec: TensorSpec, what: str) -> mmap.mmap | bytes:
        size = path.stat().st_size
        if size < spec.nbytes:
            raise ModelError(f"{what} needs {spec.nbytes} bytes; {path.name} has {size}")
        if not self.mapped:
            return path.read_bytes()
        return map_file(path) if size else b""

    def _path(self, location: str, what: str) -> Path:
        """The file that a tensor names, below the folder of the model. Raises ModelError, OSError, RuntimeError."""
        if self.folder is None:
            raise ModelError(f"{what} lies in a file beside the model: load the model by its path, not as a message")
        named = Path(location)
        if not location or "\0" in location or named.is_absolute() or ".." in named.parts:
            raise ModelError(f"{what} names {_shown(location)}, which is no file below the folder of the model")
        path = (self.folder / named).resolve()
        if not path.is_relative_to(self.folder.resolve()):
            raise ModelError(f"{what} names {_shown(location)}, which leads out of the folder of the model")
        if not path.is_file():
            raise ModelError(f"{what} lies in {_shown(location)}, and there is no such file beside the model")
        return path


NO_FILES = DataFiles(None)
"""Of a message that came without a file."""


def own_file(path: Path, mapping: mmap.mmap | bytes, *, mapped: bool = True) -> DataFiles:
    """For a model that lies in a file itself, mapped already, or read where it cannot be mapped, or shall not be."""
    return DataFiles(path.parent, {OWN_FILE: mapping}, mapped)


def _shown(text: str) -> str:
    """As it is, unless it is long."""
    return repr(text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}...")


def _number(told: Mapping[str, str], key: str, default: int, what: str) -> int:
    text = told.get(key, str(default))
    if not (text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS):
        raise ModelError(f"{what} has the {key} {_shown(text)} in its file, which is no number of bytes")
    return int(text)
