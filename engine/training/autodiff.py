"""Gradients as operators: the backward pass is appended to the graph, one operator after the other.

Reverse accumulation (Griewank and Walther, Evaluating Derivatives, section 3.2) over the operators between what is
differentiated by and the loss, and no others. The backward pass is part of the graph (Chen et al. 2016, section 3), so
a forward value lives until the last gradient that reads it, and no longer. Values with several users have their
gradients added as they come.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from attrs import define, field

from engine.graph.graph import Graph
from engine.graph.operator import Operator
from engine.graph.var import Var
from engine.text.errors import GraphError
from ops.functional.backward import BackwardStep, zeros
from ops.schema.backward import Tensor
from ops.tensor.errors import GradientError, OpError
from ops.tensor.spec import FLOATS

Ready = Callable[[Var, Var], None]
"""Is told a var and its gradient as soon as nothing more comes to it, and nothing later in the pass reads the var."""


def gradients(loss: Var, wrt: Sequence[Var], *, seed: Var | None = None) -> tuple[Var, ...]:
    """The gradients of `loss` with respect to each of `wrt`, in their shapes; appends the operators that compute them.

    The loss has one element, unless `seed` is given: the gradient of something else with respect to it, in its shape.
    Raises GraphError for vars of another graph, for a var that is no floats or that the loss does not depend on;
    GradientError (an OpError) where an operator on the way has no rule. The graph is then as it was.
    """
    found: dict[Var, Var] = {}
    wrt = tuple(wrt) if isinstance(wrt, Iterable) and not isinstance(wrt, Var) else ()
    if not wrt:
        raise GraphError("gradients are with respect to a list of vars; give at least one")
    backward_pass(loss, wrt, found.__setitem__, seed=seed)
    return tuple(found[v] for v in wrt)


def backward_pass(loss: Var, wrt: Sequence[Var], ready: Ready, *, seed: Var | None = None) -> None:
    """The pass behind `gradients`; hands each gradient out once, as early as it is complete.

    Where it fails, the graph is as it was.
    """
    graph = _graph_of(loss, wrt, seed)
    operators = graph.operators
    active = _active(operators, wrt)
    _check_reached(loss, wrt, operators, active)
    with graph.whole():
        first = seed if seed is not None else _ones(graph, loss)
        walk = _Pass(graph, active, _earliest_use(operators, wrt), ready, {loss: first})
        walk.finished(len(operators))
        for position in reversed(range(len(operators))):
            walk.step(operators[position])
            walk.finished(position)


@define(eq=False)
class _Pass:
    """What is known while operators are walked from the last to the first.

    `pending` has the gradients so far of what is still to come; `ends` says which of `wrt` are complete when the walk
    has passed a position.
    """

    graph: Graph
    active: frozenset[Var]
    ends: Mapping[int, tuple[Var, ...]]
    ready: Ready
    pending: dict[Var, Tensor] = field(factory=dict)

    def step(self, operator: Operator) -> None:
        """Sends the gradients of an operator's outputs on to its inputs."""
        grads = tuple(self.pending.get(v) for v in operator.outputs)
        if all(g is None for g in grads):
            return
        wanted = frozenset(i for i, v in enumerate(operator.inputs) if v in self.active)
        if not wanted:
            return
        with self.graph.naming(f"{operator.name}/gradient"):
            step = BackwardStep(self.graph, operator.signature, operator.inputs, operator.outputs, grads, wanted)
            for var, term in zip(operator.inputs, _rule(operator, step), strict=True):
                if term is not None and var in self.active:
                    self._receive(var, step.sum_to(term, var.shape))

    def _receive(self, var: Var, term: Tensor) -> None:
        known = self.pending.get(var)
        self.pending[var] = term if known is None else known + term

    def finished(self, position: int) -> None:
        """Hands out what is complete now: of a var that no gradient reached, zeros."""
        for var in self.ends.get(position, ()):
            found = self.pending.get(var)
            if found is None:
                found = zeros(self.graph, var.spec)
            self.ready(var, found)


def _rule(operator: Operator, step: BackwardStep) -> tuple[Tensor | None, ...]:
    try:
        terms = operator.schema.gradient(step)
    except GradientError as error:
        raise GradientError(f"operator {operator}: {error}") from error
    if len(terms) != len(operator.inputs):
        raise OpError(f"the rule of {operator} gives {len(terms)} gradients for {len(operator.inputs)} inputs")
    return terms


def _graph_of(loss: Var, wrt: Sequence[Var], seed: Var | None) -> Graph:
    """The graph of them all."""
    graph = loss.graph if isinstance(loss, Var) else ()
    if not isinstance(graph, Graph):
        raise GraphError(f"{loss!r} is no var of a graph")
    for var in (*wrt, *(() if seed is None else (seed,))):
        if not isinstance(var, Var) or var.graph is not graph:
            raise GraphError(f"{var!r} is no var of the graph of {loss.name!r}")
        if var.dtype not in FLOATS:
            raise GraphError(f"{var.name!r} holds {var.dtype}, and only floats have gradients")
    if graph.is_symbolic:
        raise GraphError(f"graph {graph.name!r} has sizes that are not known yet; bind it (engine.bind) first")
    _check_seed(loss, seed)
    return graph


def _check_seed(loss: Var, seed: Var | None) -> None:
    if seed is None and (loss.spec.size != 1 or loss.dtype not in FLOATS):
        raise GraphError(f"a loss is one float; {loss.name!r} is {loss.spec}. Reduce it, or give a seed")
    if seed is not None and seed.spec != loss.spec:
        raise GraphError(f"the seed is {seed.spec}, but {loss.name!r} is {loss.spec}")


def _ones(graph: Graph, loss: Var) -> Var:
    return graph.constant(np.ones(loss.shape, loss.dtype))


def _active(operators: Sequence[Operator], wrt: Sequence[Var]) -> frozenset[Var]:
    """What depends on something in `wrt` by way of floats."""
    active = set(wrt)
    for operator in operators:
        if not active.isdisjoint(operator.inputs):
            active.update(v for v in operator.outputs if v.dtype in FLOATS)
    return frozenset(active)


def _check_reached(loss: Var, wrt: Sequence[Var], operators: Sequence[Operator], active: frozenset[Var]) -> None:
    reached = {loss}
    for operator in reversed(operators):
        if not reached.isdisjoint(operator.outputs):
            reached.update(v for v in operator.inputs if v in active)
    for var in wrt:
        if var not in reached:
            raise GraphError(f"{loss.name!r} does not depend on {var.name!r}")


def _earliest_use(operators: Sequence[Operator], wrt: Sequence[Var]) -> dict[int, tuple[Var, ...]]:
    """Each of `wrt` under the position of the first operator that reads it; behind all of them where none does."""
    first = dict.fromkeys(wrt, len(operators))
    for position in reversed(range(len(operators))):
        first.update((v, position) for v in operators[position].inputs if v in first)
    found: dict[int, tuple[Var, ...]] = {}
    for var, position in first.items():
        found[position] = (*found.get(position, ()), var)
    return found
