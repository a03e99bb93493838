"""A graph as onnxruntime runs it."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnxruntime

from engine import Graph
from ops.tensor.spec import Array
from tests.helpers.onnx.onnx_writer import to_onnx


class OnnxSession:
    """Runs on one thread; weights are fed, and parameters handed from run to run."""

    def __init__(self, graph: Graph) -> None:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        source = to_onnx(graph, weights=False).SerializeToString()
        self._session = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
        self._outputs, self._updated = tuple(graph.outputs), tuple(var.name for var in graph.updates)
        self._constants = {var.name: array for var, array in graph.constants.items()}
        self.parameters = {var.name: parameter.initial for var, parameter in graph.parameters.items()}

    def run(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """Returns the outputs by name."""
        results: list[Any] = self._session.run(None, {**feeds, **self._constants, **self.parameters})
        arrays = [np.asarray(array) for array in results]
        count = len(self._outputs)
        self.parameters |= dict(zip(self._updated, arrays[count:], strict=True))
        return dict(zip(self._outputs, arrays[:count], strict=True))
