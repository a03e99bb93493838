"""A model at one batch size after the other."""

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import evolve

from engine.graph.graph import Graph
from engine.models.lengths import known_lengths
from engine.models.named import NamedModel
from engine.models.open_names import open_names
from engine.models.zoo import can_train, is_zoo, zoo_graph
from engine.onnx.file import read_model
from engine.onnx.inputs import Declared, declared
from engine.text.errors import ModelError
from engine.zoo.network import Default

Shapes = Mapping[str, Sequence[int | str]]


def at_batch(named: NamedModel, batch: int, *, is_forward: bool = False) -> Graph:
    """Returns a network of the zoo, or the one in an ONNX file, for `batch` images at once.

    The batch is the first dimension of the inputs, whatever its name is, and whatever `named` says of that one. Raises
    ModelError where a file fixes another number, or leaves a dimension open that nothing tells. `is_forward`: or is
    asked to be trained.
    """
    if is_zoo(named.model):
        fixed: dict[str, Default] = (
            {"training": False, "optimiser": "none"} if is_forward and can_train(named.model) else {}
        )
        return _of_zoo(named, batch, fixed)
    inputs = _fed(read_model(named.model).proto.graph)
    if not any(_takes(one, batch) for one in inputs):
        shown = "; ".join(map(str, inputs)) or "no input"
        raise ModelError(f"{named.model} leaves no batch open, and {batch} is not the one that it has: {shown}")
    lengths = dict(named.lengths)
    input_shapes = {one.name: shape for one in inputs if (shape := _all_but_batch(one, lengths))}
    shapes = _resized(input_shapes | dict(named.shapes), batch)
    graph = evolve(named, shapes=tuple(shapes.items()), lengths=()).read()
    declared_names = {dim for one in inputs for dim in one.dims or ()}
    if unknown := {name: length for name, length in lengths.items() if name not in declared_names}:
        known_lengths(graph, named.model, unknown)
    if graph.symbols:
        raise ModelError(
            f"{named.model} leaves more than the batch open: {open_names(graph, graph.symbols)}; give their lengths"
        )
    return graph


def training_at_batch(named: NamedModel, batch: int) -> Graph:
    """Returns a step of gradient descent of a network of the zoo, for `batch` images at once. Raises ModelError."""
    return _of_zoo(named, batch, {"optimiser": "sgd"})


def _of_zoo(named: NamedModel, batch: int, fixed: Mapping[str, Default]) -> Graph:
    shapes = _resized(dict(named.shapes), batch)
    graph = zoo_graph(named.model, shapes, named.arrays, named.seed, fixed={"batch": batch, **fixed})
    known_lengths(graph, named.model, dict(named.lengths))
    return graph


def _fed(graph: Any) -> list[Declared]:
    """Returns the inputs that have no initializer."""
    initialized = {tensor.name for tensor in graph.initializer}
    return [declared(one) for one in graph.input if one.name not in initialized]


def _takes(one: Declared, batch: int) -> bool:
    """Returns whether the first dimension of an input is open, or this number."""
    return one.dims is None or any(isinstance(dim, str) or dim == batch for dim in one.dims[:1])


def _all_but_batch(one: Declared, lengths: Mapping[str, int]) -> tuple[int, ...]:
    """Returns a shape whose first dimension alone is open; () where others are open too, or the first is not."""
    first, *rest = one.dims or (0,)
    numbers = tuple(dim for dim in (lengths.get(str(dim), dim) for dim in rest) if isinstance(dim, int))
    return (0, *numbers) if isinstance(first, str) and len(numbers) == len(rest) else ()


def _resized(shapes: Shapes, batch: int) -> dict[str, tuple[int | str, ...]]:
    return {name: (batch, *shape[1:]) if shape else () for name, shape in shapes.items()}
