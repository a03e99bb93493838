"""Graphs in float64."""

from typing import Any

import numpy as np

from engine import Graph, Var

DOUBLE = np.dtype("float64")


def widened(graph: Graph) -> Graph:
    """Returns the same graph with every float32 in float64, so that differences are no rounding."""
    wide, of = Graph(graph.name), dict[Var, Var]()
    for name, var in graph.inputs.items():
        of[var] = wide.input(name, var.shape, _wide(var.dtype))
    for var, array in graph.constants.items():
        of[var] = wide.constant(array.astype(_wide(array.dtype)), var.name)
    for var, held in graph.parameters.items():
        initial = held.initial.astype(_wide(held.initial.dtype))
        of[var] = wide.parameter(initial, var.name, trainable=held.trainable)
    for op in graph.operators:
        attrs = {n: _wide(v) if isinstance(v, np.dtype) else v for n, v in op.attrs.items()}
        names = [v.name for v in op.outputs]
        outputs = wide.add(op.schema, [of[v] for v in op.inputs], attrs, name=op.name, output_names=names)
        of.update(zip(op.outputs, outputs, strict=True))
    for parameter, value in graph.updates.items():
        wide.assign(of[parameter], of[value])
    for name, var in graph.outputs.items():
        wide.output(of[var], name)
    return wide


def _wide(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return DOUBLE if dtype == np.float32 else dtype
