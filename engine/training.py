"""Optimisers, and the step of training: forward, backward and updates in one graph."""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from attrs import frozen

from engine.autodiff import Ready, backward_pass
from engine.errors import GraphError, OptionError
from engine.graph import Graph
from engine.var import Var
from ops.functional.apply import apply
from ops.optimise import ADAM_STEP, MOMENTUM_STEP, SGD_STEP

RATE = "learning_rate"
"""The name of the parameter that holds the rate; `Executable.load` changes it between two runs."""


class Optimiser(Protocol):
    """Adds its state to a graph, as parameters, and then an update for each gradient that it is handed."""

    def begin(self, graph: Graph) -> Ready:
        """What is called with each parameter and its gradient."""


def _check(name: str, value: float, low: float, high: float) -> None:
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not low <= value <= high:
        raise OptionError(f"{name} {value!r} is no number from {low} to {high}")


@frozen
class SGD:
    """Gradient descent, with momentum unless that is 0: PyTorch's `torch.optim.SGD`."""

    learning_rate: float = 0.01
    momentum: float = 0.0
    nesterov: bool = False
    weight_decay: float = 0.0

    def __attrs_post_init__(self) -> None:
        _check("learning_rate", self.learning_rate, 0, np.inf)
        _check("momentum", self.momentum, 0, 1)
        _check("weight_decay", self.weight_decay, 0, np.inf)
        if self.nesterov and not self.momentum:
            raise OptionError("nesterov looks ahead along the momentum, which is 0")

    def begin(self, graph: Graph) -> Ready:
        """One parameter of state for each that is trained, where there is momentum."""
        rates = _Scalars(graph, RATE, self.learning_rate)
        attrs: dict[str, Any] = {"weight_decay": self.weight_decay}

        def update(parameter: Var, gradient: Var) -> None:
            rate = rates.of(parameter)
            if self.momentum:
                more = attrs | {"momentum": self.momentum, "nesterov": self.nesterov}
                velocity = _zeros_like(graph, parameter, "velocity")
                made = apply(MOMENTUM_STEP, (parameter, gradient, velocity, rate), **more)
                _assign(graph, (parameter, velocity), made)
            else:
                _assign(graph, (parameter,), apply(SGD_STEP, (parameter, gradient, rate), **attrs))

        return update


@frozen
class Adam:
    """Adam as in `torch.optim.Adam`; AdamW where `decoupled` is set: then weights decay apart from the gradient."""

    learning_rate: float = 0.001
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    weight_decay: float = 0.0
    decoupled: bool = False

    def __attrs_post_init__(self) -> None:
        for name in ("learning_rate", "epsilon", "weight_decay"):
            _check(name, getattr(self, name), 0, np.inf)
        for name in ("beta1", "beta2"):
            _check(name, getattr(self, name), 0, 1)

    def begin(self, graph: Graph) -> Ready:
        """Two parameters of state for each that is trained, and the number of the step."""
        rates, steps = _Scalars(graph, RATE, self.learning_rate), _Scalars(graph, "step", 0.0, grows=True)
        attrs = {n: getattr(self, n) for n in ("beta1", "beta2", "epsilon")}
        attrs["decoupled_decay" if self.decoupled else "weight_decay"] = self.weight_decay

        def update(parameter: Var, gradient: Var) -> None:
            held = tuple(_zeros_like(graph, parameter, name) for name in ("mean", "variance"))
            scalars = rates.of(parameter), steps.of(parameter)
            _assign(graph, (parameter, *held), apply(ADAM_STEP, (parameter, gradient, *held, *scalars), **attrs))

        return update


class _Scalars:
    """A number that all updates share, as a parameter of the element type that each of them needs."""

    def __init__(self, graph: Graph, name: str, value: float, *, grows: bool = False) -> None:
        self.graph, self.name, self.value, self.grows = graph, name, value, grows
        self._made: dict[np.dtype[Any], Var] = {}

    def of(self, parameter: Var) -> Var:
        """The number for one parameter; one that grows is one more in each run."""
        dtype = parameter.dtype
        if dtype not in self._made:
            name = f"{self.name}/{dtype}" if self._made else self.name
            made = self.graph.parameter(np.array(self.value, dtype), name, trainable=False)
            self._made[dtype] = self.graph.assign(made, made + 1.0) if self.grows else made
        return self._made[dtype]


def _zeros_like(graph: Graph, parameter: Var, what: str) -> Var:
    return graph.parameter(np.zeros(parameter.shape, parameter.dtype), f"{parameter.name}/{what}", trainable=False)


def _assign(graph: Graph, parameters: tuple[Var, ...], values: tuple[Var, ...]) -> None:
    for parameter, value in zip(parameters, values, strict=True):
        graph.assign(parameter, value)


@frozen(eq=False)
class TrainStep:
    """A graph that trains: each run is one step. `gradients` are by parameter; the loss is an output."""

    graph: Graph
    loss: Var
    gradients: Mapping[Var, Var]


def train_step(graph: Graph, loss: Var, optimiser: Optimiser) -> TrainStep:
    """Appends the backward pass of the loss and an update of every trainable parameter to the graph.

    Each update stands as early as it can: a gradient dies where it has been used. The loss becomes an output, named
    "loss" where that is free. Raises GraphError for a graph without trainable parameters, and as `gradients` does.
    """
    trainable = [v for v, known in graph.parameters.items() if known.trainable]
    if not trainable:
        raise GraphError(f"graph {graph.name!r} has no trainable parameter; see Graph.parameter")
    update = optimiser.begin(graph)
    found: dict[Var, Var] = {}

    def ready(parameter: Var, gradient: Var) -> None:
        found[parameter] = gradient
        with graph.naming(f"{parameter.name}/update"):
            update(parameter, gradient)

    backward_pass(loss, trainable, ready)
    if loss not in graph.outputs.values():
        graph.output(loss, "loss" if "loss" not in graph.outputs else None)
    return TrainStep(graph, loss, found)
