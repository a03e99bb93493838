"""The equation of Einsum (ONNX Einsum-28, numpy.einsum): which label stands for which axis of which operand."""

import re
from collections import Counter
from collections.abc import Sequence

from attrs import frozen

from ops.tensor.errors import ArityError, AttributeValueError, ShapeError
from ops.tensor.spec import Shape

Labels = tuple[str, ...]
"""One label an axis; those of an ellipsis are ".1" for its last axis, ".2" for the one before, and so on."""
_TERM = re.compile(r"[A-Za-z]*(\.\.\.)?[A-Za-z]*")


@frozen(eq=False)
class Equation:
    """Labels of the operands and of the result, and their lengths.

    An axis of length 1 that broadcasts, because its label is longer elsewhere, has the label "".
    """

    operands: tuple[Labels, ...]
    result: Labels
    sizes: dict[str, int]

    @property
    def shape(self) -> Shape:
        """Returns the shape of the result."""
        return tuple(self.sizes[label] for label in self.result)


def equation_text(value: object) -> str:
    """Returns an equation without spaces. Raises ValueError for other text."""
    text = "".join(str(value).split())
    left, arrow, right = text.partition("->")
    if not all(_TERM.fullmatch(term) for term in (*left.split(","), right)):
        raise ValueError("terms have letters and at most one ellipsis each")
    if arrow and max(Counter(right.replace("...", "")).values(), default=0) > 1:
        raise ValueError("the result names a label twice")
    return text


def read(text: str, shapes: Sequence[Shape]) -> Equation:
    """Returns the equation for operands of these shapes. Raises ArityError, ShapeError or AttributeValueError."""
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(shapes):
        raise ArityError(f"{len(shapes)} operands for the {len(terms)} terms of {text!r}")
    labels = [_labels(term, len(shape), text) for term, shape in zip(terms, shapes, strict=True)]
    sizes = _sizes(labels, shapes)
    wide = max((n for n in map(_dots, labels)), default=0)
    result = _explicit(right, wide) if arrow else _implicit(labels, wide)
    missing = sorted(set(result) - set(sizes))
    if missing:
        raise AttributeValueError(f"the result of {text!r} names {missing[0]!r}, which no operand has")
    operands = (_unbroadcast(names, shape, sizes) for names, shape in zip(labels, shapes, strict=True))
    return Equation(tuple(operands), result, sizes)


def _ellipsis(count: int) -> Labels:
    return tuple(f".{i}" for i in range(count, 0, -1))


def _dots(labels: Labels) -> int:
    return sum(1 for label in labels if label.startswith("."))


def _labels(term: str, ndim: int, text: str) -> Labels:
    before, dots, after = term.partition("...")
    rest = ndim - len(before) - len(after)
    if rest < 0 or (rest and not dots):
        raise ShapeError(f"the term {term!r} of {text!r} does not fit {ndim} dimensions")
    return (*before, *_ellipsis(rest), *after)


def _sizes(labels: Sequence[Labels], shapes: Sequence[Shape]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for names, shape in zip(labels, shapes, strict=True):
        for name, size in zip(names, shape, strict=True):
            other = sizes.get(name, 1)
            if size != other and 1 not in (size, other):
                raise ShapeError(f"label {name!r} is {other} and {size} elements long")
            sizes[name] = size if other == 1 else other
    return sizes


def _explicit(term: str, wide: int) -> Labels:
    before, dots, after = term.partition("...")
    return (*before, *(_ellipsis(wide) if dots else ()), *after)


def _implicit(labels: Sequence[Labels], wide: int) -> Labels:
    """Returns the ellipsis, then all labels that occur once, in alphabetical order."""
    counts = Counter(label for names in labels for label in names if not label.startswith("."))
    return (*_ellipsis(wide), *sorted(label for label, n in counts.items() if n == 1))


def _unbroadcast(names: Labels, shape: Shape, sizes: dict[str, int]) -> Labels:
    return tuple("" if size == 1 != sizes[name] else name for name, size in zip(names, shape, strict=True))
