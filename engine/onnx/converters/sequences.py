"""Converters of sequences and optionals: which tensors they have is known when the model is read.

What data decide is an element of tensors that are alike, and the sizes of parts, but never how many tensors there are.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from engine.control.deferred import are_alike
from engine.graph.symbols import Derived
from engine.graph.var import Var
from engine.onnx.bodies import graph_of
from engine.onnx.converters.control import stacked
from engine.onnx.model_names import Value
from engine.onnx.node import Converter, Node
from engine.onnx.structures import NOTHING, Held, Nothing, Rows, TensorList, element_names, items_of, tensor_in
from engine.text.errors import ModelError
from ops.symbolic.guesses import parts
from ops.tensor.dims import dims_in
from ops.tensor.spec import TensorSpec, normalize_axis

_BYTES = 8
"""Bytes that a tensor takes in each sequence that it is in."""


def _items(node: Node) -> tuple[Value, ...]:
    return items_of(node.held[0] if node.held else None, "input 0")


def _sequence(node: Node, items: Sequence[Value]) -> tuple[TensorList]:
    """Returns the one output of a node."""
    node.builder.allowance.take_bytes(_BYTES * len(items))
    return (TensorList(tuple(items)),)


def _checked(items: Sequence[Value]) -> Sequence[Value]:
    """Returns the tensors of a sequence. Raises ModelError where they have several element types."""
    dtypes = list(dict.fromkeys(item.dtype for item in items))
    if len(dtypes) > 1:
        raise ModelError(f"a sequence has tensors of one element type, not of {dtypes[0]} and {dtypes[1]}")
    return items


def _construct(node: Node) -> tuple[Held, ...]:
    return _sequence(node, _checked(node.operands()))


def _empty(_: Node) -> tuple[Held, ...]:
    return (TensorList(()),)


def _position(node: Node, index: int, first: int, end: int) -> int:
    """Returns the constant position that an input has, in the range [first, end). Raises ModelError."""
    position = int(node.number(index, "position"))
    if not first <= position < end:
        raise ModelError(f"position {position} is not in a sequence of {-first} tensors")
    return position


def _insert(node: Node) -> tuple[Held, ...]:
    items, new = _items(node), node.value(1)
    count = len(items)
    _checked((*items[:1], new))
    place = count if node.optional(2) is None else _position(node, 2, -count, count + 1)
    place += count if place < 0 else 0
    return _sequence(node, (*items[:place], new, *items[place:]))


def _erase(node: Node) -> tuple[Held, ...]:
    items = _items(node)
    if not items:
        raise ModelError("the sequence is empty; there is no tensor to erase")
    place = -1 if node.optional(1) is None else _position(node, 1, -len(items), len(items))
    place %= len(items)
    return _sequence(node, (*items[:place], *items[place + 1 :]))


def _at(node: Node) -> tuple[Held, ...]:
    """Converts SequenceAt: where the run decides the position, tensors of one shape become the rows of one tensor."""
    rows = node.held[0]
    if isinstance(rows, Rows):
        return node.last("gather", rows.tensor, node.step("reshape", node.value(1), shape=()), axis=0)
    items, position = _items(node), node.value(1)
    specs = tuple(TensorSpec(v.shape, v.dtype) for v in items)
    is_open = isinstance(position, (Var, Derived))
    if not is_open or not items or not are_alike(specs, specs[:1] * len(specs), node.builder.graph.samples):
        return (items[_position(node, 1, -len(items), len(items))],)
    return node.last("gather", stacked(node, items), node.step("reshape", position, shape=()), axis=0)


def _length(node: Node) -> tuple[Held, ...]:
    rows = node.held[0]
    if isinstance(rows, Rows):
        return (node.builder.of_integers(rows.tensor.shape[:1], ()),)
    return (np.asarray(len(_items(node)), np.int64),)


def _concat(node: Node) -> tuple[Held, ...]:
    axis, rows = node.attr("axis"), node.held[0]
    if isinstance(rows, Rows):
        return _joined(node, rows.tensor, axis)
    items = _items(node)
    if not items:
        raise ModelError("the sequence is empty; at least one tensor is wanted")
    if node.attr("new_axis", 0):
        items = tuple(_with_axis(node, item, axis) for item in items)
    return node.last("concat", *items, axis=axis)


def _joined(node: Node, rows: Value, axis: int) -> tuple[Held, ...]:
    """Returns the rows of a tensor, joined along an old or a new axis of theirs."""
    rank, is_new = len(rows.shape), node.attr("new_axis", 0)
    at = normalize_axis(axis, rank if is_new else rank - 1)
    order = (*range(1, at + 1), 0, *range(at + 1, rank))
    moved = node.step("transpose", rows, perm=order) if at else rows
    if is_new:
        return (moved,)
    shape = moved.shape
    return node.last("reshape", moved, shape=(*shape[:at], shape[at] * shape[at + 1], *shape[at + 2 :]))


def _with_axis(node: Node, item: Value, axis: int) -> Value:
    at = normalize_axis(axis, len(item.shape) + 1)
    return node.step("reshape", item, shape=(*item.shape[:at], 1, *item.shape[at:]))


def _split(node: Node) -> tuple[Held, ...]:
    x = node.value(0)
    axis = normalize_axis(node.attr("axis", 0), len(x.shape))
    sizes = _sizes(node, x.shape[axis])
    if not sizes:
        return (TensorList(()),)
    names = element_names(node.outputs[0], len(sizes))
    if node.optional(1) is not None or node.attr("keepdims", 1):
        return _sequence(node, node.builder.emit("split", (x,), {"axis": axis, "sizes": sizes}, node.name, names))
    rows = node.builder.emit("split", (x,), {"axis": axis, "sizes": sizes}, f"{node.name}/split", ())
    shape = {"shape": (*x.shape[:axis], *x.shape[axis + 1 :])}
    pairs = zip(rows, names, strict=True)
    return _sequence(
        node, [node.builder.emit("reshape", (r,), shape, f"{node.name}/reshape", (n,))[0] for r, n in pairs]
    )


def _sizes(node: Node, length: int) -> tuple[int, ...]:
    """Returns the lengths of the parts: those of a tensor, or equal ones but for the last. Raises ModelError."""
    split = node.optional(1)
    if split is not None and len(split.shape):
        sizes = node.integers(1, "split", lambda size: parts(length, size))
        if not sizes and length:
            raise ModelError(f"split is empty, and {length} places are to be split")
        return sizes
    part = 1 if split is None else int(node.number(1, "split"))
    if dims_in(length):
        raise node.refuse(f"length {length} decides how many tensors there are; give it a number through shapes=")
    if part < 1:
        raise ModelError(f"split is {part}; at least 1 is wanted")
    count = -(-length // part)
    node.builder.allowance.take_nodes(count)
    return tuple(min(part, length - i * part) for i in range(count))


def _map(node: Node) -> tuple[Held, ...]:
    """Converts SequenceMap: the body is read once for each place of the sequences; tensors are the same for all."""
    proto, count = graph_of(node, "body", len(node.held)), len(_items(node))
    inputs = [
        items_of(v, "") if isinstance(v, (TensorList, Rows)) else (node.value(i),) * count
        for i, v in enumerate(node.held)
    ]
    if any(len(items) != count for items in inputs):
        raise ModelError(f"the sequences have {', '.join(str(len(items)) for items in inputs)} tensors")
    rows = [node.branch(proto, values, part=f"{i}/") for i, values in enumerate(zip(*inputs, strict=True))]
    if not rows:
        return tuple(TensorList(()) for _ in node.outputs)
    columns = zip(*rows, strict=True)
    tensors = ([tensor_in(v, "an output of the body") for v in column] for column in columns)
    return tuple(_sequence(node, _checked(column))[0] for column in tensors)


def _optional(node: Node) -> tuple[Held, ...]:
    return tuple(v for v in node.held if v is not None) or (NOTHING,)


def _has_element(node: Node) -> tuple[Held, ...]:
    return (np.asarray(any(v is not None and not isinstance(v, Nothing) for v in node.held)),)


def _get_element(node: Node) -> tuple[Held, ...]:
    (held,) = node.held
    if held is None or isinstance(held, Nothing):
        raise ModelError("the optional has no element")
    return (held,)


CONVERTERS: Mapping[str, tuple[tuple[int, Converter | None], ...]] = MappingProxyType(
    {
        "SequenceConstruct": ((11, _construct),),
        "SequenceEmpty": ((11, _empty),),
        "SequenceInsert": ((11, _insert),),
        "SequenceErase": ((11, _erase),),
        "SequenceAt": ((11, _at),),
        "SequenceLength": ((11, _length),),
        "SequenceMap": ((17, _map),),
        "SplitToSequence": ((11, _split),),
        "ConcatFromSequence": ((11, _concat),),
        "Optional": ((15, _optional),),
        "OptionalHasElement": ((15, _has_element),),
        "OptionalGetElement": ((15, _get_element),),
    }
)
