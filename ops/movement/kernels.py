"""Kernels of operators that only copy elements: an operator lists its copies, a kernel runs them."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from ops.common.costs import copy_cost
from ops.common.thunks import copier, in_turn
from ops.movement.copies import Move, move_all
from ops.schema.attributes import Attribute
from ops.schema.backends import NUMBA
from ops.schema.schema import (
    Attrs,
    Binding,
    GradientRule,
    Kernel,
    OpSchema,
    Overwrite,
    Rows,
    Signature,
    Specs,
    Thunk,
    dense_only,
    no_rows,
)
from ops.tensor.layout import Layout

Views = Callable[[Layout, Signature], tuple[Layout | None, ...]]
Moves = Callable[[Binding], Iterable[Move]]
"""Returns the moves of a call: arrays to read, and where to write them; each element of an output is written once."""


def _bind(moves: Moves, call: Binding) -> Thunk:
    return move_all(m for m in moves(call) if not _in_place(*m))


def _in_place(source: Any, target: Any) -> bool:
    """Returns whether both are the very same bytes."""
    return source.ctypes.data == target.ctypes.data and Layout.of(source) == Layout.of(target)


def _bind_numpy(moves: Moves, call: Binding) -> Thunk:
    return in_turn(*(copier(source, target) for source, target in moves(call)))


def _overwrites_in_place(views: Views) -> Callable[[Signature], tuple[Overwrite, ...]]:
    """Returns a function that permits each output whose view of a dense input is dense to take those very bytes.

    No copy is needed then.
    """

    def overwrites(signature: Signature) -> tuple[Overwrite, ...]:
        layouts = views(Layout.dense(signature.x), signature)
        return tuple(
            Overwrite(output, 0, layout.offset)
            for output, layout in enumerate(layouts)
            if layout is not None and layout.is_dense and 0 not in layout.shape
        )

    return overwrites


def view_operator(
    name: str,
    summary: str,
    *,
    infer: Callable[[Specs, Attrs], Specs],
    views: Views,
    moves: Moves,
    gradient: GradientRule,
    attributes: tuple[Attribute, ...] = (),
    writes: Callable[[Layout], bool] = dense_only,
    rows: Rows = no_rows,
) -> OpSchema:
    """Returns an operator whose outputs are views of its input; where they cannot be, it copies, in place if it can."""
    return OpSchema(
        name,
        infer,
        movement(moves, writes=writes),
        attributes=attributes,
        views=views,
        overwrites=_overwrites_in_place(views),
        cost=copy_cost,
        summary=summary,
        gradient=gradient,
        bit_copies=True,
        rows=rows,
    )


def movement(moves: Moves, name: str = "numpy", **options: Any) -> tuple[Kernel, Kernel]:
    """Returns the compiled kernel and the one in numpy, which has the name; both take the options of `Kernel`."""
    return (
        Kernel(f"{name} compiled", partial(_bind, moves), backend=NUMBA, **options),
        Kernel(name, partial(_bind_numpy, moves), **options),
    )
