"""Models of few operators with large weights, and what a fresh process needs to load one.

python -m tests.helpers.onnx.large_models SMALL LARGE STORE: writes the bytes of the large model's weights, and the peak
of the resident set while it is loaded, above what the process had that had loaded the small one.
"""

import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import engine
from engine.system.process_memory import give_back, peak_bytes, reset_peak, resident_bytes

LAYERS = 10
_SCALES = (("s", np.float32(0.05)), ("zero", np.int8(0)))


def save_convolutions(path: Path, channels: int, *, quantised: bool, beside: bool = False) -> Path:
    """Writes ten convolutions of 3 x 3, each with a normalization to fold, or of int8 with scales (QDQ)."""
    rng, nodes, tensors, tensor = np.random.default_rng(0), [], [], "x"
    shape = (channels, channels, 3, 3)
    for i in range(LAYERS):
        if quantised:
            weights = rng.integers(-127, 128, shape, np.int8)
            nodes += _quantised(tensor, i)
        else:
            weights = rng.standard_normal(shape, np.float32)
            nodes += _normalised(tensor, i)
            tensors += [numpy_helper.from_array(np.full(channels, 0.5 + j, np.float32), f"n{i}_{j}") for j in range(4)]
        tensors.append(numpy_helper.from_array(weights, f"w{i}"))
        tensor = f"y{i}"
    tensors += [numpy_helper.from_array(np.asarray(value), name) for name, value in _SCALES]
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, (1, channels, 4, 4)) for n in ("x", tensor)]
    graph = helper.make_graph(nodes, "convolutions", values[:1], values[1:], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save_model(model, path, save_as_external_data=beside, location=f"{path.stem}.data", size_threshold=1024)
    return path


def _normalised(x: str, i: int) -> list[onnx.NodeProto]:
    names = [f"n{i}_{j}" for j in range(4)]
    return [
        helper.make_node("Conv", [x, f"w{i}"], [f"c{i}"], pads=(1, 1, 1, 1)),
        helper.make_node("BatchNormalization", [f"c{i}", *names], [f"b{i}"]),
        helper.make_node("Relu", [f"b{i}"], [f"y{i}"]),
    ]


def _quantised(x: str, i: int) -> list[onnx.NodeProto]:
    scales = [name for name, _ in _SCALES]
    return [
        helper.make_node("QuantizeLinear", [x, *scales], [f"q{i}"]),
        helper.make_node("DequantizeLinear", [f"q{i}", *scales], [f"d{i}"]),
        helper.make_node("DequantizeLinear", [f"w{i}", *scales], [f"v{i}"]),
        helper.make_node("Conv", [f"d{i}", f"v{i}"], [f"y{i}"], pads=(1, 1, 1, 1)),
    ]


def main(small: str, large: str, store: str) -> None:
    """Loads both, and writes the bytes of the weights and the peak."""
    engine.compile(engine.load_onnx(small), store=store, threads=1)
    give_back()
    before = resident_bytes() or 0
    reset_peak()
    executable = engine.compile(engine.load_onnx(large), store=store, threads=1)
    peak = (peak_bytes() or 0) - before
    assert executable.arena_bytes
    sys.stdout.write(f"{sum(initializer_bytes(large))} {peak}\n")


def initializer_bytes(path: str) -> list[int]:
    """Returns the bytes of each initializer of a model."""
    initializers = onnx.load_model(path, load_external_data=False).graph.initializer
    return [int(np.prod(t.dims)) * helper.tensor_dtype_to_np_dtype(t.data_type).itemsize for t in initializers]


if __name__ == "__main__":
    main(*sys.argv[1:])
