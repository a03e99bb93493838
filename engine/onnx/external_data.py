"""Data of tensors in files beside the model, or in the file of the model, or in memory. Files are mapped, not read."""

import mmap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from attrs import field, frozen

from engine.graph.mapped import map_file
from engine.onnx.packed import from_bytes, stored_bytes
from engine.onnx.wire_format import OWN_FILE
from engine.text.errors import ModelError
from ops.tensor.spec import Array, TensorSpec

_MOST_DIGITS = 20
"""The digits of a number of bytes, at most: more than any file needs."""
_MOST_SHOWN = 80
_Bytes = mmap.mmap | bytes | memoryview


@frozen(eq=False)
class DataFiles:
    """The data files below a folder; there are none where it is None. `opened` has those that are open, by location.

    It may have bytes of memory in place of a file. Files are read into memory where they are not `mapped`.
    """

    folder: Path | None
    opened: dict[str, _Bytes] = field(factory=dict, repr=False)
    mapped: bool = True

    @property
    def nbytes(self) -> int:
        """Returns the bytes of the files that are open."""
        return sum(map(len, self.opened.values()))

    def array(self, tensor: Any, spec: TensorSpec, what: str) -> Array:
        """Returns the part of a file that a TensorProto names: dense, at any address. Raises ModelError."""
        entries = {entry.key: entry.value for entry in tensor.external_data}
        location = entries.get("location", "")
        mapping, offset = self._mapping(location, spec, what), _number(entries, "offset", 0, what)
        length = _number(entries, "length", stored_bytes(spec), what)
        if length != stored_bytes(spec):
            raise ModelError(f"{what} does not hold the data of a {spec}: it has {length} bytes")
        if offset + length > len(mapping):
            raise ModelError(f"{what} needs {length} bytes from {offset} on; {Path(location).name} has {len(mapping)}")
        if not spec.size:
            return np.empty(spec.shape, spec.dtype)
        return from_bytes(mapping, offset, spec)

    def _mapping(self, location: str, spec: TensorSpec, what: str) -> _Bytes:
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

    def _opened(self, path: Path, spec: TensorSpec, what: str) -> _Bytes:
        size = path.stat().st_size
        if size < stored_bytes(spec):
            raise ModelError(f"{what} needs {stored_bytes(spec)} bytes; {path.name} has {size}")
        if not self.mapped:
            return path.read_bytes()
        return map_file(path) if size else b""

    def _path(self, location: str, what: str) -> Path:
        """Returns the path of a file below the folder of the model. Raises ModelError, OSError, RuntimeError."""
        if self.folder is None:
            raise ModelError(f"{what} lies in a file beside the model: load the model by its path")
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
"""The data files of a message that came without a file: none."""


def own_file(folder: Path | None, data: _Bytes, *, mapped: bool = True) -> DataFiles:
    """Returns the data files of a model in a folder (None: in memory alone), whose own bytes are mapped or read."""
    return DataFiles(folder, {OWN_FILE: data}, mapped)


def _shown(text: str) -> str:
    """Returns a text for an error message, cut where it is long."""
    return repr(text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}...")


def _number(entries: Mapping[str, str], key: str, default: int, what: str) -> int:
    text = entries.get(key, str(default))
    if not (text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS):
        raise ModelError(f"{what} has the {key} {_shown(text)} in its file, which is no number of bytes")
    return int(text)
