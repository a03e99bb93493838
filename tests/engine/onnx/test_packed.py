"""Constants of types that are smaller than a byte: packed in files, one in each byte in a graph."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

import engine
from engine.onnx.packed import from_bytes, stored_bytes
from engine.onnx.tensors import array_of, code_of
from engine.text.errors import ModelError, UnsupportedError
from ops.tensor.spec import NARROW, Array, spec_of
from tests.helpers.onnx.small_models import model, node

NAMES = sorted(d.name for d in NARROW)
PACKED = ("float4_e2m1fn", "int2", "int4", "uint2", "uint4")
SIZES = [0, 1, 2, 3, 4, 5, 4095, 9001, 40_001]


def _codes(name: str, size: int) -> Array:
    bits = {"2": 2, "4": 4}.get(name.removeprefix("u")[3:4], 4) if name in PACKED else 8
    return np.random.default_rng(size).integers(0, 2**bits, size).astype(np.uint8).view(name)


def _model(array: Array) -> Any:
    return model([node("Identity", ["w"])], [], initializers={"w": array}, opset=25)


def _constant(graph: engine.Graph) -> Array:
    (y,) = engine.compile(graph).run({}).values()
    return np.asarray(y)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", NAMES)
def test_constants_of_narrow_types_are_read_from_messages_and_files(name: str, size: int, tmp_path: Path) -> None:
    wanted = _codes(name, size)
    message = _model(wanted)
    one, two = tmp_path / "one.onnx", tmp_path / "two.onnx"
    onnx.save(message, one)
    onnx.save(_model(wanted), two, save_as_external_data=True, location="w.bin", size_threshold=0)
    for source in (message, one, two):
        read = _constant(engine.load_onnx(source))
        assert read.dtype == wanted.dtype
        assert read.tobytes() == numpy_helper.to_array(message.graph.initializer[0]).tobytes()


@given(st.sampled_from(PACKED), st.integers(0, 40))
def test_unpacking_is_that_of_onnx(name: str, size: int) -> None:
    array = _codes(name, size)
    tensor = numpy_helper.from_array(array, "w")
    assert stored_bytes(spec_of(array)) == len(tensor.raw_data)
    assert from_bytes(tensor.raw_data, 0, spec_of(array)).tobytes() == array_of(tensor, "w").tobytes()


@pytest.mark.parametrize("name", PACKED)
def test_data_that_is_too_short_is_told(name: str) -> None:
    tensor = TensorProto(name="w", data_type=code_of(np.dtype(name)), dims=[2**40], raw_data=b"12")
    with pytest.raises(ModelError, match="w does not hold the data of a"):
        array_of(tensor, "w")


def test_a_small_file_does_not_unpack_one_part_a_thousand_times(tmp_path: Path) -> None:
    proto = _model(np.zeros(2**21, np.dtype("int2")))
    onnx.save(proto, tmp_path / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    proto = onnx.load(tmp_path / "m.onnx", load_external_data=False)
    (first,) = proto.graph.initializer
    for i in range(1000):
        proto.graph.initializer.add().CopyFrom(first)
        proto.graph.initializer[-1].name = f"w{i}"
        proto.graph.node.append(node("Identity", [f"w{i}"], [f"y{i}"]))
        proto.graph.output.append(helper.make_empty_tensor_value_info(f"y{i}"))
    (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())
    with pytest.raises(UnsupportedError, match="too many bytes of names and constants"):
        engine.load_onnx(tmp_path / "m.onnx")
