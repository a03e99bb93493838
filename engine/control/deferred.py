"""Control flow whose shapes differ between branches or turns: how to recognise it, and how to add it to a graph."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from attrs import define, field

from engine.control.body import PlannedBody
from engine.graph.graph import Graph
from engine.graph.symbols import Axis
from engine.graph.var import Var
from ops.control.branch import IF, check_condition
from ops.control.deferred import IF_LATE, LOOP_LATE
from ops.control.loop import LOOP
from ops.schema.declared import declaring
from ops.schema.schema import Specs
from ops.tensor.dims import Dim, Samples, dims_in, leaf, sample_of
from ops.tensor.errors import ShapeError
from ops.tensor.spec import TensorSpec


def are_alike(one: Specs, other: Specs, table: Samples) -> bool:
    """Returns whether tensors have the same shapes, whatever the lengths are. Decides nothing."""
    return len(one) == len(other) and all(
        a.dtype == b.dtype
        and a.ndim == b.ndim
        and all(_is_same(m, n, table) for m, n in zip(a.shape, b.shape, strict=True))
        for a, b in zip(one, other, strict=True)
    )


def add_branch(
    outer: Graph, operands: Sequence[Var], one: PlannedBody, other: PlannedBody, **names: Any
) -> tuple[Var, ...]:
    """Adds an `if`; a deferred one where branches return other shapes, or data decide sizes inside.

    Raises ShapeError where the branches differ in the number of tensors, their number of dimensions or element types.
    """
    if are_alike(one.outputs, other.outputs, outer.samples) and not one.needs_data and not other.needs_data:
        return outer.add(IF, operands, {"then_body": one, "else_body": other}, **names)
    if len(one.outputs) != len(other.outputs):
        raise ShapeError(f"one branch gives {len(one.outputs)} tensors, and the other one {len(other.outputs)}")
    specs = [_merged(a, b, outer.samples) for a, b in zip(one.outputs, other.outputs, strict=True)]
    bodies = {"then_body": one.graph, "else_body": other.graph}
    return outer.add(IF_LATE, operands, {**bodies, **declaring(specs)}, **names)


def add_loop(
    outer: Graph, operands: Sequence[Var], body: PlannedBody, attrs: Mapping[str, Any], **names: Any
) -> tuple[Var, ...]:
    """Adds a `loop`; a deferred one where a carried value changes its shape, or data decide sizes inside.

    Raises OpError where the operands do not fit the body, or its condition is not one bool.
    """
    first = 1 if attrs.get("conditional") else 0
    behind = first + attrs["carried"]
    carried, rows = body.outputs[first:behind], body.outputs[behind:]
    if not is_late(body, carried, outer.samples):
        return outer.add(LOOP, operands, {"body": body, **attrs}, **names)
    if first:
        check_condition(body.outputs[0])
    attrs = {name: value for name, value in attrs.items() if name != "most"}
    turns: Any = leaf("turns", outer.samples.invent(), outer.samples, None)
    stacks = [TensorSpec((turns, *r.shape), r.dtype) for r in rows]
    specs = [*carried, *stacks, TensorSpec((), "int64")]
    return outer.add(LOOP_LATE, operands, {"body": body.graph, **attrs, **declaring(specs)}, **names)


def is_late(body: PlannedBody, carried: Specs, table: Samples) -> bool:
    """Returns whether a loop must be expanded turn by turn; `carried` has the specs after a turn."""
    return not are_alike(body.inputs[1 : 1 + len(carried)], carried, table) or _varies(body)


def _varies(body: PlannedBody) -> bool:
    """Returns whether a body cannot be planned beforehand."""
    own = {d.key.var for v in body.graph.inputs.values() for d in dims_in(v.shape) if isinstance(d.key, Axis)}
    return body.needs_data or any(body.graph.key(name) in own for name in body.graph.inputs)


@define(eq=False)
class Growth:
    """The axes (tensor, axis) of carried values that change from turn to turn, in classes.

    Axes of one class begin equal and stay equal, as far as a turn with sample lengths can show: such as the keys and
    the values in the cache of a decoder. `lengths` has the sample lengths of each class.
    """

    around: Samples
    classes: dict[tuple[int, int], Hashable] = field(factory=dict)
    lengths: dict[Hashable, tuple[int, ...]] = field(factory=dict)

    def of(self, tensor: int) -> dict[int, tuple[int, ...]]:
        """Returns sample lengths for the axes of a tensor that change."""
        return {axis: self.lengths[c] for (i, axis), c in self.classes.items() if i == tensor}

    def learn(self, before: Sequence[TensorSpec], after: Sequence[TensorSpec], table: Samples) -> bool:
        """Adds what a turn shows: other axes that change, or axes of one class that differ.

        Returns whether anything is new.

        Raises ShapeError.
        """
        classes = dict(self.classes)
        behind = {place: _in_samples(after[place[0]].shape[place[1]], table) for place in classes}
        leaders = {c: behind[place] for place, c in reversed(classes.items())}
        for place, c in classes.items():
            if behind[place] != leaders[c]:
                self.classes[place] = (c, behind[place])
        for i, axis in sorted(unlike_axes(before, after, table) - classes.keys()):
            self.classes[i, axis] = _in_samples(before[i].shape[axis], table)
        for c in self.classes.values():
            if c not in self.lengths:
                self.lengths[c] = self.around.invent()
        return self.classes != classes


def _in_samples(dim: Dim | int, table: Samples) -> tuple[int, ...]:
    return tuple(sample_of(dim, j) for j in table.alive)


def unlike_axes(before: Sequence[TensorSpec], after: Sequence[TensorSpec], table: Samples) -> set[tuple[int, int]]:
    """Returns the axes (tensor, axis) in which a carried value has another length after a turn than before it.

    Raises ShapeError where it has another element type or number of dimensions.
    """
    for one, other in zip(before, after, strict=True):
        if one.ndim != other.ndim or one.dtype != other.dtype:
            raise ShapeError(f"a carried value is {one} before a turn and {other} after it")
    return {
        (i, axis)
        for i, (one, other) in enumerate(zip(before, after, strict=True))
        for axis, (m, n) in enumerate(zip(one.shape, other.shape, strict=True))
        if not _is_same(m, n, table)
    }


def _merged(one: TensorSpec, other: TensorSpec, table: Samples) -> TensorSpec:
    if one.ndim != other.ndim or one.dtype != other.dtype:
        raise ShapeError(f"the branches give {one} and {other}: another element type, or number of dimensions")
    pairs = zip(one.shape, other.shape, strict=True)
    dims: Any = tuple(m if _is_same(m, n, table) else leaf("either", table.invent(), table, None) for m, n in pairs)
    return TensorSpec(dims, one.dtype)


def _is_same(one: Dim | int, other: Dim | int, table: Samples) -> bool:
    if isinstance(one, Dim) != isinstance(other, Dim) or str(one) != str(other):
        return False  # lengths from different data may agree in all samples
    return _in_samples(one, table) == _in_samples(other, table)
