"""Converters of If, Loop and Scan: one operator with bodies, where shapes are known beforehand.

What constants decide is read in place: a branch, and the turns of a short loop that are not all alike.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NoReturn

import numpy as np

from engine.errors import ModelError
from engine.importers.onnx_bodies import NotStaticError, graph_of, read_body
from engine.importers.onnx_node import Converter, Node
from engine.importers.onnx_values import Value
from ops.loop import COUNTER
from ops.spec import TensorSpec, normalize_axis

_BRANCHES = ("then_branch", "else_branch")
_SIDES, _WAYS = ("input", "output"), ("axes", "directions")
_MOST_UNROLLED = 10_000
"""Nodes that a loop may come to when its turns are read one by one."""


def data_decide(node: Node, what: str, *inputs: tuple[int, str]) -> NoReturn:
    """The one place for sizes that only the data of a run decide: they would have to be read when the node has run.

    Raises ConstantNeededError for the first of the inputs (position, role) that could be fixed, else NotStaticError.
    """
    for index, role in inputs:
        if node.optional(index) is not None:
            node.array(index, role)
    raise NotStaticError(f"{node}: {what}, and that is known only at run time")


def _if(node: Node) -> tuple[Value, ...]:
    condition = node.value(0)
    if isinstance(condition, np.ndarray):
        if condition.size != 1:
            raise ModelError(f"the condition must have one element, not {condition.size}")
        return _complete(node, node.branch(graph_of(node, _BRANCHES[not condition.item()], 0)))
    then = read_body(node, _BRANCHES[0], ())
    other = read_body(node, _BRANCHES[1], (), then.captured)
    then.own(other.captured)
    for reading in (then, other):
        _complete(node, reading.outputs)
    if then.specs(0) != other.specs(0):
        data_decide(node, "which branch runs decides a shape or an element type", (0, "cond"))
    bodies = {"then_body": then.body(then.outputs), "else_body": other.body(other.outputs)}
    return node.last("if", condition, *then.captured, **bodies)


def _complete(node: Node, found: tuple[Value, ...]) -> tuple[Value, ...]:
    if len(found) != len(node.outputs):
        raise ModelError(f"the branch gives {len(found)} outputs, and the node has {len(node.outputs)}")
    return found


def _loop(node: Node) -> tuple[Value, ...]:
    try:
        return _turns(node)
    except NotStaticError:
        limit = _limit(node)
        if any(v is not None and not isinstance(v, np.ndarray) for v in node.inputs[:2]):
            data_decide(node, "its turns are not all alike", (0, "M"), (1, "cond"))
        if limit is None or limit * len(node.attr("body").node) > _MOST_UNROLLED:
            raise
        return _unrolled(node, limit)


def _limit(node: Node) -> int | None:
    """The most turns that constants allow; None where they tell nothing."""
    trips, condition = node.optional(0), node.optional(1)
    if isinstance(condition, np.ndarray) and not condition.item():
        return 0
    return max(int(trips.item()), 0) if isinstance(trips, np.ndarray) else None


def _turns(node: Node) -> tuple[Value, ...]:
    """The loop as one operator. A condition of the body's counts even where the node gives none to begin with."""
    carried, limit = _carried(node), _limit(node)
    specs = _specs(carried)
    reading = read_body(node, "body", (COUNTER, np.asarray(True), *specs))
    (goes_on, *made), behind = reading.outputs, 1 + len(carried)
    _check_carried(specs, reading.specs(1, behind))
    is_last = isinstance(goes_on, np.ndarray) and not goes_on.item()
    conditional = not isinstance(goes_on, np.ndarray) or (is_last and limit is None)
    if is_last and limit is not None:
        limit = min(limit, 1)
    ahead = _given(node, limit)
    if made[len(carried) :] and (limit is None or conditional or "cond_given" in ahead):
        data_decide(node, "how often it runs decides a shape", (0, "M"), (1, "cond"))
    body = reading.body((goes_on, *made) if conditional else made)
    flags = dict.fromkeys(ahead, True)
    attrs = {"body": body, "carried": len(carried), "trips": limit, "conditional": conditional, **flags}
    return node.last("loop", *ahead.values(), *carried, *reading.captured, **attrs)[:-1]


def _given(node: Node, limit: int | None) -> dict[str, Value]:
    """The number of turns and the first condition, where only the run knows them."""
    trips, condition = node.optional(0), node.optional(1)
    given = {}
    if limit is None and trips is not None:
        given["trips_given"] = trips
    if condition is not None and not isinstance(condition, np.ndarray):
        given["cond_given"] = condition
    return given


def _carried(node: Node) -> tuple[Value, ...]:
    return tuple(node.value(i) for i in range(2, len(node.inputs)))


def _specs(values: Sequence[Value]) -> tuple[TensorSpec, ...]:
    return tuple(TensorSpec(v.shape, v.dtype) for v in values)


def _check_carried(before: Sequence[TensorSpec], after: Sequence[TensorSpec]) -> None:
    """Raises ModelError, and NotStaticError where a value grows or shrinks from turn to turn."""
    if len(after) != len(before):
        raise ModelError(f"the body carries on {len(after)} values of {len(before)}")
    for i, (one, other) in enumerate(zip(before, after, strict=True)):
        if one.dtype != other.dtype:
            raise ModelError(f"value {i} that is carried on is {one} before a turn and {other} behind it")
        if one.shape != other.shape:
            raise NotStaticError(f"value {i} that is carried on is {one} before a turn and {other} behind it")


def _unrolled(node: Node, limit: int) -> tuple[Value, ...]:
    """The turns one behind the other, each with its own number as a constant."""
    values, rows = _carried(node), list[Sequence[Value]]()
    proto, goes_on = graph_of(node, "body", 2 + len(values)), True
    while goes_on and len(rows) < limit:
        number = np.asarray(len(rows), np.int64)
        decision, *made = node.branch(proto, (number, np.asarray(True), *values), part=f"{number}/")
        if not isinstance(decision, np.ndarray):
            data_decide(node, "its body decides how often it runs")
        rows.append(made[len(values) :])
        values, goes_on = tuple(made[: len(values)]), bool(decision.item())
    if not rows and len(proto.output) > 1 + len(values):
        data_decide(node, "no turn runs that tells the shape of a row")
    return *values, *(_stacked(node, column) for column in zip(*rows, strict=True))


def _stacked(node: Node, rows: Sequence[Value]) -> Value:
    return node.step("concat", *(node.step("reshape", r, shape=(1, *r.shape)) for r in rows), axis=0)


def _scan(node: Node) -> tuple[Value, ...]:
    operands, count = node.operands(), node.attr("num_scan_inputs", 0)
    if not 1 <= count <= len(operands):
        raise ModelError(f"num_scan_inputs is {count}, of {len(operands)} inputs")
    states, tensors = operands[:-count], operands[-count:]
    axes = node.attr("scan_input_axes") or (0,) * count
    rows = tuple(_row(v, axis) for v, axis in zip(tensors, axes, strict=True))
    reading = read_body(node, "body", (*_specs(states), *rows))
    _check_carried(_specs(states), reading.specs(0, len(states)))
    sides = {f"{side}_{what}": node.attr(f"scan_{side}_{what}", ()) for side in _SIDES for what in _WAYS}
    attrs: dict[str, Any] = {"states": len(states), "scan_inputs": count, **sides}
    return node.last("scan", *operands, *reading.captured, body=reading.body(reading.outputs), **attrs)


def _row(value: Value, axis: int) -> TensorSpec:
    at = normalize_axis(axis, len(value.shape))
    return TensorSpec(value.shape[:at] + value.shape[at + 1 :], value.dtype)


CONVERTERS: Mapping[str, tuple[tuple[int, Converter | None], ...]] = MappingProxyType(
    {
        "If": ((1, _if),),
        "Loop": ((1, _loop),),
        "Scan": ((9, _scan),),
    }
)
