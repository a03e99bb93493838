"""`zoo:NAME` in place of a file: a network of the zoo, at the shape that is asked for."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from engine.errors import ModelError
from engine.graph import Graph
from engine.zoo import NETWORKS

PREFIX = "zoo:"
INPUT = "x"
SHAPE = (1, 3, 224, 224)
"""Of the input where none is asked for."""
OPEN_SHAPE = ("batch", *SHAPE[1:])
"""The same, where lengths of dimensions are told by name."""


def is_zoo(model: Path) -> bool:
    """Whether a network of the zoo is meant. (A file of such a name is reached as ./zoo:NAME.)"""
    return str(model).startswith(PREFIX)


def zoo_graph(model: Path, shapes: Mapping[str, Sequence[int | str]], constants: Collection[str], seed: int) -> Graph:
    """The network with seeded weights; its batch may be a name. Raises ModelError for what there is not."""
    name = str(model).removeprefix(PREFIX)
    if name not in NETWORKS:
        raise ModelError(f"there is no network {str(model)!r}; there are {', '.join(PREFIX + n for n in NETWORKS)}")
    unknown = sorted(set(shapes) - {INPUT})
    if unknown:
        raise ModelError(f"{model} has no input {unknown[0]!r}; its only one is {INPUT!r}")
    if constants:
        raise ModelError(f"{model} has no input that decides a shape; leave out --constant")
    shape = tuple(shapes.get(INPUT, SHAPE))
    image = shape[2] if len(shape) == 4 and shape[1] == SHAPE[1] and shape[2] == shape[3] else ""
    if not isinstance(image, int):
        raise ModelError(f"{model} takes square images, such as --shape {INPUT}=8,3,224,224, and not {list(shape)}")
    return NETWORKS[name](shape[0], image, seed)
