"""The comparison of policies judges bits that runs in sequence and runs at once can both have."""

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController

from engine import Graph
from engine.cli import tradeoff
from engine.executor import parallel
from ops.common.apply import apply1
from ops.schema.schema import Binding, Kernel, OpSchema, Thunk


def _bind(call: Binding) -> Thunk:
    blas, (y,) = ThreadpoolController().select(user_api="blas"), call.outputs

    def run() -> None:
        y[...] = max((library["num_threads"] for library in blas.info()), default=0)

    return run


_BLAS_THREADS = OpSchema(name="blas_threads", infer=lambda inputs, _: inputs, kernels=(Kernel("numpy", _bind),))
"""Its output is how many threads BLAS has when it runs."""


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_blas_has_as_many_threads_in_the_run_that_bits_are_compared_with(
    threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (tradeoff, parallel):
        monkeypatch.setattr(module, "cpus", lambda: 8)
    graph = Graph()
    graph.output(apply1(_BLAS_THREADS, graph.input("x", (3,))), "y")
    comparison = tradeoff.compare_policies(graph, {"x": np.zeros(3, np.float32)}, runs=1, threads=threads)
    assert comparison.outputs_equal
