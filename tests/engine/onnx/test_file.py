import gzip
import io
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from engine.onnx.library import decode_error
from engine.onnx.load import load_onnx
from engine.onnx.wire_format import MOST_DEPTH, message_depth
from engine.text.errors import EngineError, ModelError, UnsupportedError
from tests.helpers.onnx.small_models import model, node, value


def _small(**options: Any) -> Any:
    weights = {"w": np.arange(6, dtype=np.float32).reshape(2, 3)}
    return model([node("MatMul", ["x", "w"])], [value("x", (1, 2))], initializers=weights, **options)


def test_a_path_and_a_message_give_the_same_graph(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(_small().SerializeToString())
    assert (
        load_onnx(tmp_path / "m.onnx").text()
        == load_onnx(_small()).text()
        == load_onnx(str(tmp_path / "m.onnx")).text()
    )


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(ModelError, match=r"nowhere\.onnx: there is no such file"):
        load_onnx("nowhere.onnx")


def test_a_file_that_is_open_for_text_or_was_cut_short_is_refused(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(_small().SerializeToString() + b"\xff")
    with (tmp_path / "m.onnx").open(encoding="utf-8") as file, pytest.raises(ModelError, match="with mode 'rb'"):
        load_onnx(file)
    packed = io.BytesIO(gzip.compress(_small().SerializeToString())[:-9])
    with gzip.open(packed) as file, pytest.raises(ModelError, match="cannot be read: Compressed file ended"):
        load_onnx(file)


def test_an_empty_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").touch()
    with pytest.raises(ModelError, match="is empty"):
        load_onnx(tmp_path / "m.onnx")


@pytest.mark.parametrize("data", [b"hello, this is no model at all\n", b"\x00" * 40, bytes(range(256)), b'{"a": 1}'])
def test_a_file_that_is_no_onnx_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "m.onnx").write_bytes(data)
    with pytest.raises(ModelError, match="no ONNX"):
        load_onnx(tmp_path / "m.onnx")


def _nested(levels: int) -> Any:
    """Returns graphs inside operators, so many levels deep."""
    proto = model([], [value("x", (2,))])
    graph = proto.graph
    for _ in range(levels):
        branch = graph.node.add(op_type="If").attribute.add(name="then_branch", type=onnx.AttributeProto.GRAPH)
        graph = branch.g
    graph.name = "innermost"
    return proto


def test_a_file_that_protobuf_finds_too_deep_is_told_as_that(tmp_path: Path) -> None:
    data = _nested(40).SerializeToString()
    (tmp_path / "m.onnx").write_bytes(data)
    with pytest.raises(ModelError, match=r"m\.onnx nests messages 121 deep, and protobuf reads at most 100"):
        load_onnx(tmp_path / "m.onnx")
    (tmp_path / "m.onnx").write_bytes(data[:-1])
    with pytest.raises(ModelError, match="was cut short"):
        load_onnx(tmp_path / "m.onnx")


def test_depth_is_counted_as_protobuf_counts_it() -> None:
    for levels in range(25, 40):
        data = _nested(levels).SerializeToString()
        depth = message_depth(data, onnx.ModelProto.DESCRIPTOR)
        try:
            onnx.ModelProto.FromString(data)
        except decode_error():
            assert depth > MOST_DEPTH
        else:
            assert depth <= MOST_DEPTH


def test_every_truncated_file_is_refused_in_one_line(tmp_path: Path) -> None:
    data = _small().SerializeToString()
    for length in range(1, len(data)):
        (tmp_path / "m.onnx").write_bytes(data[:length])
        with pytest.raises(ModelError) as caught:
            load_onnx(tmp_path / "m.onnx")
        assert "\n" not in str(caught.value)


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), min_size=1, max_size=4))
def test_damaged_bytes_give_a_graph_or_an_error_of_ours(damage: list[tuple[int, int]]) -> None:
    data = bytearray(_small().SerializeToString())
    for place, byte in damage:
        data[place % len(data)] = byte
    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(bytes(data))
    except decode_error():
        return
    try:
        load_onnx(proto)
    except EngineError as error:
        assert str(error)


def test_load_onnx_refuses_something_else_than_a_model() -> None:
    with pytest.raises(ModelError, match="not dict"):
        load_onnx({})


@pytest.mark.parametrize("version", [1, 6, 10**6])
def test_an_operator_set_out_of_range_is_named(version: int) -> None:
    with pytest.raises(UnsupportedError, match=rf"ai\.onnx version {version} is not supported; versions 7 to"):
        load_onnx(_small(opset=version))


def _external(location: str, data: bytes = b"", offset: str = "0") -> Any:
    proto = _small()
    tensor = proto.graph.initializer[0]
    tensor.data_location = TensorProto.EXTERNAL
    tensor.raw_data = data
    for key, text in (("location", location), ("offset", offset), ("length", "24")):
        tensor.external_data.add(key=key, value=text)
    return proto


def test_external_data_below_the_folder_is_read(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    weights = np.arange(6, dtype=np.float32).reshape(2, 3)
    (tmp_path / "data" / "w.bin").write_bytes(weights.tobytes())
    (tmp_path / "m.onnx").write_bytes(_external("data/w.bin").SerializeToString())
    graph = load_onnx(tmp_path / "m.onnx")
    assert [a.tolist() for a in graph.constants.values()] == [weights.tolist()]


@pytest.mark.parametrize(
    "location", ["../w.bin", "/etc/hostname", "", "data/../../w.bin", "link.bin", "linked/w.bin", "a\0b"]
)
def test_external_data_never_leaves_the_folder(tmp_path: Path, location: str) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "w.bin").write_bytes(bytes(24))
    (folder / "link.bin").symlink_to(tmp_path / "w.bin")
    (folder / "linked").symlink_to(tmp_path)
    (folder / "m.onnx").write_bytes(_external(location).SerializeToString())
    with pytest.raises(ModelError, match=r"folder of the model"):
        load_onnx(folder / "m.onnx")


def test_external_data_that_is_missing_or_short_is_named(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(_external("w.bin").SerializeToString())
    with pytest.raises(ModelError, match=r"'w\.bin', and there is no such file"):
        load_onnx(tmp_path / "m.onnx")
    (tmp_path / "w.bin").write_bytes(bytes(23))
    with pytest.raises(ModelError, match=r"initializer 'w' needs 24 bytes; w\.bin has 23"):
        load_onnx(tmp_path / "m.onnx")


@pytest.mark.parametrize("offset", ["8", "-1", "many"])
def test_external_data_with_an_offset_that_does_not_fit_is_refused(tmp_path: Path, offset: str) -> None:
    (tmp_path / "w.bin").write_bytes(bytes(24))
    (tmp_path / "m.onnx").write_bytes(_external("w.bin", offset=offset).SerializeToString())
    with pytest.raises(ModelError, match="initializer 'w'"):
        load_onnx(tmp_path / "m.onnx")


def _refused(folder: Path, proto: Any, said: str) -> None:
    (folder / "m.onnx").write_bytes(proto.SerializeToString())
    with pytest.raises(ModelError, match=said) as caught:
        load_onnx(folder / "m.onnx")
    assert len(str(caught.value)) < 400


def test_links_in_a_circle_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.bin").symlink_to(tmp_path / "b.bin")
    (tmp_path / "b.bin").symlink_to(tmp_path / "a.bin")
    _refused(tmp_path, _external("a.bin"), r"initializer 'w' cannot be read from 'a\.bin'|no such file")


@pytest.mark.parametrize("location", ["a" * 5000, "b/" * 3000 + "w.bin"])
def test_names_of_external_data_that_no_file_can_have_are_refused(tmp_path: Path, location: str) -> None:
    _refused(tmp_path, _external(location), "initializer 'w' .* '(a|b/)+")


@pytest.mark.parametrize("offset", ["1" * 5000, "\u0663", "\u00b2", " 1", "+1", "1_0", ""])
def test_an_offset_that_is_no_number_is_refused(tmp_path: Path, offset: str) -> None:
    (tmp_path / "w.bin").write_bytes(bytes(64))
    _refused(tmp_path, _external("w.bin", offset=offset), "initializer 'w' has the offset .* no number of bytes")


def test_a_folder_that_cannot_be_entered_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Path.is_file

    def refused(path: Path) -> bool:
        if path.name == "w.bin":
            raise PermissionError(13, "Permission denied")
        return asked(path)

    monkeypatch.setattr(Path, "is_file", refused)
    _refused(tmp_path, _external("d/w.bin"), r"cannot be read from 'd/w\.bin': Permission denied")


def test_a_message_has_no_folder_for_external_data() -> None:
    with pytest.raises(ModelError, match="load the model by its path"):
        load_onnx(_external("w.bin"))


@pytest.mark.parametrize("size", [0, 20, 28])
def test_raw_data_of_a_wrong_length_is_refused(size: int) -> None:
    proto = _small()
    proto.graph.initializer[0].raw_data = bytes(size)
    with pytest.raises(ModelError, match=r"initializer 'w' does not hold the data of a float32\[2,3\]"):
        load_onnx(proto)


@pytest.mark.parametrize("dims", [(-1, 3), (2, -3), (2**40, 2**40), (2**62,)])
def test_dimensions_of_an_initializer_that_make_no_sense_are_refused(dims: tuple[int, ...]) -> None:
    proto = _small()
    del proto.graph.initializer[0].dims[:]
    proto.graph.initializer[0].dims.extend(dims)
    with pytest.raises(ModelError, match="initializer 'w'"):
        load_onnx(proto)


@pytest.mark.parametrize(
    ("code", "name"),
    [(TensorProto.COMPLEX128, "complex128"),
     (TensorProto.STRING, "string"), (TensorProto.COMPLEX64, "complex64"), (TensorProto.UNDEFINED, "undefined")],
)  # fmt: skip
def test_element_types_out_of_scope_are_named(code: int, name: str) -> None:
    proto = _small()
    proto.graph.initializer[0].data_type = code
    with pytest.raises(UnsupportedError, match=rf"initializer 'w' has element type {name}"):
        load_onnx(proto)
    proto = _small()
    proto.graph.input[0].type.tensor_type.elem_type = code
    with pytest.raises(UnsupportedError, match=rf"input 'x' has element type {name}"):
        load_onnx(proto)


def test_sparse_initializers_are_refused() -> None:
    proto = _small()
    values = numpy_helper.from_array(np.ones(1, np.float32), "s")
    indices = numpy_helper.from_array(np.zeros(1, np.int64), "i")
    proto.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [2, 3]))
    with pytest.raises(UnsupportedError, match="initializer 's' is sparse"):
        load_onnx(proto)


def test_a_model_without_its_parts_is_refused() -> None:
    for field, name in itertools.product(("graph", "opset_import", "ir_version"), ("m",)):
        proto = _small()
        proto.ClearField(field)
        with pytest.raises(ModelError, match=f"the {name}odel has no"):
            load_onnx(proto)


def test_a_name_that_is_no_text_is_refused() -> None:
    data = _small().SerializeToString().replace(b"MatMul", b"Mat\xfful")
    with pytest.raises(ModelError, match="no UTF-8 text"):
        load_onnx(onnx.ModelProto.FromString(data))
