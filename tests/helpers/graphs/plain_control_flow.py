"""Control flow in plain Python: what If, Loop and Scan mean, on arrays, with no plan, no buffers and no kernel."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from engine import Graph, Operator
from ops.tensor.spec import Array
from tests.helpers.graphs.unplanned_run import evaluated, run_unplanned


def run_model(graph: Graph, feeds: Mapping[str, Array]) -> dict[str, Array]:
    """Returns all outputs by name."""
    return run_unplanned(graph, feeds, _run)


def _run(operator: Operator, arrays: list[Array]) -> Sequence[Array]:
    if operator.schema.name in _CONTROL:
        return _CONTROL[operator.schema.name](operator, arrays)
    return evaluated(operator, arrays)


def _body(body: Any, arrays: Sequence[Array]) -> list[Array]:
    return list(run_model(body.graph, dict(zip(body.graph.inputs, arrays, strict=True))).values())


def _if(operator: Operator, arrays: list[Array]) -> Sequence[Array]:
    return _body(operator.attrs["then_body" if arrays[0].item() else "else_body"], arrays[1:])


def _loop(operator: Operator, arrays: list[Array]) -> Sequence[Array]:
    attrs, rest = operator.attrs, list(arrays)
    limit = rest.pop(0).item() if attrs["trips_given"] else attrs["trips"]
    goes_on = rest.pop(0).item() if attrs["cond_given"] else True
    values, captured, turns = rest[: attrs["carried"]], rest[attrs["carried"] :], list[list[Array]]()
    while goes_on and (limit is None or len(turns) < limit):
        outputs = _body(attrs["body"], [np.asarray(len(turns), np.int64), *values, *captured])
        goes_on = outputs.pop(0).item() if attrs["conditional"] else True
        values = outputs[: attrs["carried"]]
        turns.append(outputs[attrs["carried"] :])
    stacks = [np.zeros(v.shape, v.dtype) for v in operator.outputs[attrs["carried"] : -1]]
    for number, rows in enumerate(turns):
        for stack, row in zip(stacks, rows, strict=True):
            stack[number] = row
    return *values, *stacks, np.asarray(len(turns), np.int64)


def _scan(operator: Operator, arrays: list[Array]) -> Sequence[Array]:
    attrs, states = operator.attrs, operator.attrs["states"]
    behind = states + attrs["scan_inputs"]
    values, turns = arrays[:states], list[list[Array]]()
    axes, ways = (attrs[f"input_{k}"] or (0,) * attrs["scan_inputs"] for k in ("axes", "directions"))
    columns = [_rows(a, axis, way) for a, axis, way in zip(arrays[states:behind], axes, ways, strict=True)]
    for rows in zip(*columns, strict=True):
        outputs = _body(attrs["body"], [*values, *rows, *arrays[behind:]])
        values = outputs[:states]
        turns.append(outputs[states:])
    stacks = [np.zeros(v.shape, v.dtype) for v in operator.outputs[states:]]
    axes, ways = (attrs[f"output_{k}"] or (0,) * len(stacks) for k in ("axes", "directions"))
    for i, stack in enumerate(stacks):
        for row, values_of_turn in zip(_rows(stack, axes[i], ways[i]), turns, strict=True):
            row[...] = values_of_turn[i]
    return *values, *stacks


def _rows(array: Array, axis: int, way: int) -> list[Array]:
    rows = list(np.moveaxis(array, axis, 0)[..., None])
    return [row[..., 0] for row in (reversed(rows) if way else rows)]


_CONTROL: Mapping[str, Callable[[Operator, list[Array]], Sequence[Array]]] = {"if": _if, "loop": _loop, "scan": _scan}
