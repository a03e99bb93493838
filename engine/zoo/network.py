"""A network of the zoo for commands: its builder and the options of that builder."""

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from numbers import Integral, Real
from types import MappingProxyType, UnionType
from typing import Annotated, Any, ParamSpec, get_args, get_origin

from attrs import field, frozen

from engine.graph.graph import Graph
from engine.text.errors import OptionError

Default = int | float | bool | str
P = ParamSpec("P")


@frozen
class Least:
    """The least number of an argument; stands in its annotation."""

    number: int


Count = Annotated[int, Least(0)]
Seed = Count
Size = Annotated[int, Least(1)]
Batch = Annotated[int | str, Least(0)]
"""A number or a name of a dimension."""
Length = Annotated[int | str, Least(1)]


@frozen
class Option:
    """An argument of a builder: the types that it accepts, its default, and its least number."""

    types: tuple[type, ...]
    default: Default
    least: int = 0

    def accepts(self, value: Default) -> bool:
        """Returns whether the argument may have that value."""
        if isinstance(value, bool):
            return bool in self.types
        if isinstance(value, str):
            return str in self.types
        kinds = (Real,) if float in self.types else (Integral,) if int in self.types else ()
        return isinstance(value, kinds) and value >= self.least

    @property
    def wanted(self) -> str:
        """The permitted values, in words."""
        if bool in self.types:
            return "true or false"
        return f"an integer of at least {self.least}" + (", or a name" if str in self.types else "")


@frozen(eq=False)
class Network:
    """A network of the zoo; called as its builder, with arguments by position or by name."""

    name: str
    build: Callable[..., Graph]
    options: Mapping[str, Option] = field(init=False)

    @options.default
    def _options_of_build(self) -> Mapping[str, Option]:
        return MappingProxyType(_options(self.build))

    def __call__(self, *arguments: Default, **named: Default) -> Graph:
        """Returns the graph."""
        return self.build(*arguments, **named)


def network(build: Callable[..., Graph]) -> Network:
    """Returns the network of a builder, under its name."""
    return Network(build.__name__, build)


def checked(build: Callable[P, Graph]) -> Callable[P, Graph]:
    """Wraps a builder so that it raises OptionError for arguments that its annotations do not permit."""
    signature, options = inspect.signature(build), _options(build)

    @wraps(build)
    def check(*arguments: P.args, **named: P.kwargs) -> Graph:
        for name, value in signature.bind(*arguments, **named).arguments.items():
            if not options[name].accepts(value):
                raise OptionError(f"{build.__name__}: {name} is {options[name].wanted}, not {value!r}")
        return build(*arguments, **named)

    return check


def _options(build: Callable[..., Graph]) -> dict[str, Option]:
    return {
        p.name: Option(_types(p.annotation), p.default, _least(p.annotation))
        for p in inspect.signature(build).parameters.values()
    }


def _types(annotation: Any) -> tuple[type, ...]:
    """Returns the types of an annotation, without its other parts."""
    plain = get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation
    return get_args(plain) if isinstance(plain, UnionType) else (plain,)


def _least(annotation: Any) -> int:
    parts = get_args(annotation)[1:] if get_origin(annotation) is Annotated else ()
    return max((part.number for part in parts if isinstance(part, Least)), default=0)
