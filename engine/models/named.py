"""A model by its name, with what is said about its dimensions and inputs: what a command line or a task says."""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from attrs import evolve, frozen

from allocator.progress import Activity
from engine.graph.graph import Graph
from engine.models.lengths import bound, known_lengths
from engine.models.zoo import is_zoo, options_of, zoo_graph
from engine.onnx.load import load_inputs, load_onnx
from engine.stages.bind import input_shapes
from engine.system.arrays import read_array
from engine.text.errors import ModelError, OptionError
from ops.tensor.errors import OpError
from ops.tensor.spec import Array

Loaded = TypeVar("Loaded")
_DIGITS = 9
"""The most digits of a length."""


@frozen
class NamedModel:
    """An ONNX file or a network of the zoo, which nobody has read yet.

    `shapes` of inputs, `lengths` of dimensions that are names, `constants` in .npy files, and what operators that
    nobody implements give (`infer`), each by name. `names` are further options of a network of the zoo to leave open.
    """

    model: Path
    shapes: tuple[tuple[str, tuple[int | str, ...]], ...] = ()
    lengths: tuple[tuple[str, int], ...] = ()
    constants: tuple[tuple[str, Path], ...] = ()
    infer: tuple[tuple[str, str], ...] = ()
    names: tuple[str, ...] = ()
    seed: int = 0

    @property
    def arrays(self) -> dict[str, Array]:
        """Reads the constants."""
        return {name: read_array(path) for name, path in self.constants}

    def load(self) -> Graph:
        """Returns the graph with numbers for its dimensions; open only where data decide sizes in a run.

        Raises ModelError for a dimension without a length.
        """
        return with_lengths(_bound, self)

    def read(self, source: Any = None) -> Graph:
        """Returns the graph with its dimensions as the model and `shapes` leave them. Raises ModelError.

        `source` is what is read in place of the file, such as the same model with other weights.
        """
        with Activity("reading", self.model.name):
            if is_zoo(self.model):
                if self.infer:
                    raise ModelError(f"all operators of {self.model} are there; leave out --infer")
                names = [*(name for name, _ in self.lengths), *self.names]
                return zoo_graph(self.model, dict(self.shapes), self.arrays, self.seed, names=names)
            return load_onnx(
                source or self.model, shapes=dict(self.shapes), constants=self.arrays, infer=dict(self.infer)
            )


def with_value(named: NamedModel, name: str, value: str) -> NamedModel:
    """Returns a model in which an option of its network, or else a dimension, has a value in place of another one.

    Raises OptionError for a value that is no length, ModelError for a network that is not in the zoo.
    """
    kept = tuple(pair for pair in named.lengths if pair[0] != name)
    if is_zoo(named.model) and name in options_of(named.model):
        return evolve(named, model=_asking(named.model, name, value), lengths=kept)
    return evolve(named, lengths=(*kept, (name, as_length(name, value))))


def is_length(text: str) -> bool:
    """Returns whether a text is a length of a dimension."""
    return text.isascii() and text.isdecimal() and len(text) <= _DIGITS


def as_length(name: str, value: str) -> int:
    """Returns the length of a dimension that a text is. Raises OptionError."""
    if not is_length(value):
        raise OptionError(f"{name}={value[:40]} is no length of a dimension; give an integer from 0 on")
    return int(value)


def with_lengths(load: Callable[[NamedModel], Loaded], named: NamedModel) -> Loaded:
    """Loads a model with its lengths: bound to its open dimensions, or else as shapes in numbers.

    A graph with open dimensions may refuse lengths that the model takes, as some decisions were made for other lengths.
    """
    try:
        return load(named)
    except (ModelError, OpError):
        shapes = _shapes_in_numbers(named)
        if not shapes:
            raise
        return load(evolve(named, shapes=tuple((name, tuple(shape)) for name, shape in shapes.items()), lengths=()))


def _bound(named: NamedModel) -> Graph:
    graph = named.read()
    return bound(graph, named.model, known_lengths(graph, named.model, dict(named.lengths)), {})


def _asking(model: Path, name: str, value: str) -> Path:
    """Returns the name of a network of the zoo, with an option behind it in place of the same one before."""
    network, _, query = str(model).partition("?")
    kept = [part for part in re.split("[&,]", query) if part and part.partition("=")[0] != name]
    return Path(f"{network}?{'&'.join((*kept, f'{name}={value}'))}")


def _shapes_in_numbers(named: NamedModel) -> Mapping[str, Sequence[int]]:
    """Returns the shapes of all inputs where there is a length for each of their names, else {}."""
    lengths = dict(named.lengths)
    if not lengths or is_zoo(named.model):
        return {}
    try:
        graph = load_inputs(named.model, shapes=dict(named.shapes), constants=named.arrays)
    except ModelError:
        return {}
    return input_shapes(graph, lengths) if graph.symbols.keys() == lengths.keys() else {}
