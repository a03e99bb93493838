"""Types of 8 bits and fewer: which operators take them, and that those move every bit."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import engine
import ops
from engine import Graph
from ops.registry import REGISTRY
from ops.tensor.errors import OpError
from ops.tensor.spec import NARROW, TensorSpec
from tests.helpers.ops.kernel_checks import kernels, run
from tests.helpers.ops.scaled_uses import F32, Use, uses

MOVERS = frozenset(
    (
        *("assign", "compress", "concat", "copy", "depth_to_space", "expand", "gather", "gather_elements", "gather_nd"),
        *("identity", "one_hot", "pad", "reshape", "resize", "reverse_sequence", "scatter_elements", "scatter_nd"),
        *("slice", "slice_gradient", "space_to_depth", "split", "tile", "transpose", "trilu", "where", "eye_like"),
        *("cast", "quantize_linear", "dequantize_linear", "tensor_scatter"),
    )
)


def _narrow_uses(dtype: np.dtype[np.generic]) -> Iterator[tuple[Use, tuple[TensorSpec, ...]]]:
    for use in uses(64):
        inputs = tuple(s.with_dtype(dtype) if s.dtype == F32 else s for s in use.inputs)
        if inputs != use.inputs and use.schema.name != "in_single":
            yield use, inputs


@pytest.mark.parametrize("dtype", sorted(NARROW, key=str), ids=str)
def test_only_operators_that_move_elements_take_narrow_types(dtype: np.dtype[np.generic]) -> None:
    taken = set()
    for use, inputs in _narrow_uses(dtype):
        try:
            use.schema.sign(inputs, use.attrs)
        except OpError:
            continue
        taken.add(use.schema.name)
    assert taken and taken <= MOVERS & set(REGISTRY)


@pytest.mark.parametrize("dtype", ["int4", "float8_e5m2"])
def test_kernels_move_every_bit_of_narrow_types_as_of_bytes(dtype: str) -> None:
    tried = 0
    for use, inputs in _narrow_uses(np.dtype(dtype)):
        if use.schema.name not in MOVERS - {"cast", "compress", "eye_like", "resize"} or use.constants:
            continue
        try:
            signature = use.schema.sign(inputs, use.attrs)
            plain = use.schema.sign([s.with_dtype("uint8") if s.dtype in NARROW else s for s in inputs], use.attrs)
        except OpError:
            continue
        arrays = [np.random.default_rng(i).integers(0, 2, s.shape, np.uint8) for i, s in enumerate(inputs)]
        narrow = [
            a.view(dtype) if s.dtype in NARROW else a.astype(s.dtype) for a, s in zip(arrays, inputs, strict=True)
        ]
        whole = [a.view(np.uint8) if s.dtype in NARROW else a for a, s in zip(narrow, inputs, strict=True)]
        for kernel in kernels(use.schema, signature):
            got, wanted = run(kernel, signature, narrow), run(use.schema.kernel(plain), plain, whole)
            assert [a.tobytes() for a in got] == [a.tobytes() for a in wanted], use
        tried += 1
    assert tried > 20


@pytest.mark.parametrize("dtype", sorted(NARROW, key=str), ids=str)
def test_networks_store_narrow_types_in_all_modes(dtype: np.dtype[np.generic]) -> None:
    graph = Graph("stored")
    x = graph.input("x", (4, 6))
    narrow = ops.transpose(ops.cast(ops.relu(x), dtype), (1, 0))
    graph.output(ops.cast(ops.concat([narrow, narrow], 0), "float32"), "y")
    graph.output(narrow, "narrow")
    feeds = {"x": np.random.default_rng(0).uniform(0, 3, (4, 6)).astype(np.float32)}
    options: tuple[dict[str, Any], ...] = ({}, {"mode": "dynamic"}, {"debug": "poison"}, {"backend": "numpy"})
    wanted, *others = (engine.compile(graph, **each).run(feeds) for each in options)
    assert wanted["narrow"].dtype == dtype
    assert wanted["y"].tolist() == np.concatenate([wanted["narrow"].astype(np.float32)] * 2).tolist()
    for outputs in others:
        assert all(outputs[name].tobytes() == array.tobytes() for name, array in wanted.items())
