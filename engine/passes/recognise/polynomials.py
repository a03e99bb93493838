"""Arithmetic as polynomials, so that a formula is recognised in any order of its sums and products."""

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
"""The factors of a product, in any order; none for the constant term."""
_ARITHMETIC = frozenset((ADD, SUB, MUL, DIV, POW, NEG))
_MOST_TERMS = 8
_MOST_DEGREE = 4
"""The largest polynomial. The formulas here need 2 terms and degree 4; more terms make the search slower."""
_DEPTH = 12
"""Operators on a path from the result to an atom, at most. The formulas here need fewer."""
_TOLERANCE = 1e-5
"""The relative difference of equal coefficients: exporters write constants with 6 digits or more."""


@frozen(eq=False)
class Polynomial:
    """A sum of products of vars by coefficient, and the operators that compute it from these vars."""

    terms: Mapping[Monomial, float]
    operators: frozenset[Operator]

    def is_of(self, var: Var) -> bool:
        """Returns whether this is a polynomial of one var alone."""
        return all(factor is var for monomial in self.terms for factor in monomial)

    def equals(self, terms: Mapping[Monomial, float], dtype: np.dtype[Any]) -> bool:
        """Returns whether these are the terms, with coefficients that are equal in the precision of the dtype."""
        own = {_sorted(m): c for m, c in self.terms.items()}
        if own.keys() != {_sorted(m) for m in terms}:
            return False
        close = max(_TOLERANCE, 4 * float(np.finfo(dtype).eps))
        return all(math.isclose(own[_sorted(m)], c, rel_tol=close) for m, c in terms.items())


class PolynomialError(Exception):
    """An expression that is no polynomial, or a larger one than the limits allow."""


def polynomial(edit: Edit, var: Var, atoms: Collection[Var]) -> Polynomial:
    """Returns a var as a polynomial of `atoms` and of vars that no arithmetic computes.

    Raises PolynomialError where it is none, or too large.
    """
    expansion = _Expansion(edit, frozenset(atoms), {}, set())
    return Polynomial(expansion.terms(var, _DEPTH), frozenset(expansion.operators))


def arithmetic_behind(edit: Edit, var: Var) -> tuple[Var, ...]:
    """Returns the vars that a var is computed from by arithmetic, itself first, without constants."""
    reached: dict[Var, None] = {}
    frontier = [(var, _DEPTH)]
    while frontier:
        current, depth = frontier.pop()
        if current in reached or current in edit.constants:
            continue
        reached[current] = None
        operator = edit.writer(current)
        if operator is not None and operator.schema in _ARITHMETIC and depth:
            frontier += [(v, depth - 1) for v in operator.inputs]
    return tuple(reached)


@frozen(eq=False)
class _Expansion:
    edit: Edit
    atoms: frozenset[Var]
    expanded: dict[Var, dict[Monomial, float]]
    operators: set[Operator]

    def terms(self, var: Var, depth: int) -> dict[Monomial, float]:
        if var not in self.expanded:
            self.expanded[var] = self._expand(var, depth)
        return self.expanded[var]

    def _expand(self, var: Var, depth: int) -> dict[Monomial, float]:
        number = self.edit.uniform_value(var)
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
