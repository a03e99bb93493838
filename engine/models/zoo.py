"""`zoo:NAME` in place of a file, or `zoo:NAME?batch=8&image=64`: a network of the zoo with options of its builder."""

import re
from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType

from attrs import frozen

from engine.graph.graph import Graph
from engine.text.errors import ModelError, OptionError
from engine.training.training import SGD, Adam, Optimiser, train_step
from engine.zoo import NETWORKS
from engine.zoo.network import Default, Network, Option

PREFIX = "zoo:"
_COMPARED = 100
"""Characters of a name that are compared with those of networks."""
INPUT = "x"
"""The name of the input of a network of images."""
CHANNELS = 3
OPTIMISERS: Mapping[str, Optimiser] = MappingProxyType({"sgd": SGD(), "momentum": SGD(momentum=0.9), "adam": Adam()})
"""The optimisers with which a network can be trained: the graph is then a whole step."""
_OPTIMISER, _TRAINING = "optimiser", "training"
_NO_OPTIMISER = "none"
_DIGITS = 9
_TRUTHS = {"true": True, "1": True, "false": False, "0": False}
_NO_NAMES = {"true", "false", "none"}
"""Meant as something else than a name for a dimension."""

Shapes = Mapping[str, Sequence[int | str]]


def is_zoo(model: Path) -> bool:
    """Returns whether a network of the zoo is meant. (A file of such a name is reached as ./zoo:NAME.)"""
    return str(model).startswith(PREFIX)


def zoo_graph(
    model: Path,
    shapes: Shapes,
    constants: Collection[str],
    seed: int,
    *,
    fixed: Mapping[str, Default] = MappingProxyType({}),
    names: Collection[str] = (),
) -> Graph:
    """Returns the network with seeded weights. Options after `?` come before all others but those that are `fixed`.

    Of `names`, those that are options and may be names are left open. Raises ModelError for what there is not.
    """
    asked = _asked(model, fixed)
    if constants:
        raise ModelError(f"{model} has no input that decides a shape; leave out --constant")
    said = _said_by_shape(asked, shapes)
    _check_once(asked, said)
    options = asked.network.options
    left_open = {name: name for name in names if name in options and str in options[name].types}
    graph = _built(asked, {"seed": seed, **left_open, **said, **asked.chosen})
    _check_shapes(asked, graph, shapes)
    return graph if asked.optimiser == _NO_OPTIMISER else _step(asked, graph)


def _built(asked: "_Asked", options: Mapping[str, Default]) -> Graph:
    try:
        return asked.network(**options)
    except OptionError as error:
        raise ModelError(str(error)) from error


def can_train(model: Path) -> bool:
    """Returns whether a network of the zoo has a loss. Raises ModelError."""
    return _TRAINING in _asked(model, {}).network.options


def names_of(model: Path) -> tuple[str, ...]:
    """Returns the names of dimensions that a network of the zoo may leave open. Raises ModelError."""
    return tuple(name for name, option in options_of(model).items() if str in option.types and name != _OPTIMISER)


def options_of(model: Path) -> Mapping[str, Option]:
    """Returns the options of a network of the zoo, by name. Raises ModelError."""
    return _options(_asked(model, {}).network)


def _step(asked: "_Asked", graph: Graph) -> Graph:
    """Returns the graph with the backward pass and the updates of parameters."""
    if graph.is_symbolic:
        names = ", ".join(graph.symbols)
        raise ModelError(f"{asked.model} is trained with numbers alone; give one behind the name for: {names}")
    return train_step(graph, graph.outputs["loss"], OPTIMISERS[asked.optimiser]).graph


@frozen(eq=False)
class _Asked:
    model: Path
    network: Network
    chosen: Mapping[str, Default]
    optimiser: str


def _asked(model: Path, fixed: Mapping[str, Default]) -> _Asked:
    name, _, query = str(model).removeprefix(PREFIX).partition("?")
    if name not in NETWORKS:
        names = ", ".join(PREFIX + n for n in NETWORKS)
        meant = "".join(f"did you mean {PREFIX + n}? " for n in get_close_matches(name[:_COMPARED], NETWORKS, 1))
        raise ModelError(f"there is no network {PREFIX + name!r}; {meant}there are {names}")
    network = NETWORKS[name]
    options, chosen = _options(network), dict[str, Default]()
    for part in re.split("[&,]", query) if query else ():
        option, _, value = part.partition("=")
        if option not in options:
            meant = "".join(f"did you mean {n}? " for n in get_close_matches(option[:_COMPARED], options, 1))
            raise ModelError(f"{PREFIX}{name} has no option {option!r}; {meant}it has {_told(network)}")
        if option in chosen:
            raise ModelError(f"{model} says {option!r} twice")
        chosen[option] = _value(option, options[option], value)
    for option in fixed.keys() & chosen.keys():
        if fixed[option] != chosen[option]:
            said, not_so = (str(o[option]).lower() for o in (chosen, fixed))
            raise ModelError(f"{model} says that {option} is {said}, where it has to be {not_so}; leave it out")
    chosen |= fixed
    optimiser = str(chosen.pop(_OPTIMISER, _NO_OPTIMISER))
    if optimiser != _NO_OPTIMISER:
        chosen[_TRAINING] = True
    return _Asked(model, network, chosen, optimiser)


def _options(network: Network) -> Mapping[str, Option]:
    """Returns the options of the builder, and an optimiser where there is a loss."""
    trained = {_OPTIMISER: Option((str,), _NO_OPTIMISER)} if _TRAINING in network.options else {}
    return {**network.options, **trained}


def _told(network: Network) -> str:
    return ", ".join(f"{name}={str(o.default).lower()}" for name, o in _options(network).items())


def _value(name: str, option: Option, text: str) -> Default:
    """Reads the value of an option as one of its types."""
    if name == _OPTIMISER:
        if text in {_NO_OPTIMISER, *OPTIMISERS}:
            return text
        raise ModelError(f"{name} is {', '.join(OPTIMISERS)} or {_NO_OPTIMISER}, not {text!r}")
    if bool in option.types:
        if text.lower() in _TRUTHS:
            return _TRUTHS[text.lower()]
    elif text.isdecimal() and len(text) <= _DIGITS:
        if option.accepts(int(text)):
            return int(text)
    elif str in option.types and text.isidentifier() and text.lower() not in _NO_NAMES:
        return text
    raise ModelError(f"{name} is {option.wanted}, not {text!r}")


def _said_by_shape(asked: _Asked, shapes: Shapes) -> dict[str, Default]:
    """Returns the batch and the size of images that the shape of x gives."""
    if INPUT not in shapes or "image" not in asked.network.options:
        return {}
    shape = tuple(shapes[INPUT])
    image = shape[2] if len(shape) == 4 and shape[1] == CHANNELS and shape[2] == shape[3] else ""
    if not isinstance(image, int):
        example = f"--shape {INPUT}=8,{CHANNELS},224,224"
        raise ModelError(f"{asked.model} takes square images, such as {example}, and not {list(shape)}")
    return {"batch": shape[0], "image": image}


def _check_once(asked: _Asked, said: Mapping[str, Default]) -> None:
    for name in said.keys() & asked.chosen.keys():
        if said[name] != asked.chosen[name]:
            raise ModelError(
                f"{asked.model} says that {name} is {asked.chosen[name]}, and a shape that it is {said[name]}"
            )


def _check_shapes(asked: _Asked, graph: Graph, shapes: Shapes) -> None:
    """Checks that shapes agree with what the options decide."""
    for name, shape in shapes.items():
        if name not in graph.inputs:
            only = ", ".join(map(repr, graph.inputs))
            raise ModelError(f"{asked.model} has no input {name!r}; it has {only}")
        has = tuple(graph.inputs[name].shape)
        if len(has) != len(shape) or any(isinstance(n, int) and n != m for n, m in zip(has, shape, strict=True)):
            raise ModelError(
                f"input {name!r} of {asked.model} is [{', '.join(map(str, has))}], and not {list(shape)}; options of "
                f"{PREFIX}{asked.network.name} are {_told(asked.network)}"
            )
