"""Dimensions that have no number yet: names, arithmetic on them, and numbers that only data decide.

A dimension carries what it would be in a few *samples*: lengths that were made up, some even, some odd, some small,
in which the same expression gives different numbers. What must be decided before the true numbers are there (is this
dimension 1?) is decided as in the samples, and noted as a *guard*, which is checked when the true numbers are known.
So a decision is never silently wrong. Idea: the hints and guards of PyTorch's symbolic integers.
"""

import operator
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from numbers import Integral, Real
from types import MappingProxyType
from typing import Any, Final, cast

from attrs import define, evolve, field, frozen

from ops.tensor.errors import ShapeError

_ODD: Final = (3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97)
"""Primes at first, so that products tell their factors."""
UNITS: Final = (64, 32, 128, 16, 256, 8, 512, 1024, 2048, 4096)
"""Factors of most samples, the usual one first.

With another one a decision may fall otherwise; together they reach what is decided for lengths from 24 to 10^5.
"""
_SCALES: Final = (1, 1, 1, 16, 256, 1024)
"""Factors of the first samples. Windows and strides that are longer than some samples fit the longer ones."""
SAMPLES: Final = len(_SCALES) + 4
"""The number of samples of a dimension: multiples of 64, a multiple of 4, an odd number, a small one, and 1."""
_LONG: Final = frozenset(j for j, scale in enumerate(_SCALES) if scale > 1)
ROUND: Final = len(_SCALES)
"""The number of samples that are multiples of the unit; they come first."""

_ARITHMETIC: Final = MappingProxyType(
    {"+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod}
)
_RELATIONS: Final = MappingProxyType({"==": operator.eq, "<": operator.lt, "<=": operator.le})
_REQUIREMENTS: Final = MappingProxyType(
    {
        ("==", True): "must equal",
        ("==", False): "must differ from",
        ("<", True): "must be less than",
        ("<", False): "must be at least",
        ("<=", True): "must be at most",
        ("<=", False): "must be greater than",
    }
)
"""The words for a relation that must hold, or must not."""
_SUM, _PRODUCT, _ATOM = 0, 1, 2
_STRENGTH: Final = MappingProxyType({"+": _SUM, "-": _SUM, "*": _PRODUCT, "//": _PRODUCT, "%": _PRODUCT})
_PLAIN: Final = frozenset((int, float, bool, str, type(None)))
"""The types of most values that have no dimensions."""

NumberOf = Callable[["Dim"], int]
"""Returns the number of a leaf. For a leaf that is not known, it raises an error of the caller's choice."""


class Parametric:
    """An attribute that has dimensions inside it."""

    @property
    def dims(self) -> "tuple[Dim, ...]":
        """Returns the dimensions on which a decision about the attribute depends."""
        raise NotImplementedError

    def numbered(self, number: "Callable[[Dim], int]") -> Any:
        """Returns a copy with numbers."""
        raise NotImplementedError


@frozen(eq=False)
class Guard:
    """A decision about two dimensions while a graph was built: `left relation right` holds, or does not.

    `position` is the number of operators that the graph had then: all later ones rely on it.
    """

    left: "Dim | int"
    relation: str
    right: "Dim | int"
    holds: bool
    position: int

    def check(self, number_of: NumberOf) -> None:
        """Raises ShapeError where the true numbers say otherwise."""
        if _RELATIONS[self.relation](value_of(self.left, number_of), value_of(self.right, number_of)) is not self.holds:
            raise ShapeError(
                f"{self.left} {_REQUIREMENTS[self.relation, self.holds]} {self.right}, but {self.left} is "
                f"{value_of(self.left, number_of)}{_and_value(self.right, number_of)}; "
                f"build the graph with these lengths as numbers (shapes=, --shape)"
            )

    @property
    def wording(self) -> Hashable:
        """Returns a key that tells it from others, since the same text may mean different things."""
        sides = (self.left, self.right)
        return self.relation, *((str(d), d.leaves) if isinstance(d, Dim) else d for d in sides)

    @property
    def leaves(self) -> frozenset[Hashable]:
        """Returns the keys of the names that must be known to check it."""
        return frozenset().union(*(d.leaves for d in (self.left, self.right) if isinstance(d, Dim)))

    def __str__(self) -> str:
        return f"{self.left} {self.relation} {self.right}"


@define(eq=False)
class Samples:
    """The samples that are still possible, by position, and what was decided. One for all dimensions of a graph.

    The first samples are multiples of `unit`. `named` are the dimensions that others can be told by; `position` is the
    number of operators that the graph has; `around` are those of the graphs around it; `guessed` has the keys of data
    of which nobody said what they may be.
    """

    unit: int = UNITS[0]
    alive: list[int] = field(factory=lambda: list(range(SAMPLES)))
    guards: dict[tuple[Hashable, bool], Guard] = field(factory=dict)
    named: "list[Dim]" = field(factory=list)
    invented: int = 0
    position: int = 0
    around: "tuple[Samples, ...]" = ()
    guessed: set[Hashable] = field(factory=set)

    def invent(self) -> tuple[int, ...]:
        """Returns numbers for one more dimension.

        They differ from those of all others in all samples but the last.
        """
        if self.around:
            self.invented += 1
            return self.around[0].invent()
        i = self.invented
        self.invented += 1
        long = (self.unit * scale * _odd(3 * i + j % 3) for j, scale in enumerate(_SCALES))
        return (*long, 12 + 4 * i, 37 + 6 * i, 2 + i, 1)

    @property
    def has_decided(self) -> bool:
        """True if other samples might have led to other decisions."""
        return bool(self.guards) or len(self.alive) < SAMPLES

    def typical(self) -> frozenset[int]:
        """Returns the first sample that is possible, and all others that are not long: they decide what is usual."""
        return frozenset(j for j in self.alive if j not in _LONG) | {self.alive[0]}

    def inside(self) -> "Samples":
        """Returns a table for a graph inside this one: the same samples, decisions of its own."""
        return Samples(self.unit, self.alive, {}, self.named, self.invented, 0, (self, *self.around), self.guessed)

    def keep(self, alive: Iterable[int]) -> None:
        """Drops all samples but these."""
        self.alive[:] = list(alive)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Takes back what was decided inside the block, here and in the graphs around, if an exception leaves it."""
        tables, alive = (self, *self.around), tuple(self.alive)
        guards = [dict(table.guards) for table in tables]
        try:
            yield
        except BaseException:
            self.keep(alive)
            for table, before in zip(tables, guards, strict=True):
                table.guards = before
            raise

    def decide(self, left: "Dim", relation: str, right: Any) -> bool:
        """Returns the answer of the first sample; gives up samples that answer otherwise, and notes the decision."""
        if not isinstance(right, Dim):
            right = _plain(right)
            if left.is_length and right < 0:
                return False
        said = {j: bool(_RELATIONS[relation](left.samples[j], sample_of(right, j))) for j in self.alive}
        answer = said[self.alive[0]]
        self.keep(j for j in self.alive if said[j] is answer)
        guard = Guard(left, relation, right, answer, 0)
        tables = (self, right.table) if isinstance(right, Dim) else (self,)
        max(tables, key=lambda t: len(t.around)).note(guard)
        return answer

    def no_number(self, message: str) -> TypeError:
        """Returns the error of a dimension that is used as a number."""
        return TypeError(message)

    def note(self, guard: Guard) -> None:
        """Stores a decision, to be checked when the true numbers are known; one that is there already stays."""
        self.guards.setdefault((guard.wording, guard.holds), evolve(guard, position=self.position))


@frozen(eq=False, repr=False)
class Dim:
    """One dimension. A leaf has a `key` that says where its number comes from; others are arithmetic on `parts`.

    Compares as a number: by its samples, which leaves a guard. It is no int, and has none before shapes are bound.
    `strength` tells whether the text needs brackets inside another. A dimension that `is_length` is never negative.
    """

    text: str
    samples: tuple[int, ...]
    table: Samples = field(repr=False)
    key: Hashable = None
    sign: str = ""
    parts: "tuple[Dim | int, ...]" = ()
    strength: int = _ATOM
    is_length: bool = False

    def __add__(self, other: "Dim | int") -> "Dim":
        return _combined("+", self, other)

    def __radd__(self, other: int) -> "Dim":
        return _combined("+", other, self)

    def __sub__(self, other: "Dim | int") -> "Dim":
        return _combined("-", self, other)

    def __rsub__(self, other: int) -> "Dim":
        return _combined("-", other, self)

    def __mul__(self, other: "Dim | int") -> "Dim":
        return _combined("*", self, other)

    def __rmul__(self, other: int) -> "Dim":
        return _combined("*", other, self)

    def __floordiv__(self, other: "Dim | int") -> "Dim":
        return _combined("//", self, other)

    def __rfloordiv__(self, other: int) -> "Dim":
        return _combined("//", other, self)

    def __mod__(self, other: "Dim | int") -> "Dim":
        return _combined("%", self, other)

    def __rmod__(self, other: int) -> "Dim":
        return _combined("%", other, self)

    def __neg__(self) -> "Dim":
        return _combined("-", 0, self)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, (Dim, Real)) and self.table.decide(self, "==", other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(Dim)  # equal ones may be written in many ways

    def __lt__(self, other: "Dim | int") -> bool:
        return self.table.decide(self, "<", other)

    def __le__(self, other: "Dim | int") -> bool:
        return self.table.decide(self, "<=", other)

    def __gt__(self, other: "Dim | int") -> bool:
        return not self.table.decide(self, "<=", other)

    def __ge__(self, other: "Dim | int") -> bool:
        return not self.table.decide(self, "<", other)

    def __bool__(self) -> bool:
        return self != 0

    def __index__(self) -> int:
        raise self.table.no_number(f"dimension {self.text!r} has no number before the shapes are bound")

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    @property
    def leaves(self) -> frozenset[Hashable]:
        """Returns the keys that its number depends on."""
        if not self.parts:
            return frozenset((self.key,))
        return frozenset().union(*(p.leaves for p in self.parts if isinstance(p, Dim)))


def _odd(number: int) -> int:
    """Returns one odd number after the other."""
    return _ODD[number] if number < len(_ODD) else _ODD[-1] + 2 * (number - len(_ODD) + 1)


def _plain(number: Any) -> Any:
    """Returns a number of numpy's as one of Python's."""
    return number.item() if hasattr(number, "item") else number


def leaf(name: "Dim | str", samples: tuple[int, ...], table: Samples, key: Hashable, is_length: bool = True) -> Dim:
    """Returns a dimension whose number is stored elsewhere, under `key`; `name` may be a formula, as text."""
    strength = name.strength if isinstance(name, Dim) else _ATOM
    return Dim(str(name), samples, table, key, strength=strength, is_length=is_length)


def value_of(dim: Dim | int, number_of: NumberOf) -> int:
    """Returns the true number. Raises ShapeError for a division by zero."""
    if not isinstance(dim, Dim):
        return dim
    if not dim.parts:
        return number_of(dim)
    left, right = (value_of(p, number_of) for p in dim.parts)
    if dim.sign in ("//", "%") and not right:
        raise ShapeError(f"{dim} divides by nought")
    return int(_ARITHMETIC[dim.sign](left, right))


def sample_of(dim: Dim | int, sample: int) -> int:
    """Returns the number in one of the samples."""
    return dim.samples[sample] if isinstance(dim, Dim) else dim


def dims_in(value: Any) -> list[Dim]:
    """Returns the dimensions in a value of an attribute, or in a shape."""
    if isinstance(value, (tuple, list)):
        return [d for v in value if type(v) not in _PLAIN for d in dims_in(v)]
    if isinstance(value, Dim):
        return [value]
    return list(value.dims) if isinstance(value, Parametric) else []


def replaced(value: Any, number: Callable[[Dim], int]) -> Any:
    """Returns a value with numbers in place of dimensions."""
    if isinstance(value, Dim):
        return number(value)
    if isinstance(value, Parametric):
        return value.numbered(number)
    return tuple(replaced(v, number) for v in value) if isinstance(value, (tuple, list)) else value


def with_leaves(dim: Any, leaves: Mapping[Hashable, Dim]) -> Any:
    """Returns a dimension with other leaves in place of those that have these keys; a number as it is."""
    if not isinstance(dim, Dim) or not dim.parts:
        return leaves.get(dim.key, dim) if isinstance(dim, Dim) else dim
    left, right = (with_leaves(part, leaves) for part in dim.parts)
    return _combined(dim.sign, left, right)


def as_tuples(value: Any) -> Any:
    """Returns a value with tuples in place of lists."""
    return tuple(map(as_tuples, value)) if isinstance(value, (tuple, list)) else value


def in_sample(value: Any, sample: int) -> Any:
    """Returns a value as it would be in one of the samples."""
    return replaced(value, lambda dim: dim.samples[sample])


def _combined(sign: str, left: Dim | int, right: Dim | int) -> Dim:
    left, right = (d if isinstance(d, Dim) or not isinstance(d, Integral) else int(d) for d in (left, right))
    if not isinstance(left, (Dim, int)) or not isinstance(right, (Dim, int)):
        return NotImplemented
    if isinstance(right, int) and (sign, right) in (("+", 0), ("-", 0), ("*", 1), ("//", 1)):
        return cast(Dim, left)
    if isinstance(left, int) and (sign, left) in (("+", 0), ("*", 1)):
        return cast(Dim, right)
    table = next(d.table for d in (left, right) if isinstance(d, Dim))
    apply = _ARITHMETIC[sign]
    pairs = ((sample_of(left, j), sample_of(right, j)) for j in range(SAMPLES))
    # a sample in which a division fails gives nought, and then some check of a shape refuses it
    samples = tuple(0 if sign in ("//", "%") and not b else int(apply(a, b)) for a, b in pairs)
    text = f"{_side(left, sign, 0)}{sign}{_side(right, sign, 1)}"
    return Dim(text, samples, table, None, sign, (left, right), _STRENGTH[sign])


def _side(part: Dim | int, sign: str, bonus: int) -> str:
    """Returns a part as text, in brackets where it binds less than the operator around it."""
    strength = part.strength if isinstance(part, Dim) else _ATOM
    closed = strength >= _STRENGTH[sign] + (bonus and sign != "+")
    return str(part) if closed else f"({part})"


def _and_value(dim: Dim | int, number_of: NumberOf) -> str:
    return f" and {dim} is {value_of(dim, number_of)}" if isinstance(dim, Dim) else ""
