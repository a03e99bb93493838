"""Weights cut out of a model: what is left and what was cut are the model."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

import engine
from engine.graph.mapped import mapping_of
from engine.onnx.wire_format import LEAST_BYTES, OWN_FILE, cut_weights

SIZES = st.lists(st.integers(0, 3000), max_size=5)


def model_of(arrays: list[Any]) -> Any:
    """Returns a model in which each array is an output."""
    names = [f"w{i}" for i in range(len(arrays))]
    nodes = [helper.make_node("Identity", [n], [f"{n}_out"]) for n in names]
    outputs = [
        helper.make_tensor_value_info(f"{n}_out", helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for n, a in zip(names, arrays, strict=True)
    ]
    tensors = [numpy_helper.from_array(a, n) for n, a in zip(names, arrays, strict=True)]
    graph = helper.make_graph(nodes, "weights", [], outputs, tensors, doc_string="what is told " * 20)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@settings(max_examples=25)
@given(SIZES, st.sampled_from(["float32", "int64", "uint8"]))
def test_weights_cut_from_an_onnx_file_can_be_put_back(sizes: list[int], dtype: str) -> None:
    model = model_of([np.arange(n).astype(dtype) for n in sizes])
    data = model.SerializeToString()
    left = onnx.ModelProto.FromString(cut_weights(memoryview(data)))
    for tensor in left.graph.initializer:
        entries = {e.key: e.value for e in tensor.external_data}
        assert bool(entries) == (tensor.data_location == TensorProto.EXTERNAL)
        if entries:
            assert entries["location"] == OWN_FILE and int(entries["length"]) >= LEAST_BYTES
            first = int(entries["offset"])
            tensor.raw_data = data[first : first + int(entries["length"])]
            tensor.ClearField("external_data")
            tensor.ClearField("data_location")
        assert len(tensor.raw_data) < LEAST_BYTES or entries
    assert left == model


@settings(max_examples=40)
@given(st.binary(max_size=200))
def test_cut_weights_leaves_invalid_bytes_for_protobuf_to_refuse(data: bytes) -> None:
    assert isinstance(cut_weights(memoryview(data)), bytes)


@settings(max_examples=30)
@given(st.data())
def test_cut_weights_leaves_a_truncated_file_as_it_is(data: st.DataObject) -> None:
    whole = model_of([np.arange(2000.0), np.arange(10.0)]).SerializeToString()
    short = whole[: data.draw(st.integers(0, len(whole) - 1))]
    light = cut_weights(memoryview(short))
    assert light == short or onnx.ModelProto.FromString(light)


def test_a_model_is_loaded_with_its_weights_in_the_file(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal((40, 50)).astype(np.float32) for _ in range(8)]
    nodes = [helper.make_node("Add", [f"y{i}" if i else "x", f"w{i}"], [f"y{i + 1}"]) for i in range(8)]
    info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [40, 50]) for n in ("x", "y8")]
    tensors = [numpy_helper.from_array(a, f"w{i}") for i, a in enumerate(arrays)]
    for i, tensor in enumerate(tensors):
        tensor.doc_string = "." * i  # so that they lie at all distances from whole floats
    graph = helper.make_graph(nodes, "sums", info[:1], info[1:], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    x = rng.standard_normal((40, 50)).astype(np.float32)
    wanted = engine.compile(engine.load_onnx(model)).run({"x": x})["y8"]
    onnx.save(model, tmp_path / "inside.onnx")
    onnx.save(model, tmp_path / "beside.onnx", save_as_external_data=True, location="w.data", size_threshold=1)
    for name in ("inside", "beside"):
        loaded = engine.load_onnx(tmp_path / f"{name}.onnx")
        assert [a.tolist() for a in loaded.constants.values()] == [a.tolist() for a in arrays]
        assert all(a.flags.aligned for a in loaded.constants.values())
        mapped = [mapping_of(a) is not None for a in loaded.constants.values()]
        assert all(mapped) if name == "beside" else 0 < sum(mapped) < 8
        np.testing.assert_array_equal(engine.compile(loaded).run({"x": x})["y8"], wanted)
