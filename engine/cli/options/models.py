"""From the options of a command to a graph and what it is run on."""

from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import frozen

from allocator.progress import Activity
from engine.cli.options.dims import bound, known_lengths
from engine.cli.options.files import read_array
from engine.cli.options.inputs import random_feeds
from engine.cli.options.passes import optimised
from engine.cli.options.zoo import is_zoo, zoo_graph
from engine.graph.graph import Graph
from engine.onnx.file import read_model
from engine.onnx.library import onnx
from engine.onnx.load import load_onnx
from engine.onnx.seeded import seed_weights
from engine.stages.bind import input_shapes
from engine.stages.template import template
from engine.text.errors import ModelError, OptionError
from ops.tensor.spec import Array

Shapes = Mapping[str, Sequence[int | str]]


@frozen(eq=False)
class Subject:
    """What is run: `model` is the path or the onnx.ModelProto that the graph was imported from, for other engines.

    Of a network of the zoo, which no other engine can read, it is the name. The graph has dimensions that are no
    numbers only where data decide them while it runs.
    """

    graph: Graph
    model: Any
    feeds: dict[str, Array]
    constants: dict[str, Array]


def load_graph(arguments: Namespace) -> Graph:
    """The graph of MODEL with numbers for its dimensions, to be planned; open only where data decide sizes in a run.

    Raises ModelError for a dimension without a length.
    """
    graph = load_open(arguments)
    lengths = known_lengths(graph, arguments.file, dict(arguments.dim))
    return optimised(bound(graph, arguments.file, lengths, {}), arguments)


def load_open(arguments: Namespace) -> Graph:
    """The graph of MODEL with its dimensions as the model and --shape leave them. Raises ModelError."""
    return _read(arguments, arguments.file, _shapes(arguments), _arrays(arguments.constant))


def load_subject(arguments: Namespace) -> Subject:
    """The graph of MODEL with its weights, and an array for each input. Given arrays also tell shapes."""
    given, constants = _arrays(arguments.input), _arrays(arguments.constant)
    shapes, file = _shapes(arguments), arguments.file
    graph, model = _read(arguments, file, shapes, constants), file
    lengths = known_lengths(graph, file, dict(arguments.dim))
    if not is_zoo(file) and arguments.weights == "random":
        if template(graph).is_staged:
            raise OptionError(f"--weights random needs sizes that follow from shapes; data decide some of {file}")
        model = weighted(file, arguments.weights, arguments.seed, input_shapes(graph, lengths), constants)
        graph = _read(arguments, model, shapes, constants)
    feeds = random_feeds(graph, arguments.seed, given, lengths)
    return Subject(optimised(bound(graph, file, lengths, given), arguments), model, feeds, constants)


def _shapes(arguments: Namespace) -> Shapes:
    """What --shape says, and arrays for inputs where a command takes them."""
    given = {name: array.shape for name, array in _arrays(vars(arguments).get("input", [])).items()}
    return given | dict(arguments.shape)


def _read(arguments: Namespace, model: Any, shapes: Shapes, constants: Mapping[str, Array]) -> Graph:
    with Activity("reading", arguments.file.name):
        if is_zoo(arguments.file):
            names = [name for name, _ in (*arguments.dim, *vars(arguments).get("length_ranges", ()))]
            return zoo_graph(arguments.file, shapes, constants, arguments.seed, names=names)
        return load_onnx(model, shapes=shapes, constants=constants)


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
