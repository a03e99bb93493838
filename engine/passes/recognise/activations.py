"""Activations recognised from their formulas: Gelu (erf and tanh), Swish, HardSwish, HardSigmoid, Mish.

Each formula is p(x, t) with polynomials p and q and a gate t = f(q(x)). The function f decides which activations are
possible.
"""

import math
from collections.abc import Callable, Collection, Iterator, Mapping

from attrs import frozen

import ops
from engine.graph.operator import Operator
from engine.graph.var import Var
from engine.passes.base import RulePass
from engine.passes.edit import Edit
from engine.passes.recognise.polynomials import Monomial, Polynomial, PolynomialError, arithmetic_behind, polynomial
from ops.elementwise.activation import CLIP, HARD_SIGMOID, TANH
from ops.elementwise.binary import ADD, DIV, MUL, SUB
from ops.elementwise.smooth import SIGMOID, SOFTPLUS
from ops.elementwise.unary import ERF
from ops.schema.schema import OpSchema

_ROOTS = frozenset((ADD, SUB, MUL, DIV))
_SLOPE = math.sqrt(2 / math.pi)


@frozen(eq=False)
class _Match:
    """A formula: a polynomial `whole` of x and of a gate t = f(u), and the polynomial `inner` of x that u is."""

    edit: Edit
    gate: Operator
    x: Var
    whole: Polynomial
    inner: Polynomial

    def outside(self, **terms: float) -> bool:
        """Returns whether the formula is this polynomial of x and t; outside(x=0.5, xt=0.5) means 0.5 x + 0.5 x t."""
        return self._is(self.whole, terms)

    def inside(self, terms: Mapping[str, float]) -> bool:
        """Returns whether the argument of the gate is this polynomial of x; "" is the constant term."""
        return self._is(self.inner, terms)

    def bounds(self) -> tuple[float | None, ...]:
        """Returns the constant numbers that the gate has as further inputs; None for one that is no number."""
        return tuple(map(self.edit.uniform_value, self.gate.inputs[1:]))

    def _is(self, polynomial: Polynomial, terms: Mapping[str, float]) -> bool:
        atoms = {"x": self.x, "t": self.gate.outputs[0]}
        expected: dict[Monomial, float] = {tuple(atoms[a] for a in term): c for term, c in terms.items()}
        return polynomial.equals(expected, self.x.dtype)


Replacement = Iterator[Var]
"""The result of one operator that computes the formula, if there is such an operator."""


def _of_erf(m: _Match) -> Replacement:
    if m.outside(x=0.5, xt=0.5) and m.inside({"x": math.sqrt(0.5)}):
        yield ops.gelu(m.x)


def _of_tanh(m: _Match) -> Replacement:
    if m.outside(x=0.5, xt=0.5) and m.inside({"x": _SLOPE, "xxx": 0.044715 * _SLOPE}):
        yield ops.gelu(m.x, approximate="tanh")


def _of_sigmoid(m: _Match) -> Replacement:
    alpha = m.inner.terms.get((m.x,), 0.0)
    if m.outside(xt=1) and m.inside({"x": alpha}):
        yield ops.swish(m.x, alpha=alpha)


def _of_clip(m: _Match) -> Replacement:
    to_six = m.bounds() == (0, 6) and m.inside({"x": 1, "": 3})
    to_one = m.bounds() == (0, 1) and m.inside({"x": 1 / 6, "": 0.5})
    if (to_six and m.outside(xt=1 / 6)) or (to_one and m.outside(xt=1)):
        yield ops.hard_swish(m.x)
    elif to_six and m.outside(t=1 / 6):
        yield ops.hard_sigmoid(m.x, alpha=1 / 6, beta=0.5)


def _of_hard_sigmoid(m: _Match) -> Replacement:
    attrs = m.gate.attrs
    is_half = math.isclose(attrs["alpha"], 1 / 6, rel_tol=1e-6) and attrs["beta"] == 0.5
    if is_half and m.outside(xt=1) and m.inside({"x": 1}):
        yield ops.hard_swish(m.x)


_FORMULAS: Mapping[OpSchema, Callable[[_Match], Replacement]] = {
    ERF: _of_erf,
    TANH: _of_tanh,
    SIGMOID: _of_sigmoid,
    CLIP: _of_clip,
    HARD_SIGMOID: _of_hard_sigmoid,
}


def recognise(edit: Edit, operator: Operator) -> None:
    """Replaces the formula of an activation by one operator.

    1. 0.5 x (1 + erf(x / sqrt(2))) -> gelu(x)
    2. 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) -> gelu(x, tanh)
    3. x sigmoid(a x) -> swish(x, a)
    4. x clip(x + 3, 0, 6) / 6, x clip(x / 6 + 0.5, 0, 1), x hard_sigmoid(x, 1/6, 0.5) -> hard_swish(x)
    5. clip(x + 3, 0, 6) / 6 -> hard_sigmoid(x, 1/6, 0.5)
    6. x tanh(softplus(x)) -> mish(x)

    The order of sums and products does not matter. The rule does not apply to integers, where something else reads a
    value inside the formula, or where x is overwritten state.
    """
    if operator.schema not in _ROOTS:
        return
    (root,) = operator.outputs
    if root.dtype.kind != "f":
        return
    behind = arithmetic_behind(edit, root)
    for var in behind:
        gate = edit.writer(var)
        if gate is None or gate.schema not in _FORMULAS or not _serves_only(edit, var, root, behind):
            continue
        if _replaced(edit, root, gate):
            return


def _serves_only(edit: Edit, var: Var, root: Var, behind: Collection[Var]) -> bool:
    """Returns whether nothing reads a var, and what is computed from it, but what lies `behind` the root.

    In a chain of gates this is decided in a few steps, and without reading any formula.
    """
    frontier, reached = [var], {root, var}
    while frontier:
        current = frontier.pop()
        ahead = {v for operator in edit.readers(current) for v in operator.outputs}
        if edit.is_fetched(current) or not ahead.issubset(behind):
            return False
        frontier += ahead - reached
        reached |= ahead
    return True


def _replaced(edit: Edit, root: Var, gate: Operator) -> bool:
    """Replaces the formula that ends in `root` and has this gate; returns whether it is one that is recognised."""
    if _replaced_mish(edit, root, gate):
        return True
    for x in arithmetic_behind(edit, gate.inputs[0]):
        if x.spec != root.spec or edit.is_overwritten_state(x):
            continue
        try:
            inner = polynomial(edit, gate.inputs[0], (x,))
            if not inner.is_of(x):
                continue
            whole = polynomial(edit, root, (x, *gate.outputs))
        except PolynomialError:
            continue
        match = _Match(edit, gate, x, whole, inner)
        operators = {gate, *whole.operators, *inner.operators}
        for replacement in _FORMULAS[gate.schema](match) if edit.is_self_contained(operators, root) else ():
            edit.replace(root, replacement)
            return True
    return False


def _replaced_mish(edit: Edit, root: Var, gate: Operator) -> bool:
    """Replaces x * tanh(softplus(x)); returns whether the formula is that."""
    inner, outer = edit.writer(gate.inputs[0]), edit.writer(root)
    if gate.schema is not TANH or inner is None or inner.schema is not SOFTPLUS or outer is None:
        return False
    (x,), (t,) = inner.inputs, gate.outputs
    if edit.is_overwritten_state(x) or outer.schema is not MUL or {*outer.inputs} != {x, t}:
        return False
    if not edit.is_self_contained({inner, gate, outer}, root):
        return False
    edit.replace(root, ops.mish(x))
    return True


ACTIVATIONS = RulePass("activations", recognise)
