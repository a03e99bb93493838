"""Reads an ONNX file into a message, and checks what can be wrong with a file."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from attrs import frozen

from engine.graph.mapped import map_file
from engine.onnx.external_data import NO_FILES, DataFiles, own_file
from engine.onnx.library import ModelProto, decode_error, domain_of, newest_opset, onnx
from engine.onnx.wire_format import MOST_DEPTH, cut_weights, message_depth
from engine.text.errors import ModelError, UnsupportedError

Source = str | Path | bytes | bytearray | memoryview | BinaryIO | ModelProto
"""What a model is read from: a path, the bytes of a file, an open file, or a message."""
OLDEST_OPSET = 7
_UNNAMED = "the model"
_TEXT_FILE = f"{_UNNAMED} cannot be read from a file of text; open it with mode 'rb'"
_OF_BUFFERS = (".csv", ".txt", ".plc", ".json")
"""Suffixes of files that hold buffers, which another command reads."""
_MOST_VERSION = 2**31 - 1
"""The most that onnx takes for the version of an operator set."""


@frozen(eq=False)
class Model:
    """A message, the data files of its tensors (none for a message without a file), and its operator sets."""

    proto: ModelProto
    files: DataFiles
    opsets: dict[str, int]


def read_model(source: Source, *, cut: bool = False, mapped: bool = False) -> Model:
    """Reads a path, the bytes of a file, or a file that is open for bytes; takes a message as it is.

    With `cut`, the message does not have the data of large weights. They stay parts of the files, which are `mapped`
    or read into memory, or of the bytes. Raises ModelError, or UnsupportedError for an opset out of range.
    """
    if isinstance(source, (str, Path)):
        path = Path(source)
        return _decoded(_content(path, mapped), path.parent, str(path), cut=cut, mapped=mapped)
    if isinstance(source, onnx().ModelProto):
        return _model(source, NO_FILES, _UNNAMED)
    return _decoded(_read(source), None, _UNNAMED, cut=cut, mapped=mapped)


def _decoded(data: Any, folder: Path | None, what: str, *, cut: bool, mapped: bool) -> Model:
    if not cut:
        return _model(_parse(what, data, len(data)), DataFiles(folder), what)
    return _model(_parse(what, cut_weights(memoryview(data)), len(data)), own_file(folder, data, mapped=mapped), what)


def _read(source: Any) -> bytes:
    """Returns the bytes of a model that is in memory, or in an open file. Raises ModelError."""
    try:
        data = source.read() if hasattr(source, "read") else source
    except UnicodeError as error:
        raise ModelError(_TEXT_FILE) from error
    except (EOFError, OSError, ValueError) as error:
        raise ModelError(f"{_UNNAMED} cannot be read: {error}") from error
    if isinstance(data, str) and data is not source:
        raise ModelError(_TEXT_FILE)
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise ModelError(
            f"a path, bytes, a file that is open for bytes or an onnx.ModelProto is wanted, not {type(source).__name__}"
        )
    if not len(data):
        raise ModelError(f"{_UNNAMED} is empty")
    return bytes(data)


def opsets_of(imports: ModelProto) -> dict[str, int]:
    """Returns the operator sets by domain, the default one under "". Raises UnsupportedError for a wrong version."""
    opsets = {domain_of(entry.domain): int(entry.version) for entry in imports}
    for domain, number in opsets.items():
        if not 0 <= number <= _MOST_VERSION:
            raise UnsupportedError(f"operator set {domain or 'ai.onnx'} version {number} does not exist")
    version = opsets.get("")
    if version is not None and not OLDEST_OPSET <= version <= newest_opset():
        message = (
            f"operator set ai.onnx version {version} is not supported; versions {OLDEST_OPSET} to {newest_opset()}"
        )
        raise UnsupportedError(f"{message} are")
    return opsets


def _content(path: Path, mapped: bool) -> Any:
    """Returns the bytes of a file, or the mapped file."""
    try:
        if path.is_file() and not path.stat().st_size:
            raise ModelError(f"{path} is empty")
        return map_file(path) if mapped and path.is_file() else path.read_bytes()
    except FileNotFoundError as error:
        raise ModelError(f"{path}: there is no such file") from error
    except IsADirectoryError as error:
        raise ModelError(f"{path} is a folder; a model is one file, such as {path / 'model.onnx'}") from error
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise ModelError(f"{path} cannot be read: {error}") from error


def _parse(what: str, data: bytes, size: int) -> ModelProto:
    proto = onnx().ModelProto()
    try:
        proto.ParseFromString(data)
    except decode_error() as error:
        depth = message_depth(data, proto.DESCRIPTOR)
        if depth > MOST_DEPTH:
            raise ModelError(
                f"{what} nests messages {depth} deep, and protobuf reads at most {MOST_DEPTH}: graphs "
                "inside operators are nested too deep"
            ) from error
        hint = "; arenaplan solve reads files of buffers" if what.lower().endswith(_OF_BUFFERS) else ""
        raise ModelError(f"{what} is no ONNX file, or was cut short after {size} bytes{hint}") from error
    return proto


def _model(proto: ModelProto, files: DataFiles, what: str) -> Model:
    missing = [
        name
        for name, there in (
            ("IR version", proto.ir_version > 0),
            ("graph", proto.HasField("graph")),
            ("operator set", len(proto.opset_import) > 0),
        )
        if not there
    ]
    if missing:
        raise ModelError(f"{what} has no {', no '.join(missing)}: it is no ONNX model, or was cut short")
    garbled = next((text for text in _texts(proto) if isinstance(text, bytes)), None)
    if garbled is not None:
        raise ModelError(f"{what} holds a name that is no UTF-8 text: {garbled[:40]!r}")
    return Model(proto, files, opsets_of(proto.opset_import))


def _texts(message: Any) -> Iterator[str | bytes]:
    """Yields all texts of a message but documentation. Protobuf returns a text that is no UTF-8 as bytes."""
    for field, value in message.ListFields():
        if field.type == field.TYPE_STRING and field.name != "doc_string":
            yield from ((value,) if isinstance(value, (str, bytes)) else value)
        elif field.type == field.TYPE_MESSAGE:
            for part in (value,) if hasattr(value, "ListFields") else value:
                yield from _texts(part)
