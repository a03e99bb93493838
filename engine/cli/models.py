"""From the options of a command to a graph and what it is run on."""

from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import frozen

from engine.cli.feeds import random_feeds
from engine.cli.files import read_array
from engine.cli.zoo import is_zoo, zoo_graph
from engine.errors import ModelError
from engine.graph import Graph
from engine.importers.onnx import load_onnx
from engine.importers.onnx_door import onnx
from engine.importers.onnx_file import read_model
from engine.importers.onnx_weights import seed_weights
from ops.spec import Array


@frozen(eq=False)
class Subject:
    """What is run: `model` is the path or the onnx.ModelProto that the graph was imported from, for other engines.

    Of a network of the zoo, which no other engine can read, it is the name.
    """

    graph: Graph
    model: Any
    feeds: dict[str, Array]
    constants: dict[str, Array]


def load_graph(arguments: Namespace) -> Graph:
    """The graph of MODEL, to be planned."""
    shapes, constants = dict(arguments.shape), _arrays(arguments.constant)
    if is_zoo(arguments.file):
        return zoo_graph(arguments.file, shapes, constants, arguments.seed)
    return load_onnx(arguments.file, shapes=shapes, constants=constants)


def load_subject(arguments: Namespace) -> Subject:
    """The graph of MODEL with its weights, and an array for each input. Given arrays also tell shapes."""
    given, constants = _arrays(arguments.input), _arrays(arguments.constant)
    shapes = {name: array.shape for name, array in given.items()} | dict(arguments.shape)
    if is_zoo(arguments.file):
        model, graph = arguments.file, zoo_graph(arguments.file, shapes, constants, arguments.seed)
    else:
        model = weighted(arguments.file, arguments.weights, arguments.seed, shapes, constants)
        graph = load_onnx(model, shapes=shapes, constants=constants)
    return Subject(graph, model, random_feeds(graph, arguments.seed, given), constants)


def light_model(name: str) -> Path:
    """A model that comes with the onnx package, such as "resnet50": all layers, no weights. Raises ModelError."""
    path = Path(onnx().__file__).parent / "backend" / "test" / "data" / "light" / f"light_{name}.onnx"
    if not path.is_file():
        raise ModelError(f"the installed onnx package has no {path.name}")
    return path


def seeded_subject(path: Path, seed: int = 0) -> Subject:
    """A model of fixed shapes with seeded random weights and inputs."""
    model = weighted(path, "random", seed, {}, {})
    graph = load_onnx(model)
    return Subject(graph, model, random_feeds(graph, seed, {}), {})


def weighted(
    path: Path, weights: str, seed: int, shapes: Mapping[str, Sequence[int]], constants: Mapping[str, Array]
) -> Any:
    """The path itself, or the model in it with seeded random weights."""
    if weights == "file":
        return path
    return seed_weights(read_model(path).proto, seed, shapes=shapes, constants=constants)


def _arrays(paths: list[tuple[str, Path]]) -> dict[str, Array]:
    return {name: read_array(path) for name, path in paths}
