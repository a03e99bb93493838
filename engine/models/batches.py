"""A model at one batch size after the other."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from engine.graph.graph import Graph
from engine.models.open_names import open_names
from engine.models.zoo import can_train, is_zoo, zoo_graph
from engine.onnx.file import read_model
from engine.onnx.inputs import Declared, declared
from engine.onnx.load import load_onnx
from engine.text.errors import ModelError
from engine.zoo.network import Default

Shapes = Mapping[str, Sequence[int]]


def at_batch(model: Path, batch: int, shapes: Shapes, seed: int = 0, *, is_forward: bool = False) -> Graph:
    """Returns a network of the zoo, or the one in an ONNX file, for `batch` images at once.

    The batch is the first dimension of the inputs, whatever `shapes` says of that one. Raises ModelError where a file
    fixes another number, or leaves a dimension open that no shape tells. `is_forward`: or is asked to be trained.
    """
    if is_zoo(model):
        fixed: dict[str, Default] = {"training": False, "optimiser": "none"} if is_forward and can_train(model) else {}
        return zoo_graph(model, _resized(shapes, batch), (), seed, fixed={"batch": batch, **fixed})
    inputs = _fed(read_model(model).proto.graph)
    if not any(_takes(one, batch) for one in inputs):
        shown = "; ".join(map(str, inputs)) or "no input"
        raise ModelError(f"{model} leaves no batch open, and {batch} is not the one that it has: {shown}")
    input_shapes = {one.name: shape for one in inputs if (shape := _all_but_batch(one))}
    graph = load_onnx(model, shapes=_resized(input_shapes | dict(shapes), batch))
    if graph.symbols:
        raise ModelError(f"{model} leaves more than the batch open: {open_names(graph, graph.symbols)}; give shapes")
    return graph


def training_at_batch(model: Path, batch: int, shapes: Shapes, seed: int = 0) -> Graph:
    """Returns a step of gradient descent of a network of the zoo, for `batch` images at once. Raises ModelError."""
    return zoo_graph(model, _resized(shapes, batch), (), seed, fixed={"batch": batch, "optimiser": "sgd"})


def _fed(graph: Any) -> list[Declared]:
    """Returns the inputs that have no initializer."""
    initialized = {tensor.name for tensor in graph.initializer}
    return [declared(one) for one in graph.input if one.name not in initialized]


def _takes(one: Declared, batch: int) -> bool:
    """Returns whether the first dimension of an input is open, or this number."""
    return one.dims is None or any(isinstance(dim, str) or dim == batch for dim in one.dims[:1])


def _all_but_batch(one: Declared) -> tuple[int, ...]:
    """Returns a shape whose first dimension alone is open; () where others are open too, or the first is not."""
    first, *rest = one.dims or (0,)
    numbers = tuple(dim for dim in rest if isinstance(dim, int))
    return (0, *numbers) if isinstance(first, str) and len(numbers) == len(rest) else ()


def _resized(shapes: Shapes, batch: int) -> dict[str, tuple[int, ...]]:
    return {name: (batch, *shape[1:]) if shape else () for name, shape in shapes.items()}
