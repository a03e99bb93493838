"""Models of one operator of onnxruntime's own, and checks of their runs against onnxruntime's."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

import engine
from ops.tensor.spec import Array
from tests.helpers.onnx.small_models import Dims, run_onnxruntime
from tests.helpers.ops.sample_arrays import exact_factors

MICROSOFT = "com.microsoft"


def contributed(
    op_type: str,
    arrays: Sequence[Array | None],
    *,
    constants: Sequence[int] = (),
    dims: Mapping[int, Dims] | None = None,
    outputs: Sequence[str] = ("y",),
    domain: str = MICROSOFT,
    attrs: Mapping[str, Any] | None = None,
    **more: Any,
) -> tuple[Any, dict[str, Array]]:
    """Returns a model of one node, and its feeds. Inputs at the positions `constants` are initializers.

    `attrs` and `more` are the attributes of the node.
    """
    names = [f"i{k}" if a is not None else "" for k, a in enumerate(arrays)]
    present = {k: a for k, a in enumerate(arrays) if a is not None}
    node = helper.make_node(op_type, names, list(outputs), domain=domain, **(attrs or {}), **more)
    inputs = [
        helper.make_tensor_value_info(
            names[k], helper.np_dtype_to_tensor_dtype(a.dtype), list((dims or {}).get(k, a.shape))
        )
        for k, a in present.items()
        if k not in constants
    ]
    tensors = [numpy_helper.from_array(present[k], names[k]) for k in constants if k in present]
    results = [onnx.ValueInfoProto(name=o) for o in outputs if o]
    graph = helper.make_graph([node], "g", inputs, results, tensors)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(MICROSOFT, 1)]
    feeds = {names[k]: a for k, a in present.items() if k not in constants}
    return helper.make_model(graph, opset_imports=opsets, ir_version=8), feeds


def factors(dtype: Any, *shape: int) -> Array:
    """Returns random integers of the type, which depend on the shape alone; see `exact_factors`."""
    return exact_factors(np.random.default_rng(shape), shape, np.dtype(dtype).name)


def all_runs(proto: Any, feeds: Mapping[str, Array]) -> list[list[Array]]:
    """Returns our outputs: as the model was read and with all passes, of static, dynamic and watched runs."""
    graph = engine.load_onnx(proto)
    ways: list[dict[str, Any]] = [
        {"optimise": 0},
        {"optimise": 3, "debug": "poison"},
        {"optimise": 3, "mode": "dynamic"},
    ]
    return [list(engine.compile(graph, **way).run(dict(feeds)).values()) for way in ways]


def check(proto: Any, feeds: Mapping[str, Array], rtol: float = 1e-4, atol: float = 1e-5) -> None:
    """Checks that all our runs give what onnxruntime gives."""
    wanted = run_onnxruntime(proto, feeds)
    for outputs in all_runs(proto, feeds):
        for got, want in zip(outputs, wanted, strict=True):
            assert got.dtype == want.dtype
            assert got.shape == want.shape
            np.testing.assert_allclose(got, want, rtol=rtol, atol=atol)


def check_steps(proto: Any, feeds: Mapping[str, Array], most: int = 1) -> None:
    """Checks that quantised outputs are onnxruntime's but for rounding: no number differs by more steps than `most`."""
    wanted = run_onnxruntime(proto, feeds)
    for outputs in all_runs(proto, feeds):
        for got, want in zip(outputs, wanted, strict=True):
            assert got.dtype == want.dtype
            difference = np.abs(got.astype(np.int64) - want.astype(np.int64))
            assert got.shape == want.shape
            assert int(difference.max(initial=0)) <= most
            assert np.count_nonzero(difference) <= 1 + got.size // 50
