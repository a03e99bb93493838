"""Sequences and optionals of ONNX: how tensors are grouped, which is known when the model is read.

Nothing of it reaches the graph. An optional that has an element is that element.
"""

from collections.abc import Iterable, Iterator, Sequence

from attrs import frozen

from engine.onnx.model_names import Value
from engine.text.errors import ModelError, UnsupportedError


@frozen(eq=False)
class TensorList:
    """A sequence."""

    items: tuple[Value, ...]


@frozen(eq=False)
class Nothing:
    """An optional without an element."""


@frozen(eq=False)
class Rows:
    """A sequence whose tensors are the rows of one tensor: the run decides how many there are.

    `reason` is the error for what must know it before.
    """

    tensor: Value
    reason: UnsupportedError


NOTHING = Nothing()
Held = Value | TensorList | Rows | Nothing
"""What a name of a model stands for."""
Layout = int | str
"""The form of a value: TENSOR, EMPTY, or the number of tensors in a sequence."""
TENSOR, EMPTY = "tensor", "nothing"


def is_tensor(value: Held | None) -> bool:
    """Returns whether a value is one tensor."""
    return value is not None and not isinstance(value, (TensorList, Rows, Nothing))


def tensor_in(value: Held, what: str) -> Value:
    """Returns a value that must be a tensor; `what` names it. Raises ModelError."""
    if isinstance(value, TensorList):
        raise ModelError(f"{what} is a sequence of {len(value.items)} tensors, where one tensor is wanted")
    if isinstance(value, Rows):
        raise ModelError(f"{what} is a sequence, where one tensor is wanted")
    if isinstance(value, Nothing):
        raise ModelError(f"{what} is an optional without an element, where a tensor is wanted")
    return value


def items_of(value: Held | None, what: str) -> tuple[Value, ...]:
    """Returns the tensors of a value that must be a sequence; `what` names it. Raises ModelError, UnsupportedError."""
    if isinstance(value, Rows):
        raise value.reason
    if not isinstance(value, TensorList):
        raise ModelError(f"{what} is no sequence, where one is wanted")
    return value.items


def layout_of(value: Held) -> Layout:
    """Returns the form of a value. Raises UnsupportedError where the run decides it."""
    if isinstance(value, Rows):
        raise value.reason
    if isinstance(value, TensorList):
        return len(value.items)
    return EMPTY if isinstance(value, Nothing) else TENSOR


def tensors_in(values: Iterable[Held | None]) -> Iterator[Value]:
    """Yields the tensors of values, in their order; those that are left out have none."""
    for value in values:
        if isinstance(value, TensorList):
            yield from value.items
        elif isinstance(value, Rows):
            yield value.tensor
        elif value is not None and not isinstance(value, Nothing):
            yield value


def grouped(layouts: Sequence[Layout], tensors: Iterable[Value]) -> tuple[Held, ...]:
    """Returns values of these forms, from their tensors."""
    rest = iter(tensors)

    def one(layout: Layout) -> Held:
        if isinstance(layout, int):
            return TensorList(tuple(next(rest) for _ in range(layout)))
        return NOTHING if layout == EMPTY else next(rest)

    return tuple(one(layout) for layout in layouts)


def element_names(name: str, layout: Layout) -> tuple[str, ...]:
    """Returns the names of the tensors of a value: `x`, or `x[0]`, `x[1]` and so on for those of a sequence."""
    if isinstance(layout, int):
        return tuple(f"{name}[{i}]" if name else "" for i in range(layout))
    return (name,) if layout == TENSOR else ()
