"""Runs operators with kernels of the numpy back-end where numba cannot be imported; prints the names of those run.

A script: `python -m tests.helpers.ops.numpy_backend`, in a process of its own.
"""

import sys
from collections.abc import Iterator
from typing import Any

for absent in ("numba", "llvmlite"):
    sys.modules[absent] = None  # type: ignore[assignment]

import numpy as np  # noqa: E402 - numba is made impossible first

import engine  # noqa: E402
from engine import Graph  # noqa: E402
from ops.registry import REGISTRY  # noqa: E402
from ops.schema.backends import NUMPY  # noqa: E402
from ops.schema.schema import OpSchema  # noqa: E402
from ops.tensor.spec import Array, TensorSpec  # noqa: E402
from tests.helpers.graphs.random_graphs import seeded  # noqa: E402
from tests.helpers.ops.gradient_cases import FAMILIES  # noqa: E402
from tests.helpers.ops.gradient_checks import Problem  # noqa: E402
from tests.helpers.ops.kernel_checks import run  # noqa: E402

_SEEDS = range(40)
_RNG = np.random.default_rng(0)


def _floats(*shape: int) -> Array:
    return _RNG.random(shape, np.float32) + np.float32(0.5)


def _uses() -> Iterator[tuple[str, list[Array], dict[str, Any]]]:
    """Yields uses of operators that random gradients do not use."""
    image, row, mask = _floats(2, 4, 6, 6), _floats(4), _floats(3, 4) > 1
    windows = {"kernel_shape": (3, 3), "pads": (1, 1, 1, 1)}
    for dtype in ("float16", "float32", "float64"):
        x = image.astype(dtype)
        yield "erf", [x], {}
        yield "gelu", [x], {}
        yield "gelu", [x], {"approximate": "tanh"}
        yield "gelu_gradient", [x, x], {}
        yield "top_k", [x], {"k": 3}
        yield "unique", [x], {"axis": 1, "sorted": False}
        yield "batch_norm", [x, *(row.astype(dtype),) * 4], {}
    for dtype in ("float32", "float64"):
        x, numbers = image.astype(dtype), row.astype(dtype)
        yield "batch_norm_training", [x, numbers, numbers], {}
        yield "channel_sums", [x, x, numbers, numbers], {}
        yield "batch_norm_data_gradient", [x, x, *(numbers,) * 5], {}
        yield "max_pool_gradient", [x, x], windows
        yield "dropout_training", [x, np.array(3)], {"rate": 0.25}
        yield "conv", [x, _floats(4, 1, 3, 3).astype(dtype)], {"group": 4}
        yield "conv_transpose", [x, _floats(4, 1, 3, 3).astype(dtype)], {"group": 4}
        yield "conv_weight_gradient", [x, x], {"group": 4, "kernel_shape": (3, 3), "pads": (1, 1, 1, 1)}
    yield "nonzero", [mask], {"count": int(mask.sum())}
    yield "count_nonzero", [mask], {}
    yield "compress", [_floats(3, 5), np.array([True, False, True])], {"axis": 0, "count": 2}
    yield "non_max_suppression", [_floats(2, 7, 4), _floats(2, 3, 7)], {"max_output": 3, "iou_threshold": 0.4}
    for name in ("max_pool", "average_pool", "nhwc_max_pool", "nhwc_average_pool"):
        yield name, [image], windows
    for name in ("global_average_pool", "global_max_pool"):
        yield name, [image], {}
    yield "lrn", [image], {"size": 3}
    yield "lrn_gradient", [image, image], {"size": 3}
    for name in ("layer_norm", "rms_norm"):
        yield name, [_floats(3, 4), row], {}
    yield "nhwc_conv", [image, _floats(5, 6, 3, 3)], {}
    yield "matmul_integer", [mask.astype(np.uint8), mask.T.astype(np.int8)], {}


def _run(schema: OpSchema, arrays: list[Array], attrs: Any) -> tuple[Array, ...]:
    signature = schema.sign([TensorSpec(a.shape, a.dtype) for a in arrays], attrs)
    return run(schema.kernel(signature, (NUMPY,)), signature, arrays)


def _run_graph(graph: Graph, feeds: dict[str, Array]) -> Iterator[str]:
    arrays = dict(graph.constants) | {var: feeds[name] for name, var in graph.inputs.items()}
    for operator in graph.operators:
        results = _run(operator.schema, [np.asarray(arrays[v]) for v in operator.inputs], operator.attrs)
        arrays.update(zip(operator.outputs, results, strict=True))
        yield operator.schema.name


def _names() -> Iterator[str]:
    for name, arrays, attrs in _uses():
        _run(REGISTRY[name], arrays, attrs)
        yield name
    for family in FAMILIES:
        for seed in _SEEDS:
            case = family(seeded(seed))
            problem = Problem(case.build, case.arrays)
            try:
                graph, _ = problem.gradients(problem.floats)
            except engine.EngineError:  # not every operator has a gradient everywhere
                continue
            yield from _run_graph(graph, problem.feeds)


if __name__ == "__main__":
    sys.stdout.write(" ".join(sorted(set(_names()))))
