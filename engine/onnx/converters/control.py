"""Converters of If, Loop and Scan: one operator with bodies, planned beforehand or, where that cannot be, in stages.

Where constants decide, the body is read in place: one branch, or the iterations of a short loop that differ in shapes.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType, NoneType
from typing import Any, NoReturn

import numpy as np
from attrs import evolve

from engine.control.body import PlannedBody
from engine.control.deferred import Growth, add_branch, add_loop, are_alike, is_late, unlike_axes
from engine.graph.var import Var
from engine.onnx.bodies import NotStaticError, Reading, graph_of, read_body
from engine.onnx.builder import GraphBuilder
from engine.onnx.converters.collected import giving_rows, with_sequences
from engine.onnx.library import all_nodes
from engine.onnx.model_names import Value
from engine.onnx.node import Converter, Node, no_guess
from engine.onnx.structures import Held, element_names, grouped, is_tensor, tensor_in
from engine.text.errors import ConstantNeededError, ModelError, UnsupportedError
from ops.control.loop import COUNTER
from ops.schema.schema import Specs
from ops.symbolic.guesses import numbers_to
from ops.tensor.dims import dims_in
from ops.tensor.errors import OpError
from ops.tensor.spec import Array, TensorSpec, normalize_axis

_BRANCHES = ("then_branch", "else_branch")
_SIDES, _WAYS = ("input", "output"), ("axes", "directions")
_PLANNED = "a Scan is planned beforehand, and cannot do that; a Loop can"
_MOST_ROWS = 1024
"""Rows that a loop may reserve before it has counted them. More rows need more memory, but no second run."""
_MOST_UNROLLED = 10_000
"""Nodes of a loop whose iterations are read one by one, at most. More nodes make larger graphs and slower reading.

A loop of constants that has no more is computed when the model is read.
"""


def data_decide(node: Node, what: str, *inputs: tuple[int, str]) -> NoReturn:
    """Raises the error for something that only the data of a run decide, and that must be known before.

    It is a ConstantNeededError for the first of the inputs (position, role) that could be fixed, else a NotStaticError.
    """
    for index, role in inputs:
        if node.optional(index) is not None:
            node.array(index, role)
    raise NotStaticError(f"{node}: {what}, and that is known only at run time")


def _if(node: Node) -> tuple[Held, ...]:
    condition = node.value(0)
    if isinstance(condition, np.ndarray):
        if condition.size != 1:
            raise ModelError(f"the condition must have one element, not {condition.size}")
        return _in_place(node, bool(condition.item()))
    if isinstance(condition, Var):
        return _branches(node)
    try:
        with node.builder.graph.samples.transaction():
            return _branches(node)
    except (ModelError, OpError):  # only some lengths allow the other branch, so the lengths decide which one is taken
        return _in_place(node, bool(node.builder.integers(condition, no_guess)[0]))


def _in_place(node: Node, condition: bool) -> tuple[Held, ...]:
    outputs = node.branch(graph_of(node, _BRANCHES[not condition], 0))
    _check_count(node, len(outputs))
    return outputs


def _branches(node: Node) -> tuple[Held, ...]:
    """Converts an If with both branches as bodies. Raises ConstantNeededError where their outputs cannot be one."""
    builder = node.builder
    then = read_body(node, _BRANCHES[0], (), may_wait=True, repeats=False)
    other = read_body(node, _BRANCHES[1], (), then.captured, may_wait=True, repeats=False)
    then.own(other.captured)
    for reading in (then, other):
        _check_count(node, len(reading.layouts))
    if then.layouts != other.layouts:
        data_decide(node, "which branch runs decides how many tensors a sequence has", (0, "cond"))
    bodies = then.body(then.outputs), other.body(other.outputs)
    if not _fit(bodies[0].outputs, bodies[1].outputs, builder):
        data_decide(node, "which branch runs decides a shape or an element type", (0, "cond"))
    if not then.outputs:
        return grouped(then.layouts, ())
    outputs = [n for pair in zip(node.outputs, then.layouts, strict=True) for n in element_names(*pair)]
    names = builder.names(node.name, outputs)
    operands = (builder.computed(node.value(0)), *then.captured)
    return grouped(then.layouts, add_branch(builder.graph, operands, *bodies, name=node.name, output_names=names))


def _fit(one: Specs, other: Specs, builder: GraphBuilder) -> bool:
    """Returns whether outputs of two branches may be one value. Lengths may differ only if the run may be in stages."""
    in_stages = builder.may_wait and [(s.ndim, s.dtype) for s in one] == [(s.ndim, s.dtype) for s in other]
    return in_stages or are_alike(one, other, builder.graph.samples)


def _check_count(node: Node, outputs: int) -> None:
    """Raises ModelError unless a branch gives as many outputs as the node has."""
    if outputs != len(node.outputs):
        raise ModelError(f"the branch gives {outputs} outputs, and the node has {len(node.outputs)}")


def _loop(node: Node) -> tuple[Held, ...]:
    """Converts a Loop: planned beforehand, else in place where constants say how long it is, else in stages."""
    if not all(is_tensor(v) for v in node.held[2:]):
        return _in_place_only(node)
    try:
        return _one_operator(node, may_wait=False)
    except (NotStaticError, ConstantNeededError) as error:
        outputs = _read_in_place(node, _limit(node))
        if outputs:
            return outputs
        if not node.builder.may_wait:
            _refuse(node, error)
        return _one_operator(node, may_wait=True)


def _in_place_only(node: Node) -> tuple[Held, ...]:
    """Converts a Loop that carries a sequence: where its number of tensors changes, no graph has one body for it."""
    outputs = _read_in_place(node, _most_turns(node) if node.optional(0) is None else _limit(node))
    if outputs:
        return outputs
    reason = _reason(node)
    collecting = giving_rows(node)
    if collecting is None:
        raise reason
    return with_sequences(node, _loop(collecting), reason)


def _reason(node: Node) -> UnsupportedError:
    """Returns the error where constants must say how often a Loop runs, which carries a sequence."""
    reason = "carries a sequence, so that its turns are read one by one: constants must say how often it runs, and "
    try:
        _refuse(node, node.refuse(f"{reason}all turns together may be {_MOST_UNROLLED} nodes"))
    except UnsupportedError as error:
        return error


def _read_in_place(node: Node, limit: int | None) -> tuple[Held, ...]:
    """Reads the iterations one by one, where constants tell their number and it is small; else returns ()."""
    is_open = any(not isinstance(v, (np.ndarray, NoneType)) for v in (node.optional(0), node.optional(1)))
    if is_open or limit is None or limit > _most_turns(node):
        return ()
    try:
        return _unrolled(node, limit)
    except NotStaticError:
        return ()


def _most_turns(node: Node) -> int:
    """Returns how many turns of the body are few nodes; the body itself counts as one."""
    return _MOST_UNROLLED // (1 + sum(1 for _ in all_nodes(node.attr("body").node)))


def _is_computed(node: Node, body: PlannedBody, values: Sequence[Value], turns: int | None) -> bool:
    """Returns whether a loop can be computed at once: of constants, short, and without another loop in its body."""
    if turns is None or not all(isinstance(v, np.ndarray) for v in values) or turns > _most_turns(node):
        return False
    return not any(isinstance(v, PlannedBody) for op in body.graph.operators for v in op.attrs.values())


def _refuse(node: Node, error: UnsupportedError) -> NoReturn:
    """Raises an error that names an input of the loop that could be fixed, if there is one; else the error itself."""
    for index, role in enumerate(("M", "cond")):
        if isinstance(node.optional(index), Var):
            node.array(index, role)
    raise error


def _limit(node: Node) -> int | None:
    """Returns the largest number of iterations that constants allow; None where they set no limit."""
    trips, condition = node.optional(0), node.optional(1)
    if isinstance(condition, np.ndarray) and not condition.item():
        return 0
    return max(int(trips.item()), 0) if isinstance(trips, np.ndarray) else None


def _one_operator(node: Node, may_wait: bool) -> tuple[Value, ...]:
    """Converts a Loop to one operator. The condition of its body counts even if the node has none at the beginning."""
    carried, limit = _carried(node), _limit(node)
    reading = _read_iteration(node, carried, may_wait)
    goes_on, *outputs = reading.outputs
    is_last = isinstance(goes_on, np.ndarray) and not goes_on.item()
    conditional = not isinstance(goes_on, np.ndarray) or (is_last and limit is None)
    if is_last and limit is not None:
        limit = min(limit, 1)
    leading = _run_time_inputs(node, limit)
    attrs = {"carried": len(carried), "trips": limit, "conditional": conditional, **dict.fromkeys(leading, True)}
    after = reading.specs(1, 1 + len(carried))
    body = reading.body((goes_on, *outputs) if conditional else outputs)
    values = (*leading.values(), *carried, *reading.captured)
    is_counted = limit is not None and not conditional and "cond_given" not in leading
    if is_counted or len(outputs) == len(carried) or is_late(body, after, node.builder.graph.samples):
        return _add_loop(node, body, values, attrs, node.outputs)[:-1]
    if not node.builder.may_wait:
        data_decide(node, "how often it runs decides a shape", (0, "M"), (1, "cond"))
    if not conditional and "cond_given" not in leading:
        attrs = {"carried": len(carried), "trips": node.integer(0, "M", no_guess)}
        return _add_loop(node, body, values[len(leading) :], attrs, node.outputs)[:-1]
    if limit is not None and limit <= _MOST_ROWS:
        return _cut_off(node, _add_loop(node, body, values, {**attrs, "most": limit}, node.outputs[: len(carried)]))
    return _twice(node, may_wait, tuple(leading.values()), attrs)


def _add_loop(
    node: Node, body: PlannedBody, values: Sequence[Value], attrs: Mapping[str, Any], outputs: Sequence[str]
) -> tuple[Value, ...]:
    """Adds the loop, or computes it at once. Its last output is the number of iterations."""
    builder = node.builder
    if _is_computed(node, body, values, attrs["trips"]):
        return builder.emit("loop", values, {**attrs, "body": body}, node.name, outputs)
    operands = [builder.var(v) for v in values]
    return add_loop(
        builder.graph, operands, body, attrs, name=node.name, output_names=builder.names(node.name, outputs)
    )


def _cut_off(node: Node, outputs: Sequence[Value]) -> tuple[Value, ...]:
    """Returns the outputs of a loop without the reserved rows that no iteration has written."""
    *results, number = outputs
    carried = len(_carried(node))
    guess = numbers_to(results[carried].shape[0], turn=node.variant)
    ends = (node.count(number, guess, (0, "M"), (1, "cond")),)
    attrs = {"starts": (0,), "ends": ends, "axes": (0,)}
    rows = zip(results[carried:], node.outputs[carried:], strict=True)
    cut = (node.builder.emit("slice", (row,), attrs, f"{node.name}/slice", (name,))[0] for row, name in rows)
    return *results[:carried], *cut


def _twice(node: Node, may_wait: bool, leading: Sequence[Value], attrs: Mapping[str, Any]) -> tuple[Value, ...]:
    """Converts a loop without a limit of its rows: a first run counts the iterations, a second one writes the rows."""
    carried = _carried(node)
    reading = _read_iteration(node, carried, may_wait)
    body = reading.body(reading.outputs[not attrs["conditional"] : 1 + len(carried)])
    *_, number = _add_loop(node, body, (*leading, *carried, *reading.captured), attrs, ())
    trips = node.count(number, (), (0, "M"), (1, "cond"))
    reading = _read_iteration(node, carried, may_wait)
    body = reading.body(reading.outputs[1:])
    attrs = {"carried": len(carried), "trips": trips}
    return _add_loop(node, body, (*carried, *reading.captured), attrs, node.outputs)[:-1]


def _read_iteration(node: Node, carried: Sequence[Value], may_wait: bool) -> Reading:
    """Reads the body; again where a length changes from one iteration to the next, with an open length in its place."""
    specs = _specs(carried)
    growth = Growth(node.builder.graph.samples)
    while True:
        inputs: tuple[TensorSpec | Array, ...] = (COUNTER, np.asarray(True), *specs)
        reading = read_body(node, "body", inputs, may_wait=may_wait, growth=growth)
        _check_plain(reading)
        before = [v.spec for v in list(reading.graph.inputs.values())[1 : 1 + len(carried)]]
        after = reading.specs(1, 1 + len(carried))
        if len(after) != len(before):
            raise ModelError(f"the body has {len(after)} outputs for {len(before)} carried values")
        if not growth.learn(before, after, reading.graph.samples):
            return reading
        if not may_wait:
            raise NotStaticError(f"{node}: a carried value changes its shape from one iteration to the next")


def _check_plain(reading: Reading) -> None:
    """Raises ModelError for a body that gives a sequence or nothing where it takes a tensor."""
    if not reading.is_plain:
        raise ModelError("the body gives a sequence or an empty optional in place of a tensor")


def _run_time_inputs(node: Node, limit: int | None) -> dict[str, Value]:
    """Returns the number of iterations and the first condition, by attribute, where only the run knows them."""
    trips, condition = node.optional(0), node.optional(1)
    inputs = {}
    if limit is None and trips is not None:
        inputs["trips_given"] = trips
    if condition is not None and not isinstance(condition, np.ndarray):
        inputs["cond_given"] = condition
    return inputs


def _carried(node: Node) -> tuple[Value, ...]:
    return tuple(node.value(i) for i in range(2, len(node.inputs)))


def _specs(values: Sequence[Value]) -> tuple[TensorSpec, ...]:
    return tuple(TensorSpec(v.shape, v.dtype) for v in values)


def _unrolled(node: Node, limit: int) -> tuple[Held, ...]:
    """Reads the iterations one by one, each with its own number as a constant.

    Raises NotStaticError where data decide their number, and where a loop without a limit of its own goes on behind it.
    """
    values, rows = tuple(v for v in node.held[2:] if v is not None), list[Sequence[Value]]()
    condition = node.optional(1)
    proto, goes_on = graph_of(node, "body", 2 + len(values)), condition is None or bool(condition)
    while goes_on and len(rows) < limit:
        number = np.asarray(len(rows), np.int64)
        decision, *outputs = node.branch(proto, (number, np.asarray(True), *values), part=f"{number}/")
        if not isinstance(decision, np.ndarray):
            data_decide(node, "its body decides how often it runs")
        rows.append([tensor_in(v, f"row {i} of the body") for i, v in enumerate(outputs[len(values) :])])
        values, goes_on = tuple(outputs[: len(values)]), bool(decision.item())
    if goes_on and node.optional(0) is None:
        data_decide(node, f"it goes on after {limit} turns")
    if not rows and len(proto.output) > 1 + len(values):
        data_decide(node, "no iteration runs that tells the shape of a row")
    return *values, *(stacked(node, column) for column in zip(*rows, strict=True))


def stacked(node: Node, rows: Sequence[Value]) -> Value:
    """Returns tensors of one shape as the rows of one tensor."""
    return node.step("concat", *(node.step("reshape", r, shape=(1, *r.shape)) for r in rows), axis=0)


def _scan(node: Node) -> tuple[Value, ...]:
    operands, count = node.operands(), node.attr("num_scan_inputs", 0)
    if not 1 <= count <= len(operands):
        raise ModelError(f"num_scan_inputs is {count}, of {len(operands)} inputs")
    states, tensors = operands[:-count], operands[-count:]
    axes = node.attr("scan_input_axes") or (0,) * count
    rows = tuple(_row(v, axis) for v, axis in zip(tensors, axes, strict=True))
    try:
        reading = read_body(node, "body", (*_specs(states), *rows))
    except NotStaticError as error:
        raise NotStaticError(f"{error}; {_PLANNED}") from error
    _check_plain(reading)
    before, after = _specs(states), reading.specs(0, len(states))
    if len(after) != len(before) or unlike_axes(before, after, reading.graph.samples):
        raise NotStaticError(f"{node}: a carried value changes its shape from one iteration to the next; {_PLANNED}")
    sides = {f"{side}_{what}": node.attr(f"scan_{side}_{what}", ()) for side in _SIDES for what in _WAYS}
    attrs: dict[str, Any] = {"states": len(states), "scan_inputs": count, **sides}
    values, body = (*operands, *reading.captured), reading.body(reading.outputs)
    is_computed = _is_computed(node, body, values, tensors[0].shape[normalize_axis(axes[0], len(tensors[0].shape))])
    add = node.builder.emit if is_computed else node.builder.add
    return add("scan", values, {**attrs, "body": body}, node.name, node.outputs)


def _scan_batch(node: Node) -> tuple[Value, ...]:
    """Converts Scan of operator set 8: one Scan for each place of a batch, which is the first axis of all tensors."""
    if node.optional(0) is not None:
        raise node.refuse("lengths of the sequences of a batch are not supported")
    values = [node.value(i) for i in range(1, len(node.held))]
    batch = values[0].shape[0] if values and values[0].shape else 0
    if dims_in(batch) or batch < 1:
        raise node.refuse(f"a batch of {batch} is not supported; at least 1 is wanted, as a number")
    node.builder.allowance.take_nodes(batch)
    ways = {"scan_input_directions": node.attr("directions", ())}
    rows = []
    for i in range(batch):
        cut = (node.step("slice", v, starts=(i,), ends=(i + 1,), axes=(0,)) for v in values)
        held = tuple(node.step("reshape", v, shape=v.shape[1:]) for v in cut)
        rows.append(_scan(evolve(node, name=f"{node.name}/{i}", held=held, outputs=(), attrs={**node.attrs, **ways})))
    return tuple(stacked(node, column) for column in zip(*rows, strict=True))


def _row(value: Value, axis: int) -> TensorSpec:
    at = normalize_axis(axis, len(value.shape))
    return TensorSpec(value.shape[:at] + value.shape[at + 1 :], value.dtype)


CONVERTERS: Mapping[str, tuple[tuple[int, Converter | None], ...]] = MappingProxyType(
    {
        "If": ((1, _if),),
        "Loop": ((1, _loop),),
        "Scan": ((8, _scan_batch), (9, _scan)),
    }
)
