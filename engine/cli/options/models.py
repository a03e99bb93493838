"""From the options of a command to a graph, and what it is run on."""

from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from attrs import frozen

from allocator.progress import Activity
from engine.cli.options.dims import bound, known_lengths
from engine.cli.options.files import read_array
from engine.graph.graph import Graph
from engine.graph.opaque import check_runs
from engine.models.zoo import is_zoo, zoo_graph
from engine.onnx.file import read_model
from engine.onnx.library import onnx
from engine.onnx.load import load_inputs, load_onnx
from engine.onnx.seeded import seed_weights
from engine.stages.bind import input_shapes
from engine.stages.template import template
from engine.system.arrays import random_arrays
from engine.text.errors import ModelError, OptionError
from ops.tensor.errors import OpError
from ops.tensor.spec import Array, TensorSpec

Shapes = Mapping[str, Sequence[int | str]]
Loaded = TypeVar("Loaded")


@frozen(eq=False)
class Subject:
    """A graph to run, with its inputs. `model` is the path or the onnx.ModelProto of it, for other engines.

    Of a network of the zoo, which no other engine can read, it is the name. The graph has dimensions that are no
    numbers only where data decide them while it runs.
    """

    graph: Graph
    model: Any
    feeds: dict[str, Array]
    constants: dict[str, Array]


def load_graph(arguments: Namespace) -> Graph:
    """Returns the graph of MODEL with numbers for its dimensions; open only where data decide sizes in a run.

    Raises ModelError for a dimension without a length.
    """
    return _with_lengths(_graph, arguments)


def _graph(arguments: Namespace) -> Graph:
    graph = load_open(arguments)
    lengths = known_lengths(graph, arguments.file, dict(arguments.dim))
    return bound(graph, arguments.file, lengths, {})


def load_open(arguments: Namespace) -> Graph:
    """Returns the graph of MODEL with its dimensions as the model and --shape leave them. Raises ModelError."""
    return _read(arguments, arguments.file, _shapes(arguments), _arrays(arguments.constant))


def load_subject(arguments: Namespace) -> Subject:
    """Returns the graph of MODEL with its weights, and an array for each input. Arrays of --input fix shapes, too."""
    return _with_lengths(_subject, arguments)


def _subject(arguments: Namespace) -> Subject:
    arrays, constants = _arrays(arguments.input), _arrays(arguments.constant)
    shapes, file = _shapes(arguments), arguments.file
    graph, model = _read(arguments, file, shapes, constants), file
    check_runs(graph)
    lengths = known_lengths(graph, file, dict(arguments.dim))
    if not is_zoo(file) and arguments.weights == "random":
        if template(graph).is_staged:
            raise OptionError(f"--weights random needs sizes that follow from shapes; data decide some of {file}")
        model = weighted(file, arguments.weights, arguments.seed, input_shapes(graph, lengths), constants)
        graph = _read(arguments, model, shapes, constants)
    feeds = random_feeds(graph, arguments.seed, arrays, lengths)
    return Subject(bound(graph, file, lengths, arrays), model, feeds, constants)


def _with_lengths(load: Callable[[Namespace], Loaded], arguments: Namespace) -> Loaded:
    """Loads MODEL with the lengths of --dim: bound to its open dimensions, or else as shapes in numbers.

    A graph with open dimensions may refuse lengths that the model takes, as some decisions were made for other lengths.
    """
    try:
        return load(arguments)
    except (ModelError, OpError):
        shapes = _shapes_in_numbers(arguments)
        if not shapes:
            raise
        return load(Namespace(**vars(arguments) | {"shape": list(shapes.items()), "dim": []}))


def _shapes_in_numbers(arguments: Namespace) -> Shapes:
    """Returns the shapes of all inputs where --dim has a length for each of their names, else {}."""
    lengths = dict(arguments.dim)
    if not lengths or is_zoo(arguments.file):
        return {}
    try:
        graph = load_inputs(arguments.file, shapes=_shapes(arguments), constants=_arrays(arguments.constant))
    except ModelError:
        return {}
    return input_shapes(graph, lengths) if graph.symbols.keys() == lengths.keys() else {}


def _shapes(arguments: Namespace) -> Shapes:
    """Returns the shapes of --shape, and those of arrays for inputs where a command takes them."""
    shapes = {name: array.shape for name, array in _arrays(vars(arguments).get("input", [])).items()}
    return shapes | dict(arguments.shape)


def _read(arguments: Namespace, model: Any, shapes: Shapes, constants: Mapping[str, Array]) -> Graph:
    with Activity("reading", arguments.file.name):
        if is_zoo(arguments.file):
            if arguments.infer:
                raise ModelError(f"all operators of {arguments.file} are there; leave out --infer")
            names = [name for name, _ in (*arguments.dim, *vars(arguments).get("length_ranges", ()))]
            return zoo_graph(arguments.file, shapes, constants, arguments.seed, names=names)
        return load_onnx(model, shapes=shapes, constants=constants, infer=dict(arguments.infer))


def light_model(name: str) -> Path:
    """Returns the path of a model of the onnx package, such as "resnet50": layers, no weights. Raises ModelError."""
    path = Path(onnx().__file__).parent / "backend" / "test" / "data" / "light" / f"light_{name}.onnx"
    if not path.is_file():
        raise ModelError(f"the installed onnx package has no {path.name}")
    return path


def seeded_subject(path: Path, seed: int = 0) -> Subject:
    """Returns a model of fixed shapes with seeded random weights and inputs."""
    model = weighted(path, "random", seed, {}, {})
    graph = load_onnx(model)
    return Subject(graph, model, random_feeds(graph, seed, {}), {})


def weighted(
    path: Path, weights: str, seed: int, shapes: Mapping[str, Sequence[int]], constants: Mapping[str, Array]
) -> Any:
    """Returns the path itself, or the model in it with seeded random weights."""
    if weights == "file":
        return path
    return seed_weights(read_model(path).proto, seed, shapes=shapes, constants=constants)


def _arrays(paths: list[tuple[str, Path]]) -> dict[str, Array]:
    return {name: read_array(path) for name, path in paths}


def random_feeds(
    graph: Graph, seed: int, arrays: Mapping[str, Array], lengths: Mapping[str, int] | None = None
) -> dict[str, Array]:
    """Returns an array for each input: the one in `arrays`, or normal floats, or integers and bools from {0, 1}.

    What an input gets does not depend on which others are given. `lengths` are those of dimensions that are names.
    """
    shapes = input_shapes(graph, lengths or {})
    specs = {name: TensorSpec(shapes[name], var.dtype) for name, var in graph.inputs.items()}
    return random_arrays(specs, seed) | dict(arrays)
