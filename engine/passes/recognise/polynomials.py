"""Arithmetic as polynomials, so that a formula is recognised however its sums and products were associated."""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import frozen

from engine.graph.operator import Operator
from engine.graph.var import Var
from engine.passes.edit import Edit
from ops.elementwise.binary import ADD, DIV, MUL, SUB
from ops.elementwise.power import POW
from ops.elementwise.unary import NEG
from ops.schema.schema import OpSchema

Monomial = tuple[Var, ...]
"""Factors, in an order that does not matter to who made it; none for the constant term."""
_ARITHMETIC = frozenset((ADD, SUB, MUL, DIV, POW, NEG))
_MOST_TERMS = 8
_MOST_DEGREE = 4
_DEPTH = 12
"""Operators on a path."""
_TOLERANCE = 1e-5
"""Relative: constants of formulas are written down with 6 digits or more."""


@frozen(eq=False)
class Polynomial:
    """Coefficients of products of vars, and the operators that compute it from these."""

    terms: Mapping[Monomial, float]
    operators: frozenset[Operator]

    def equals(self, wanted: Mapping[Monomial, float], dtype: np.dtype[Any]) -> bool:
        """Whether the terms are these, with coefficients that are equal in the precision of the dtype."""
        found = {_sorted(m): c for m, c in self.terms.items()}
        if found.keys() != {_sorted(m) for m in wanted}:
            return False
        close = max(_TOLERANCE, 4 * float(np.finfo(dtype).eps))
        return all(math.isclose(found[_sorted(m)], c, rel_tol=close) for m, c in wanted.items())


class PolynomialError(Exception):
    """Not arithmetic with numbers, or too much of it."""


def polynomial(edit: Edit, var: Var, atoms: Collection[Var]) -> Polynomial:
    """The var as a polynomial of the atoms and of what is no arithmetic. Raises PolynomialError where it is large."""
    reading = _Reading(edit, frozenset(atoms), {}, set())
    return Polynomial(reading.terms(var, _DEPTH), frozenset(reading.operators))


def arithmetic_behind(edit: Edit, var: Var) -> tuple[Var, ...]:
    """The vars that a var is computed from with arithmetic, itself first; those that are no constants."""
    found: dict[Var, None] = {}
    waiting = [(var, _DEPTH)]
    while waiting:
        here, depth = waiting.pop()
        if here in found or here in edit.constants:
            continue
        found[here] = None
        operator = edit.writer(here)
        if operator is not None and operator.schema in _ARITHMETIC and depth:
            waiting += [(v, depth - 1) for v in operator.inputs]
    return tuple(found)


@frozen(eq=False)
class _Reading:
    edit: Edit
    atoms: frozenset[Var]
    known: dict[Var, dict[Monomial, float]]
    operators: set[Operator]

    def terms(self, var: Var, depth: int) -> dict[Monomial, float]:
        if var not in self.known:
            self.known[var] = self._expand(var, depth)
        return self.known[var]

    def _expand(self, var: Var, depth: int) -> dict[Monomial, float]:
        number = self.edit.number(var)
        if number is not None:
            return {(): number}
        operator = self.edit.writer(var)
        if var in self.atoms or operator is None or operator.schema not in _ARITHMETIC or not depth:
            return {(var,): 1.0}
        self.operators.add(operator)
        return _combined(operator.schema, [self.terms(v, depth - 1) for v in operator.inputs])


def _combined(schema: OpSchema, terms: Sequence[dict[Monomial, float]]) -> dict[Monomial, float]:
    first, last = terms[0], terms[-1]
    if schema is NEG:
        return _times(first, {(): -1.0})
    if schema is POW:
        return _power(first, _number(last))
    if schema is MUL:
        return _times(first, last)
    if schema is DIV:
        return _times(first, {(): 1 / (_number(last) or math.inf)})
    return _plus(first, last if schema is ADD else _times(last, {(): -1.0}))


def _number(terms: dict[Monomial, float]) -> float:
    if terms.keys() - {()}:
        raise PolynomialError
    return terms.get((), 0.0)


def _plus(a: dict[Monomial, float], b: dict[Monomial, float]) -> dict[Monomial, float]:
    return _limited({m: a.get(m, 0.0) + b.get(m, 0.0) for m in (*a, *b)})


def _times(a: dict[Monomial, float], b: dict[Monomial, float]) -> dict[Monomial, float]:
    product: dict[Monomial, float] = {}
    for m, c in a.items():
        for n, d in b.items():
            both = _sorted((*m, *n))
            product[both] = product.get(both, 0.0) + c * d
    return _limited(product)


def _power(a: dict[Monomial, float], exponent: float) -> dict[Monomial, float]:
    if exponent not in range(1, _MOST_DEGREE + 1):
        raise PolynomialError
    product = a
    for _ in range(int(exponent) - 1):
        product = _times(product, a)
    return product


def _limited(terms: dict[Monomial, float]) -> dict[Monomial, float]:
    if len(terms) > _MOST_TERMS or any(len(m) > _MOST_DEGREE for m in terms):
        raise PolynomialError
    return terms


def _sorted(monomial: Monomial) -> Monomial:
    return tuple(sorted(monomial, key=id))
