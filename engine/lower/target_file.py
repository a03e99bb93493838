"""Reads targets: the word "none", or a TOML file with the workspaces of a processor's kernels, and its memories.

name = "cortex-m7"

[[workspace]]
operator = "conv"
bytes = 4096
inputs = [[1, 16, 8, 8]]

[[memory]]
name = "sram"
capacity = "512KiB"
read_bandwidth = "4GB/s"
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any

from attrs import frozen

from allocator.memories.memory import Memory
from engine.lower.memories import KEYS, as_memories, memory_of
from engine.lower.target import HOST, NONE, Target, Workspace
from engine.text.errors import OptionError
from engine.text.options import close_to
from ops.tensor.spec import Shape

_KEYS = ("name", "workspace", "memory")
_ROW_KEYS = ("operator", "bytes", "inputs", "output")
_LARGEST = 2**48


def as_target(value: object) -> Target:
    """Returns the target that a text means: "" is the processor of this process, "none" one without workspaces.

    Any other text, or a path, names a TOML file. Raises OptionError, which names file and key, and OSError.
    """
    if isinstance(value, Target):
        return value
    if value == "":
        return HOST
    if value == NONE.name:
        return NONE
    if not isinstance(value, (str, PathLike)):
        raise OptionError(f"target {value!r} is neither {NONE.name!r} nor the name of a TOML file")
    return read_target(Path(value))


def read_target(path: Path) -> Target:
    """Returns the target in a TOML file. Raises OptionError, which names the file and the key, and OSError."""
    return _Reader(str(path)).target(path.read_bytes(), path.stem)


@frozen
class _Reader:
    """A reader of one file, whose errors name it."""

    file: str

    def fault(self, message: str) -> OptionError:
        return OptionError(f"{self.file}: {message}")

    def target(self, content: bytes, usual_name: str) -> Target:
        data = self._parsed(content)
        self._check_keys(data, _KEYS, "")
        name = data.get("name", usual_name)
        if not isinstance(name, str) or not name.isprintable() or name.strip() in ("", NONE.name):
            raise self.fault(f"name {name!r} is no name of a target")
        workspaces = tuple(self._row(row, where) for where, row in self._tables(data, "workspace"))
        self._check_once(workspaces)
        memories = tuple(self._memory(row, where) for where, row in self._tables(data, "memory"))
        try:
            return Target(name, workspaces, as_memories(memories))
        except OptionError as error:
            raise self.fault(str(error)) from error

    def _tables(self, data: Mapping[str, Any], key: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yields the tables of a key, each with what errors call it."""
        rows = data.get(key, [])
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise self.fault(f"{key} is no list of tables; write [[{key}]] above each")
        yield from ((f"{key} {number}", row) for number, row in enumerate(rows, 1))

    def _memory(self, row: Mapping[str, Any], where: str) -> Memory:
        self._check_keys(row, KEYS, f"{where}: ")
        self._check_there(row, ("name", "capacity", "read_bandwidth"), where)
        try:
            return memory_of(row)
        except OptionError as error:
            raise self.fault(f"{where}: {error}") from error

    def _parsed(self, content: bytes) -> dict[str, Any]:
        toml: Any = import_module("tomllib")  # few processes read a target
        try:
            data: dict[str, Any] = toml.loads(content.decode())
        except UnicodeDecodeError as error:
            raise self.fault("is no UTF-8 text") from error
        except (ValueError, RecursionError) as error:  # also a number of more digits than Python reads
            raise self.fault(f"is no TOML: {error}") from error
        return data

    def _check_keys(self, table: Mapping[str, object], keys: tuple[str, ...], where: str) -> None:
        for key in table:
            if key not in keys:
                raise self.fault(f"{where}{key!r} is unknown; {close_to(key, keys)}")

    def _check_there(self, table: Mapping[str, object], keys: tuple[str, ...], where: str) -> None:
        for key in keys:
            if key not in table:
                raise self.fault(f"{where}: {key!r} is missing")

    def _row(self, row: Mapping[str, Any], where: str) -> Workspace:
        self._check_keys(row, _ROW_KEYS, f"{where}: ")
        self._check_there(row, ("operator", "bytes"), where)
        inputs = row.get("inputs", [])
        if not isinstance(inputs, list):
            raise self.fault(f"{where}: inputs {inputs!r} is no list of shapes, such as [[1, 16, 8, 8]]")
        shapes = tuple(self._shape(shape, f"{where}: inputs") for shape in inputs)
        output = self._shape(row["output"], f"{where}: output") if "output" in row else None
        return Workspace(self._operator(row["operator"], where), self._bytes(row["bytes"], where), shapes, output)

    def _operator(self, name: object, where: str) -> str:
        if not isinstance(name, str) or not name:
            raise self.fault(f"{where}: operator {name!r} is no name of an operator")
        return name

    def _bytes(self, value: object, where: str) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _LARGEST:
            raise self.fault(f"{where}: bytes {value!r} is no integer from 0 to 2**48 - 1")
        return value

    def _shape(self, value: object, where: str) -> Shape:
        if not isinstance(value, list) or not all(type(d) is int and d >= 0 for d in value):
            raise self.fault(f"{where}: {value!r} is no shape, such as [1, 16, 8, 8]")
        return tuple(value)

    def _check_once(self, workspaces: tuple[Workspace, ...]) -> None:
        for (operator, _), times in Counter((row.operator, row.shapes) for row in workspaces).items():
            if times > 1:
                raise self.fault(f"operator {operator!r} is there {times} times with the same shapes")
