"""Loops that collect a tensor in each turn in a sequence, as loops that give the rows of one tensor instead.

So the run may decide how often such a loop runs. The sequence must be empty at first, and each turn must insert one
tensor at its end and do nothing else with it.
"""

from collections.abc import Sequence
from typing import Any

from attrs import evolve

from engine.onnx.bodies import graph_of
from engine.onnx.declarations import reads
from engine.onnx.library import onnx
from engine.onnx.node import Node
from engine.onnx.structures import Held, Rows, TensorList, is_tensor, items_of, tensor_in
from engine.text.errors import UnsupportedError

_AHEAD = 2
"""Inputs of a Loop and of its body in front of the carried values."""


def giving_rows(node: Node) -> Node | None:
    """Returns the Loop whose last outputs are the tensors that it collects, as rows; None where it does more."""
    proto = graph_of(node, "body", len(node.held))
    places = _lists(node)
    if not all(i in places or is_tensor(held) for i, held in enumerate(node.held) if i >= _AHEAD):
        return None
    inserts = [_insert(proto, i) for i in places]
    if None in inserts or any(items_of(node.held[i], "") for i in places):
        return None
    body = onnx().GraphProto()
    body.CopyFrom(proto)
    for i in reversed(places):
        del body.input[i], body.output[i - 1]
    for n in sorted((n for n in inserts if n is not None), reverse=True):
        del body.node[n]
    body.output.extend(onnx().ValueInfoProto(name=proto.node[n].input[1]) for n in inserts if n is not None)
    kept = [i for i in range(len(node.held)) if i not in places]
    outputs = [n for i, n in enumerate(node.outputs) if i + _AHEAD not in places]
    return evolve(
        node,
        held=tuple(node.held[i] for i in kept),
        input_names=tuple(node.input_names[i] for i in kept),
        outputs=(*outputs, *("" for _ in places)),
        attrs={**node.attrs, "body": body},
    )


def with_sequences(node: Node, outputs: Sequence[Held], reason: UnsupportedError) -> tuple[Held, ...]:
    """Returns the outputs of a Loop in their order, from those of the one that gives rows; see `Rows`."""
    places = _lists(node)
    rest, rows = iter(outputs[: -len(places)]), iter(outputs[-len(places) :])
    carried = (
        Rows(tensor_in(next(rows), "rows"), reason) if i in places else next(rest)
        for i in range(_AHEAD, len(node.held))
    )
    return *carried, *rest


def _lists(node: Node) -> list[int]:
    return [i for i, held in enumerate(node.held) if isinstance(held, TensorList)]


def _insert(proto: Any, place: int) -> int | None:
    """Returns the number of the node that inserts at the end of a sequence, and that alone reads it; else None."""
    name, after = proto.input[place].name, proto.output[place - 1].name
    readers = [i for i, n in enumerate(proto.node) if name in reads(n)]
    if len(readers) != 1 or any(after in reads(n) for n in proto.node):
        return None
    (i,) = readers
    n = proto.node[i]
    is_plain = n.op_type == "SequenceInsert" and len(n.input) == 2 and list(n.output) == [after] and n.input[0] == name
    return i if is_plain and n.input[1] != name else None
