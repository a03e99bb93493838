"""A backend in the sense of onnx.backend: what onnx's own test cases are run with.

A model is imported when its inputs are there, for their shapes. Where inputs decide shapes, it runs in stages; where
that is not supported, such inputs are fixed to what is fed. A sequence is a list of arrays, an empty optional None.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import frozen

from engine.api import compile_graph
from engine.graph.graph import Graph
from engine.onnx.library import ModelProto, backend_base
from engine.onnx.load import load_onnx
from engine.onnx.structures import element_names
from engine.onnx.tensors import array_of
from engine.text.errors import ConstantNeededError, FeedError, ModelError
from ops.tensor.spec import Array


@frozen(eq=False)
class Representation:
    """A model that waits for its inputs."""

    model: ModelProto

    def run(self, inputs: Sequence[Any], **_: Any) -> tuple[Array, ...]:
        """Returns the outputs in the model's order; `inputs` have that order, too, without those with initializers."""
        graph, feeds = self.graph_for(inputs)
        return outputs_of(self.model, compile_graph(graph).run(feeds))

    def graph_for(self, inputs: Sequence[Any]) -> tuple[Graph, dict[str, Array]]:
        """Returns the graph for these very inputs, and what to feed it."""
        feeds = named_feeds(self.model, inputs)
        graph = import_for(self.model, feeds)
        return graph, {name: feeds[name] for name in graph.inputs}


class Backend(backend_base().Backend):  # type: ignore[misc] # onnx is known only once it is loaded
    """Runs models with arenaplan on the CPU."""

    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **_: Any) -> Representation:
        """Keeps the model; errors in it are raised when it runs."""
        if not cls.supports_device(device):
            raise FeedError(f"there is no device {device!r}; only CPU")
        return Representation(model)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Returns whether the device is the CPU."""
        return device == "CPU"


def import_for(model: ModelProto, feeds: Mapping[str, Any]) -> Graph:
    """Returns the graph of a model for inputs of these shapes, or for these very inputs where it needs their data."""
    try:
        return load_onnx(model, shapes=_shapes(feeds), constants=_without_tensors(feeds))
    except ModelError:
        return import_fixed(model, feeds)


def import_fixed(model: ModelProto, feeds: Mapping[str, Any]) -> Graph:
    """Returns the graph of a model for these very inputs: those that decide shapes become constants."""
    fixed = _without_tensors(feeds)
    while True:
        shapes = _shapes({name: array for name, array in feeds.items() if name not in fixed})
        try:
            return load_onnx(model, shapes=shapes, constants=fixed, stages=False)
        except ConstantNeededError as error:
            fresh = [name for name in error.inputs if name not in fixed]
            if not fresh:
                raise
            fixed.update({name: feeds[name] for name in fresh})


def _shapes(feeds: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """Returns the shapes of those inputs that are arrays."""
    return {name: array.shape for name, array in feeds.items() if hasattr(array, "shape")}


def _without_tensors(feeds: Mapping[str, Any]) -> dict[str, Any]:
    """Returns those inputs that have no tensor: empty sequences and optionals."""
    return {name: value for name, value in feeds.items() if not hasattr(value, "shape")}


def named_feeds(model: ModelProto, inputs: Sequence[Any]) -> dict[str, Any]:
    """Returns what is fed, by the names of tensors; [] and None by the names of inputs that have no tensor."""
    initialized = {t.name for t in model.graph.initializer}
    names = [i.name for i in model.graph.input if i.name not in initialized]
    if len(inputs) != len(names):
        raise FeedError(f"{len(names)} inputs are wanted ({', '.join(names)}), not {len(inputs)}")
    feeds: dict[str, Any] = {}
    for name, value in zip(names, map(as_input, inputs), strict=True):
        tensors = value if isinstance(value, list) else []
        feeds |= dict(zip(element_names(name, len(tensors)), tensors, strict=True)) or {name: value}
    return feeds


def outputs_of(model: ModelProto, results: Mapping[str, Array]) -> tuple[Any, ...]:
    """Returns the outputs of a model from their tensors: a list for a sequence, None for an empty optional."""
    return tuple(_output(info, results) for info in model.graph.output)


def _output(info: Any, results: Mapping[str, Array]) -> Any:
    if info.name in results:
        return results[info.name]
    names = element_names(info.name, len(results))
    tensors = [results[name] for name in names if name in results]
    return tensors if tensors or info.type.WhichOneof("value") == "sequence_type" else None


def as_input(value: Any) -> Any:
    """Returns a tensor of a test case, which may be a message, as an array; so are those of a sequence."""
    if isinstance(value, (list, tuple)):
        return [as_input(v) for v in value]
    if hasattr(value, "data_type") and hasattr(value, "dims"):
        return array_of(value, "an input")
    return value
