"""Choices of cascades, and what work takes beside operations: calls, and bytes that are read or copied once more."""

from collections.abc import Sequence

from attrs import frozen

from engine.graph.operator import Operator
from engine.graph.var import Var
from engine.planning.placed import Cascade

COUNTS = (2, 3, 4, 6, 8, 10, 14, 20, 28, 40, 56)
"""Numbers of stripes that are tried. Between neighbours the bytes of a stripe differ by a third."""
CALL = 30_000
"""The operations that take as long as a call more. A call alone takes about as long as 8,000 (0.1 us;
tools/bench_cascade_costs.py). But on few rows kernels are less busy: in MobileNetV2 a call more takes as long as 50,000
in codes, and nothing in float32, whose images stay in caches (tools/bench_cascades.py). With 30,000, both keep to the
percentage that was asked for: at 15 % they take 13 and 1 % longer."""
BYTE = 3
"""The operations that take as long as copying a byte: 1.5 of float32, 2.8 of codes (tools/bench_cascade_costs.py). As
much is counted for a byte of weights that is read once more, which takes less where kernels compute meanwhile."""


def stripe_counts(image: Var) -> tuple[int, ...]:
    """Returns the numbers of stripes of one image that are tried: of a batch, images may be whole."""
    return COUNTS if image.shape[0] == 1 else (1, *COUNTS)


@frozen(eq=False)
class Choice:
    """Cascades, the bytes that they leave the arena, and the operations that they add to a run. Both are estimates.

    `cost` is what they add to the time of a run, in operations: calls take time, too.
    """

    nbytes: int
    cost: float
    extra: float
    cascades: tuple[Cascade, ...] = ()


def weights(operator: Operator) -> int:
    """Returns the bytes of the constants that an operator reads."""
    signature = operator.signature
    return sum(signature.inputs[position].nbytes for position in signature.constants)


def overwritable(operator: Operator) -> tuple[Var, ...]:
    """Returns the inputs that an operator may write its output over."""
    return tuple(operator.inputs[forward.input] for forward in operator.schema.forwards(operator.signature))


def fully_overwritable(operator: Operator) -> tuple[Var, ...]:
    """Returns the inputs that an operator may write its output over, of those that have as many bytes."""
    return tuple(v for v in overwritable(operator) if v.spec.nbytes == operator.outputs[0].spec.nbytes)


def pareto(choices: Sequence[Choice]) -> list[Choice]:
    """Returns the choices of which none has fewer bytes at no more cost than another, the fewest bytes first."""
    kept: list[Choice] = []
    for choice in sorted(choices, key=lambda c: (c.nbytes, c.cost)):
        if not kept or choice.cost < kept[-1].cost:
            kept.append(choice)
    return kept
