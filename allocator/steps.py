"""One operator as memory sees it. Values are ids; what they hold does not matter here.

A program is a sequence of steps; the tick of a step is its position. The first step writes what the caller feeds, the
last one reads what the caller fetches, so inputs and outputs need no rule of their own.
"""

from collections.abc import Iterable

from attrs import evolve, field, frozen


@frozen
class ViewForward:
    """READ_ONLY forward: `out` lies inside the bytes of `src`, `offset` bytes behind the first byte of `src`."""

    out: int
    src: int
    offset: int = 0


@frozen
class OverwriteForward:
    """OVERWRITE forward that the operator allows: `out` may take bytes of `src` from `offset` on.

    One that is `required` is taken in any case: `out` is the next value of what lies in `src`.
    """

    out: int
    src: int
    offset: int = 0
    required: bool = False


@frozen
class Step:
    """`reads` and `writes` are value ids. A view's `out` is no write. A workspace is a write without a reader."""

    reads: tuple[int, ...] = ()
    writes: tuple[int, ...] = ()
    views: tuple[ViewForward, ...] = ()
    overwrites: tuple[OverwriteForward, ...] = ()


def _as_tuple(sizes: Iterable[int]) -> tuple[int, ...]:
    return tuple(sizes)


@frozen
class Program:
    """All steps in order, and the size in bytes of each value (by id): the extent that it touches."""

    steps: tuple[Step, ...]
    sizes: tuple[int, ...] = field(converter=_as_tuple)


def only_required(program: Program) -> Program:
    """Returns the same without the overwrites that need not be taken."""
    steps = tuple(evolve(s, overwrites=tuple(o for o in s.overwrites if o.required)) for s in program.steps)
    return evolve(program, steps=steps)
