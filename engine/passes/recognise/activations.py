"""Activations recognised from their formulas: Gelu (both), Swish, HardSwish, HardSigmoid, Mish.

Each has the form p(x, t) with a polynomial p and t = f(q(x)); the function f says which ones it may be.
"""

import math
from collections.abc import Callable, Iterator, Mapping

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
    """A gate t = f(u) inside a formula `whole` of x and t, with u = `inner`."""

    edit: Edit
    gate: Operator
    x: Var
    whole: Polynomial
    inner: Polynomial

    def outside(self, **terms: float) -> bool:
        """Whether the formula is this polynomial of x and t, as in x=0.5, xt=0.5."""
        return self._is(self.whole, terms)

    def inside(self, terms: Mapping[str, float]) -> bool:
        """Whether the gate's argument is this polynomial of x; "" is the constant term."""
        return self._is(self.inner, terms)

    def bounds(self) -> tuple[float | None, ...]:
        """The numbers behind the first input of the gate."""
        return tuple(map(self.edit.number, self.gate.inputs[1:]))

    def _is(self, found: Polynomial, terms: Mapping[str, float]) -> bool:
        atoms = {"x": self.x, "t": self.gate.outputs[0]}
        wanted: dict[Monomial, float] = {tuple(atoms[a] for a in term): c for term, c in terms.items()}
        return found.equals(wanted, self.x.dtype)


Found = Iterator[Var]
"""The operator that does it all, if it is one."""


def _of_erf(m: _Match) -> Found:
    if m.outside(x=0.5, xt=0.5) and m.inside({"x": math.sqrt(0.5)}):
        yield ops.gelu(m.x)


def _of_tanh(m: _Match) -> Found:
    if m.outside(x=0.5, xt=0.5) and m.inside({"x": _SLOPE, "xxx": 0.044715 * _SLOPE}):
        yield ops.gelu(m.x, approximate="tanh")


def _of_sigmoid(m: _Match) -> Found:
    alpha = m.inner.terms.get((m.x,), 0.0)
    if m.outside(xt=1) and m.inside({"x": alpha}):
        yield ops.swish(m.x, alpha=alpha)


def _of_clip(m: _Match) -> Found:
    to_six = m.bounds() == (0, 6) and m.inside({"x": 1, "": 3})
    to_one = m.bounds() == (0, 1) and m.inside({"x": 1 / 6, "": 0.5})
    if (to_six and m.outside(xt=1 / 6)) or (to_one and m.outside(xt=1)):
        yield ops.hard_swish(m.x)
    elif to_six and m.outside(t=1 / 6):
        yield ops.hard_sigmoid(m.x, alpha=1 / 6, beta=0.5)


def _of_hard_sigmoid(m: _Match) -> Found:
    attrs = m.gate.attrs
    is_half = math.isclose(attrs["alpha"], 1 / 6, rel_tol=1e-6) and attrs["beta"] == 0.5
    if is_half and m.outside(xt=1) and m.inside({"x": 1}):
        yield ops.hard_swish(m.x)


_FORMULAS: Mapping[OpSchema, Callable[[_Match], Found]] = {
    ERF: _of_erf,
    TANH: _of_tanh,
    SIGMOID: _of_sigmoid,
    CLIP: _of_clip,
    HARD_SIGMOID: _of_hard_sigmoid,
}


def recognise(edit: Edit, operator: Operator) -> None:
    """Puts one activation in the place of its formula, whose pieces nobody else may need."""
    if operator.schema not in _ROOTS:
        return
    (root,) = operator.outputs
    if root.dtype.kind != "f":
        return
    for var in arithmetic_behind(edit, root):
        gate = edit.writer(var)
        if gate is not None and gate.schema in _FORMULAS and _replaced(edit, root, gate):
            return


def _replaced(edit: Edit, root: Var, gate: Operator) -> bool:
    if _is_mish(edit, root, gate):
        return True
    for x in arithmetic_behind(edit, gate.inputs[0]):
        if x.spec != root.spec or edit.is_old_state(x):
            continue
        try:
            whole = polynomial(edit, root, (x, *gate.outputs))
            match = _Match(edit, gate, x, whole, polynomial(edit, gate.inputs[0], (x,)))
        except PolynomialError:
            continue
        pieces = {gate, *whole.operators, *match.inner.operators}
        for found in _FORMULAS[gate.schema](match) if edit.is_closed(pieces, root) else ():
            edit.replace(root, found)
            return True
    return False


def _is_mish(edit: Edit, root: Var, gate: Operator) -> bool:
    """x * tanh(softplus(x)); replaces it."""
    inner, outer = edit.writer(gate.inputs[0]), edit.writer(root)
    if gate.schema is not TANH or inner is None or inner.schema is not SOFTPLUS or outer is None:
        return False
    (x,), (t,) = inner.inputs, gate.outputs
    if edit.is_old_state(x) or outer.schema is not MUL or {*outer.inputs} != {x, t}:
        return False
    if not edit.is_closed({inner, gate, outer}, root):
        return False
    edit.replace(root, ops.mish(x))
    return True


ACTIVATIONS = RulePass("activations", recognise)
