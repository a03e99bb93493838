"""What recurrent operators share before any data is there: operands, some of which may be left out, and shapes."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from attrs import frozen

from ops.common.indices import INDEX_DTYPES
from ops.recurrent.activations import Activation, activations
from ops.schema.attributes import Attribute, flag, integer, number, numbers, one_of, optional
from ops.schema.schema import Attrs, Signature, Specs
from ops.tensor.errors import ArityError, AttributeValueError, DtypeError, ShapeError
from ops.tensor.spec import FLOATS, Shape, TensorSpec, compute_dtype

OPTIONAL = ("bias", "lengths", "initial_h", "initial_c", "peepholes")
"""Operands behind x, w and r, in this order; the attribute `given` names those that are there."""


def _given(value: Iterable[Any]) -> tuple[str, ...]:
    names = tuple(value)
    if names != tuple(n for n in OPTIONAL if n in names):
        raise ValueError(f"some of {', '.join(OPTIONAL)} are wanted, in this order")
    return names


def _words(value: Iterable[Any]) -> tuple[str, ...]:
    return tuple(str(v) for v in value)


def _positive(value: Any) -> float:
    bound = number(value)
    if not bound > 0:
        raise ValueError("a number above 0 is wanted")
    return bound


def _layout(value: Any) -> int:
    layout = integer(value)
    if layout not in (0, 1):
        raise ValueError("0 (time first) or 1 (batch first) is wanted")
    return layout


ATTRIBUTES = (
    Attribute("given", _given, ()),
    Attribute("direction", one_of("forward", "reverse", "bidirectional"), "forward"),
    Attribute("layout", _layout, 0),
    Attribute("clip", optional(_positive), None),
    Attribute("activations", _words, ()),
    Attribute("activation_alpha", numbers, ()),
    Attribute("activation_beta", numbers, ()),
    Attribute("with_y", flag, True),
)


@frozen(eq=False)
class Family:
    """A kind of cell: gates in its weights, its default activations, operands, and the states that it carries."""

    gates: int
    activations: tuple[str, ...]
    operands: frozenset[str]
    states: int


@frozen(eq=False)
class Case:
    """A recurrent operator in numbers."""

    time: int
    batch: int
    inputs: int
    hidden: int
    directions: int
    gates: int
    dtype: np.dtype[Any]
    layout: int
    activations: tuple[Activation, ...]
    """Those of the first direction, then those of the second."""

    @property
    def compute(self) -> np.dtype[Any]:
        """Returns the dtype of computation."""
        return compute_dtype(self.dtype)

    @property
    def width(self) -> int:
        """Returns the number of elements of all gates of one sequence."""
        return self.gates * self.hidden

    @property
    def sequences(self) -> Shape:
        """Returns the shape of y."""
        if self.layout:
            return self.batch, self.time, self.directions, self.hidden
        return self.time, self.directions, self.batch, self.hidden

    @property
    def state(self) -> Shape:
        """Returns the shape of the first or the last state."""
        outer = (self.batch, self.directions) if self.layout else (self.directions, self.batch)
        return *outer, self.hidden

    def of_direction(self, direction: int) -> tuple[Activation, ...]:
        """Returns the activations of one direction."""
        each = len(self.activations) // self.directions
        return self.activations[direction * each : (direction + 1) * each]


def case_of(family: Family, inputs: Specs, attrs: Attrs) -> Case:
    """Raises ShapeError, DtypeError, ArityError or AttributeValueError where operands and attributes do not fit."""
    x, w, r = inputs[:3]
    if x.dtype not in FLOATS:
        raise DtypeError(f"takes floating-point numbers, not {x.dtype}")
    if x.ndim != 3 or w.ndim != 3 or r.ndim != 3:
        raise ShapeError(f"x, w and r must have three dimensions each, not {x.shape}, {w.shape} and {r.shape}")
    directions = 2 if attrs["direction"] == "bidirectional" else 1
    names = attrs["activations"] or family.activations * directions
    if len(names) != len(family.activations) * directions:
        raise AttributeValueError(f"{len(names)} activations where {len(family.activations) * directions} are wanted")
    time, batch, layout = x.shape[attrs["layout"]], x.shape[1 - attrs["layout"]], attrs["layout"]
    chosen = activations(names, attrs["activation_alpha"], attrs["activation_beta"])
    case = Case(time, batch, x.shape[2], r.shape[2], directions, family.gates, x.dtype, layout, chosen)
    _check(family, case, inputs, attrs["given"])
    return case


def _check(family: Family, case: Case, inputs: Specs, names: tuple[str, ...]) -> None:
    surplus = sorted(set(names) - family.operands)
    if surplus or len(inputs) != 3 + len(names):
        raise ArityError(f"{len(inputs) - 3} operands behind x, w and r, named {', '.join(names) or 'nothing'}")
    wanted = {
        "w": (case.directions, case.width, case.inputs),
        "r": (case.directions, case.width, case.hidden),
        "bias": (case.directions, 2 * case.width),
        "lengths": (case.batch,),
        "initial_h": case.state,
        "initial_c": case.state,
        "peepholes": (case.directions, 3 * case.hidden),
    }
    for name, spec in zip(("w", "r", *names), inputs[1:], strict=True):
        if spec.shape != wanted[name]:
            raise ShapeError(f"{name} has shape {spec.shape}, not {wanted[name]}")
        if spec.dtype not in (INDEX_DTYPES if name == "lengths" else (case.dtype,)):
            raise DtypeError(f"{name} is {spec.dtype} where x is {case.dtype}")


def inference(family: Family) -> Callable[[Specs, Attrs], Specs]:
    """Returns an inference: y (where it is wanted), then the last state of each kind."""

    def infer(inputs: Specs, attrs: Attrs) -> Specs:
        case = case_of(family, inputs, attrs)
        y, state = (TensorSpec(s, case.dtype) for s in (case.sequences, case.state))
        states = (state,) * family.states
        return (y, *states) if attrs["with_y"] else states

    return infer


def case_for(family: Family, signature: Signature) -> Case:
    """Returns the case of a signature that was inferred."""
    return case_of(family, signature.inputs, signature.attrs)
