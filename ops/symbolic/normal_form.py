"""Normal forms of dimensions: two dimensions with one form are equal whatever the lengths are. Nothing is decided here.

A form is a polynomial with integer coefficients in *atoms*: leaves, and quotients that cannot be simplified.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping
from math import gcd

from attrs import define, field

from ops.tensor.dims import Dim

Monomial = tuple[int, ...]
"""Numbers of atoms, sorted; () for the constant term."""
Form = tuple[tuple[Monomial, int], ...]
"""Terms sorted by monomial; no coefficient is 0."""
ZERO: Form = ()
_MOST_TERMS = 64
"""Terms of a form, at most: larger products are atoms. A larger number proves more and takes longer."""
_MOST_LENGTH = 2**63 - 1
"""The greatest length of an axis: the bytes of a tensor fit into 64 bits."""


def constant(number: int) -> Form:
    """Returns the form of a number."""
    return (((), number),) if number else ZERO


def as_number(form: Form) -> int | None:
    """Returns the number that a form is; None where it depends on a dimension."""
    if not form:
        return 0
    return form[0][1] if len(form) == 1 and not form[0][0] else None


def combined(one: Form, other: Form, factor: int = 1) -> Form:
    """Returns one + factor * other."""
    terms = dict(one)
    for monomial, n in other:
        terms[monomial] = terms.get(monomial, 0) + factor * n
    return _sorted(terms)


def _sorted(terms: Mapping[Monomial, int]) -> Form:
    return tuple(sorted((m, n) for m, n in terms.items() if n))


def _product(one: Form, other: Form) -> Form:
    terms: dict[Monomial, int] = {}
    for m, a in one:
        for n, b in other:
            both = tuple(sorted((*m, *n)))
            terms[both] = terms.get(both, 0) + a * b
    return _sorted(terms)


def _without(monomial: Monomial, factor: Monomial) -> Monomial | None:
    """Returns a monomial divided by another one; None where it is no multiple of that."""
    rest = list(monomial)
    for atom in factor:
        if atom not in rest:
            return None
        rest.remove(atom)
    return tuple(rest)


@define(eq=False)
class _Atom:
    """A leaf (`dim`), or the quotient `above` // `below`, rounded down. One that `is_natural` is never negative."""

    is_natural: bool
    dim: Dim | None = None
    above: Form = ZERO
    below: Form = ZERO


@define(eq=False)
class NormalForms:
    """The forms of dimensions. `leaf` returns what stands for a leaf: a dimension in other leaves, or a number."""

    leaf: Callable[[Dim], Dim | int]
    _atoms: list[_Atom] = field(factory=list)
    _numbers: dict[Hashable, int] = field(factory=dict)
    _forms: dict[int, tuple[Dim, Form]] = field(factory=dict)
    _dims: dict[Form, Dim | int] = field(factory=dict)

    def form(self, dim: Dim | int) -> Form:
        """Returns the form of a dimension or a number."""
        if not isinstance(dim, Dim):
            return constant(dim)
        kept = self._forms.get(id(dim))
        if kept is None:
            kept = self._forms[id(dim)] = (dim, self._composed(dim) if dim.parts else self._of_leaf(dim))
        return kept[1]

    def dim(self, dim: Dim | int) -> Dim | int:
        """Returns the one dimension of its form, or a number."""
        if not isinstance(dim, Dim):
            return dim
        return self.of_form(self.form(dim))

    def of_form(self, form: Form) -> Dim | int:
        """Returns the one dimension of a form, or a number."""
        if form not in self._dims:
            self._dims[form] = dim = self._sum(form)
            if isinstance(dim, Dim):
                self._forms[id(dim)] = (dim, form)
        return self._dims[form]

    def leaves(self) -> Iterator[Dim]:
        """Yields all leaves."""
        return (atom.dim for atom in self._atoms if atom.dim is not None and not atom.dim.parts)

    def proved(self, left: Dim | int, relation: str, right: Dim | int) -> bool | None:
        """Returns whether `left relation right` holds for all lengths (True), for none (False), or neither (None)."""
        above = combined(self.form(right), self.form(left), -1)
        below = combined(ZERO, above, -1)
        if relation == "==":
            if not above:
                return True
            return False if self._least(above) > 0 or self._least(below) > 0 else None
        strict = int(relation == "<")
        if self._least(above) >= strict:
            return True
        return False if self._least(below) >= 1 - strict else None

    def solved(self, zero: Form) -> Iterator[tuple[int, int]]:
        """Yields an atom and its number where a form can be 0 for that number only."""
        terms = dict(zero)
        added = terms.pop((), 0)
        if len(terms) == 1:
            ((monomial, n),) = terms.items()
            if len(monomial) == 1 and added % n == 0:
                yield monomial[0], -added // n

    def substituted(self, form: Form, numbers: Mapping[int, int]) -> Form:
        """Returns a form with numbers in place of some atoms."""
        total = ZERO
        for monomial, n in form:
            product = constant(n)
            for number in monomial:
                product = _product(product, self._atom_with(number, numbers))
            total = combined(total, product)
        return total

    def _atom_with(self, number: int, numbers: Mapping[int, int]) -> Form:
        atom = self._atoms[number]
        if number in numbers:
            return constant(numbers[number])
        if atom.dim is not None:
            return (((number,), 1),)
        return self.quotient(self.substituted(atom.above, numbers), self.substituted(atom.below, numbers))

    def _least(self, form: Form) -> float:
        """Returns a lower bound."""
        least: float = 0
        for monomial, n in form:
            if not all(self._atoms[a].is_natural for a in monomial):
                return float("-inf")
            if not monomial:
                least += n
            elif n < 0:
                least += n * _MOST_LENGTH if len(monomial) == 1 else float("-inf")
        return least

    def _of_leaf(self, dim: Dim) -> Form:
        meaning = self.leaf(dim)
        if meaning is not dim:
            return self.form(meaning)
        key = dim.key if dim.key is not None else id(dim)
        return self._atom(("leaf", key), lambda: _Atom(dim.is_length, dim))

    def _atom(self, key: Hashable, make: Callable[[], _Atom]) -> Form:
        if key not in self._numbers:
            self._numbers[key] = len(self._atoms)
            self._atoms.append(make())
        return (((self._numbers[key],), 1),)

    def _composed(self, dim: Dim) -> Form:
        left, right = map(self.form, dim.parts)
        match dim.sign:
            case "+":
                return combined(left, right)
            case "-":
                return combined(left, right, -1)
            case "*" if len(left) * len(right) <= _MOST_TERMS:
                return _product(left, right)
            case "//":
                return self.quotient(left, right)
            case "%":
                return combined(left, _product(right, self.quotient(left, right)), -1)
        return self._atom((dim.sign, left, right), lambda: _Atom(is_natural=False, dim=dim))

    def quotient(self, above: Form, below: Form) -> Form:
        """Returns the form of above // below, rounded down; where it is simplified, `below` is not 0 or all fails."""
        number = as_number(below)
        if number is not None and number < 0:
            return self.quotient(combined(ZERO, above, -1), constant(-number))
        if above == below:
            return constant(1)
        if number is not None and number > 0:
            return self._by_number(above, number)
        if len(below) != 1 or number is not None:
            return self._quotient_atom(above, below)
        (factor, n), whole, rest = below[0], dict[Monomial, int](), dict[Monomial, int]()
        for monomial, m in above:
            other = _without(monomial, factor)
            if other is None or m % n:
                rest[monomial] = m
            else:
                whole[other] = m // n
        return combined(_sorted(whole), self._quotient_atom(_sorted(rest), below) if rest else ZERO)

    def _by_number(self, above: Form, number: int) -> Form:
        """Returns the form of above // number: what is divisible comes out of the quotient."""
        whole = _sorted({m: n // number for m, n in above})
        rest = _sorted({m: n % number for m, n in above})
        if as_number(rest) is not None:
            return whole
        added = dict(rest).get((), 0)
        common = gcd(number, *(n for m, n in rest if m))
        if common > 1:
            fewer = _sorted({m: n // common for m, n in rest})
            return combined(whole, self.quotient(fewer, constant(number // common)))
        (first, *more) = (term for term in rest if term[0])
        if not more and first[1] == 1 and len(first[0]) == 1:
            inner = self._atoms[first[0][0]]
            by = as_number(inner.below)
            if inner.dim is None and by is not None and by > 0:  # (a // by + added) // number
                merged = combined(inner.above, constant(by * added))
                return combined(whole, self.quotient(merged, constant(by * number)))
        return combined(whole, self._quotient_atom(rest, constant(number)))

    def _quotient_atom(self, above: Form, below: Form) -> Form:
        is_natural = self._least(above) >= 0 and self._least(below) >= 0
        return self._atom(("//", above, below), lambda: _Atom(is_natural, None, above, below))

    def _sum(self, form: Form) -> Dim | int:
        """Returns a form as a dimension, its constant term last."""
        total: Dim | int = 0
        for monomial, n in sorted(form, key=lambda term: (term[1] < 0, not term[0], term[0])):
            product: Dim | int = 1
            for number in monomial:
                product = product * self._dim_of(self._atoms[number])
            total = total - product * -n if n < 0 else total + product * n
        return total

    def _dim_of(self, atom: _Atom) -> Dim | int:
        return self.of_form(atom.above) // self.of_form(atom.below) if atom.dim is None else atom.dim
