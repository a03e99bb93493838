"""Reading an ONNX file into a message, with everything that can be wrong with a file."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from attrs import frozen

from engine.errors import ModelError, UnsupportedError
from engine.importers.onnx_door import ModelProto, decode_error, domain_of, newest_opset, onnx

OLDEST_OPSET = 7


@frozen(eq=False)
class Model:
    """A message, and the folder where its external data may lie (None for a message that came without a file)."""

    proto: ModelProto
    folder: Path | None
    opsets: dict[str, int]


def read_model(source: str | Path | ModelProto) -> Model:
    """Reads a path, or takes a message as it is. Raises ModelError, or UnsupportedError for an opset out of range."""
    if isinstance(source, (str, Path)):
        path = Path(source)
        return _model(_parse(path), path.parent, str(path))
    if not isinstance(source, onnx().ModelProto):
        raise ModelError(f"a path or an onnx.ModelProto is wanted, not {type(source).__name__}")
    return _model(source, None, "the model")


def opsets_of(imports: ModelProto) -> dict[str, int]:
    """Operator sets by domain, the default one under "". Raises UnsupportedError for a version that is out of range."""
    found = {domain_of(entry.domain): int(entry.version) for entry in imports}
    version = found.get("")
    if version is not None and not OLDEST_OPSET <= version <= newest_opset():
        message = (
            f"operator set ai.onnx version {version} is not supported; versions {OLDEST_OPSET} to {newest_opset()}"
        )
        raise UnsupportedError(f"{message} are")
    return found


def _parse(path: Path) -> ModelProto:
    try:
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise ModelError(f"{path}: there is no such file") from error
    except IsADirectoryError as error:
        raise ModelError(f"{path} is a folder; a model is one file, such as {path / 'model.onnx'}") from error
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise ModelError(f"{path} cannot be read: {error}") from error
    if not data:
        raise ModelError(f"{path} is empty")
    proto = onnx().ModelProto()
    try:
        proto.ParseFromString(data)
    except decode_error() as error:
        raise ModelError(f"{path} is no ONNX file, or was cut short after {len(data)} bytes") from error
    return proto


def _model(proto: ModelProto, folder: Path | None, what: str) -> Model:
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
    return Model(proto, folder, opsets_of(proto.opset_import))


def _texts(message: Any) -> Iterator[str | bytes]:
    """All texts of a message but documentation. Protobuf gives one that is no UTF-8 as bytes."""
    for field, value in message.ListFields():
        if field.type == field.TYPE_STRING and field.name != "doc_string":
            yield from ((value,) if isinstance(value, (str, bytes)) else value)
        elif field.type == field.TYPE_MESSAGE:
            for part in (value,) if hasattr(value, "ListFields") else value:
                yield from _texts(part)
