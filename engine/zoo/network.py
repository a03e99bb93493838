"""A network of the zoo as commands see it: a builder, and the options that it takes."""

import inspect
from collections.abc import Callable, Mapping
from types import MappingProxyType, UnionType
from typing import get_args

from attrs import field, frozen

from engine.graph import Graph

Default = int | float | bool | str


@frozen
class Option:
    """An argument of a builder: its types, any of which will do, and what it is where none is given."""

    types: tuple[type, ...]
    default: Default


@frozen(eq=False)
class Network:
    """Called as its builder is, by name of the arguments or in their order."""

    name: str
    build: Callable[..., Graph]
    options: Mapping[str, Option] = field(init=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "options", MappingProxyType(_options(self.build)))

    def __call__(self, *arguments: Default, **named: Default) -> Graph:
        """The graph."""
        return self.build(*arguments, **named)


def network(build: Callable[..., Graph]) -> Network:
    """Named as its builder."""
    return Network(build.__name__, build)


def _options(build: Callable[..., Graph]) -> dict[str, Option]:
    return {p.name: Option(_types(p.annotation), p.default) for p in inspect.signature(build).parameters.values()}


def _types(annotation: type | UnionType) -> tuple[type, ...]:
    return get_args(annotation) or (annotation,)
