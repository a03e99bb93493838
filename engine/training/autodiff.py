"""Gradients as operators: the backward pass is appended to the graph, one operator after the other.

Reverse accumulation (Griewank and Walther, Evaluating Derivatives, section 3.2) over the operators between the vars of
`wrt` and the loss, and no others. The backward pass is part of the graph (Chen et al. 2016, section 3), so a forward
value lives until the last gradient that reads it, and no longer. The gradients of a value with several users are added
as they come.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from attrs import define, field

from engine.graph.graph import Graph
from engine.graph.operator import Operator
from engine.graph.var import Var
from engine.text.errors import GraphError
from engine.training.backward import BackwardStep, zeros
from ops.schema.backward import Tensor
from ops.tensor.errors import GradientError, OpError
from ops.tensor.spec import FLOATS

Ready = Callable[[Var, Var], None]
"""Receives a var and its gradient when the gradient is complete and nothing later in the pass reads the var."""


def gradients(loss: Var, wrt: Sequence[Var], *, seed: Var | None = None) -> tuple[Var, ...]:
    """Returns the gradients of `loss` with respect to each of `wrt`, in their shapes; appends their operators.

    The loss has one element, unless `seed` is given: the gradient of a later result with respect to it, in its shape.
    Raises GraphError for vars of another graph, for a var without floats or on which the loss does not depend;
    GradientError (an OpError) where an operator on the way has no rule. The graph is then unchanged.
    """
    gradient_of: dict[Var, Var] = {}
    wrt = tuple(wrt) if isinstance(wrt, Iterable) and not isinstance(wrt, Var) else ()
    if not wrt:
        raise GraphError("gradients are with respect to a list of vars; give at least one")
    backward_pass(loss, wrt, gradient_of.__setitem__, seed=seed)
    return tuple(gradient_of[v] for v in wrt)


def backward_pass(loss: Var, wrt: Sequence[Var], ready: Ready, *, seed: Var | None = None) -> None:
    """Appends the backward pass; calls `ready` with each gradient once, as early as it is complete.

    After an error, the graph is unchanged.
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
    """The state of the walk over operators from the last to the first.

    `pending` has the sums of gradients so far; `ends` says which of `wrt` are complete when the walk has passed a
    position.
    """

    graph: Graph
    active: frozenset[Var]
    ends: Mapping[int, tuple[Var, ...]]
    ready: Ready
    pending: dict[Var, Tensor] = field(factory=dict)

    def step(self, operator: Operator) -> None:
        """Adds the gradients of the inputs of an operator, from those of its outputs."""
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
        total = self.pending.get(var)
        self.pending[var] = term if total is None else total + term

    def finished(self, position: int) -> None:
        """Hands out the gradients that are complete; zeros for a var that no gradient reached."""
        for var in self.ends.get(position, ()):
            gradient = self.pending.get(var)
            if gradient is None:
                gradient = zeros(self.graph, var.spec)
            self.ready(var, gradient)


def _rule(operator: Operator, step: BackwardStep) -> tuple[Tensor | None, ...]:
    try:
        terms = operator.schema.gradient(step)
    except GradientError as error:
        raise GradientError(f"operator {operator}: {error}") from error
    if len(terms) != len(operator.inputs):
        raise OpError(f"the rule of {operator} gives {len(terms)} gradients for {len(operator.inputs)} inputs")
    return terms


def _graph_of(loss: Var, wrt: Sequence[Var], seed: Var | None) -> Graph:
    """Returns the graph of all these vars. Raises GraphError."""
    graph = loss.graph if isinstance(loss, Var) else ()
    if not isinstance(graph, Graph):
        raise GraphError(f"{loss!r} is not a var of a graph")
    for var in (*wrt, *(() if seed is None else (seed,))):
        if not isinstance(var, Var) or var.graph is not graph:
            raise GraphError(f"{var!r} is not a var of the graph of {loss.name!r}")
        if var.dtype not in FLOATS:
            raise GraphError(f"{var.name!r} holds {var.dtype}, and only floats have gradients")
    if graph.is_symbolic:
        raise GraphError(f"graph {graph.name!r} has sizes that are not known yet; bind it (arenaplan.bind) first")
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
    """Returns the vars that depend on some var of `wrt` through floats."""
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
    """Returns the vars of `wrt` by the position of the first operator that reads them; unread ones behind the last."""
    first = dict.fromkeys(wrt, len(operators))
    for position in reversed(range(len(operators))):
        first.update((v, position) for v in operators[position].inputs if v in first)
    by_position: dict[int, tuple[Var, ...]] = {}
    for var, position in first.items():
        by_position[position] = (*by_position.get(position, ()), var)
    return by_position
