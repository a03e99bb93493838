"""Optimisers, and the training step: forward pass, backward pass and updates in one graph."""

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any, Protocol, runtime_checkable

import numpy as np
from attrs import frozen

from engine.graph.graph import Graph
from engine.graph.var import Var
from engine.text.errors import GraphError, OptionError
from engine.training.autodiff import Ready, backward_pass
from ops.common.apply import apply
from ops.training.optimisers import ADAM_STEP, MOMENTUM_STEP, SGD_STEP

RATE = "learning_rate"
"""The name of the parameter that has the learning rate; `Executable.load` changes it between two runs."""


@runtime_checkable
class Optimiser(Protocol):
    """An optimiser: adds its state to a graph, as parameters, and then an update for each gradient."""

    def begin(self, graph: Graph) -> Ready:
        """Adds the state; returns a function that is called with each parameter and its gradient."""


def _check(name: str, value: object, below: float = np.inf) -> None:
    if not isinstance(value, Real) or isinstance(value, bool) or not 0 <= float(value) < below:
        raise OptionError(f"{name} {value!r} is no number from 0 on and below {below}")


@frozen
class SGD:
    """Gradient descent, with momentum unless that is 0: PyTorch's `torch.optim.SGD`."""

    learning_rate: float = 0.01
    momentum: float = 0.0
    nesterov: bool = False
    weight_decay: float = 0.0

    def __attrs_post_init__(self) -> None:
        _check("learning_rate", self.learning_rate)
        _check("momentum", self.momentum, 1)
        _check("weight_decay", self.weight_decay)
        if self.nesterov and not self.momentum:
            raise OptionError("nesterov needs a momentum above 0")

    def begin(self, graph: Graph) -> Ready:
        """Adds one parameter of state for each trained parameter, where there is momentum."""
        rate = _scalar(graph, RATE, self.learning_rate)
        attrs: dict[str, Any] = {"weight_decay": self.weight_decay}

        def update(parameter: Var, gradient: Var) -> None:
            if self.momentum:
                more = attrs | {"momentum": self.momentum, "nesterov": self.nesterov}
                velocity = _zeros_like(graph, parameter, "velocity")
                updated = apply(MOMENTUM_STEP, (parameter, gradient, velocity, rate), **more)
                _assign(graph, (parameter, velocity), updated)
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
            _check(name, getattr(self, name))
        for name in ("beta1", "beta2"):
            _check(name, getattr(self, name), 1)

    def begin(self, graph: Graph) -> Ready:
        """Adds two parameters of state for each trained parameter, and the number of the step."""
        rate, before = (_scalar(graph, n, v) for n, v in ((RATE, self.learning_rate), ("step", 0.0)))
        step = graph.assign(before, before + 1.0)
        attrs = {n: getattr(self, n) for n in ("beta1", "beta2", "epsilon")}
        attrs["decoupled_decay" if self.decoupled else "weight_decay"] = self.weight_decay

        def update(parameter: Var, gradient: Var) -> None:
            state = tuple(_zeros_like(graph, parameter, name) for name in ("mean", "variance"))
            _assign(graph, (parameter, *state), apply(ADAM_STEP, (parameter, gradient, *state, rate, step), **attrs))

        return update


def _scalar(graph: Graph, name: str, value: float) -> Var:
    """Adds a float64 parameter that all updates share, under that name, or with a number where it is taken."""
    return graph.parameter(np.array(float(value)), graph.free_name(name), trainable=False)


def _zeros_like(graph: Graph, parameter: Var, what: str) -> Var:
    zeros, name = np.zeros(parameter.shape, parameter.dtype), graph.free_name(f"{parameter.name}/{what}")
    return graph.parameter(zeros, name, trainable=False)


def _assign(graph: Graph, parameters: tuple[Var, ...], values: tuple[Var, ...]) -> None:
    for parameter, value in zip(parameters, values, strict=True):
        graph.assign(parameter, value)


@frozen(eq=False)
class TrainStep:
    """A graph that trains: each run is one step. `gradients` are by parameter; the loss is an output."""

    graph: Graph
    loss: Var
    gradients: Mapping[Var, Var]


def train_step(graph: Graph, loss: Var, optimiser: Optimiser, parameters: Sequence[Var] | None = None) -> TrainStep:
    """Appends the backward pass of the loss and an update of each parameter:

    of all that are trainable, or of `parameters`.

    Several losses may train different parameters. Each update stands as early as it can: a gradient dies after its
    update. The loss becomes an output, named "loss" where that is free. Raises GraphError for a graph without trainable
    parameters, OptionError for what is no optimiser, and the errors of `gradients`; the graph is then unchanged.
    """
    trained = [v for v, p in graph.parameters.items() if p.trainable] if parameters is None else [*parameters]
    if not trained:
        raise GraphError(f"graph {graph.name!r} has no trainable parameter; see Graph.parameter")
    unknown = [v for v in trained if v not in graph.parameters]
    if unknown:
        raise GraphError(f"{unknown[0]!r} is not a parameter of graph {graph.name!r}")
    if not isinstance(optimiser, Optimiser):
        raise OptionError(f"{optimiser!r} is no optimiser; arenaplan.SGD(...) and arenaplan.Adam(...) are")
    gradients: dict[Var, Var] = {}
    with graph.whole():
        update = optimiser.begin(graph)

        def ready(parameter: Var, gradient: Var) -> None:
            gradients[parameter] = gradient
            with graph.naming(f"{parameter.name}/update"):
                update(parameter, gradient)

        backward_pass(loss, trained, ready)
    if loss not in set(graph.outputs.values()):
        graph.output(loss, "loss" if "loss" not in graph.outputs else None)
    return TrainStep(graph, loss, gradients)
