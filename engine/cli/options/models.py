"""From the options of a command to a graph, and what it is run on."""

from argparse import Namespace
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from attrs import frozen

from engine.graph.graph import Graph
from engine.graph.opaque import check_runs
from engine.models.lengths import bound, known_lengths
from engine.models.named import NamedModel, with_lengths
from engine.models.zoo import is_zoo
from engine.onnx.file import read_model
from engine.onnx.library import onnx
from engine.onnx.load import load_onnx
from engine.onnx.seeded import seed_weights
from engine.stages.bind import input_shapes
from engine.stages.template import template
from engine.system.arrays import random_arrays, read_array
from engine.text.errors import ModelError, OptionError
from ops.tensor.spec import Array, TensorSpec


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
    return named_model(arguments).load()


def load_open(arguments: Namespace) -> Graph:
    """Returns the graph of MODEL with its dimensions as the model and --shape leave them. Raises ModelError."""
    return named_model(arguments).read()


def named_model(arguments: Namespace) -> NamedModel:
    """Returns MODEL with what the options say about it. Arrays of --input, where a command takes them, fix shapes."""
    said = vars(arguments)
    shapes = {name: read_array(path, mapped=True).shape for name, path in said.get("input", [])} | dict(arguments.shape)
    return NamedModel(
        model=arguments.file,
        shapes=tuple(shapes.items()),
        lengths=tuple(dict(arguments.dim).items()),
        constants=tuple(dict(arguments.constant).items()),
        infer=tuple(dict(arguments.infer).items()),
        names=tuple(name for name, _ in said.get("length_ranges", ())),
        seed=arguments.seed,
    )


def load_subject(arguments: Namespace) -> Subject:
    """Returns the graph of MODEL with its weights, and an array for each input. Arrays of --input fix shapes, too."""
    arrays = _arrays(arguments.input)
    return with_lengths(partial(_subject, arguments=arguments, arrays=arrays), named_model(arguments))


def _subject(named: NamedModel, *, arguments: Namespace, arrays: Mapping[str, Array]) -> Subject:
    constants, file = named.arrays, named.model
    graph, model = named.read(), file
    check_runs(graph)
    lengths = known_lengths(graph, file, dict(named.lengths))
    if not is_zoo(file) and arguments.weights == "random":
        if template(graph).is_staged:
            raise OptionError(f"--weights random needs sizes that follow from shapes; data decide some of {file}")
        model = weighted(file, arguments.weights, arguments.seed, input_shapes(graph, lengths), constants)
        graph = named.read(model)
    feeds = random_feeds(graph, arguments.seed, arrays, lengths)
    return Subject(bound(graph, file, lengths, arrays), model, feeds, constants)


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
