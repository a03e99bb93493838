"""A network of the zoo as commands see it: a builder, and the options that it takes."""

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
    """Stands in the annotation of an argument: the least number that it can be."""

    number: int


Count = Annotated[int, Least(0)]
Seed = Count
Size = Annotated[int, Least(1)]
Batch = Annotated[int | str, Least(0)]
"""A number or a name, as is a length."""
Length = Annotated[int | str, Least(1)]


@frozen
class Option:
    """An argument of a builder: its types, any of which will do, what it is where none is given, its least number."""

    types: tuple[type, ...]
    default: Default
    least: int = 0

    def accepts(self, value: Default) -> bool:
        """Whether it can be that."""
        if isinstance(value, bool):
            return bool in self.types
        if isinstance(value, str):
            return str in self.types
        kinds = (Real,) if float in self.types else (Integral,) if int in self.types else ()
        return isinstance(value, kinds) and value >= self.least

    @property
    def wanted(self) -> str:
        """What it can be, in words."""
        if bool in self.types:
            return "true or false"
        return f"an integer from {self.least} on" + (", or a name" if str in self.types else "")


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


def checked(build: Callable[P, Graph]) -> Callable[P, Graph]:
    """The builder, which raises OptionError for arguments that its annotations do not allow."""
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
    """What an annotation names, without what else it says."""
    plain = get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation
    return get_args(plain) if isinstance(plain, UnionType) else (plain,)


def _least(annotation: Any) -> int:
    said = get_args(annotation)[1:] if get_origin(annotation) is Annotated else ()
    return max((part.number for part in said if isinstance(part, Least)), default=0)
