"""One number, or one for each spatial dimension: how functions on vars take windows."""

from collections.abc import Sequence

Sizes = int | Sequence[int]
"""One number for all spatial dimensions, or one for each."""


def each(value: Sizes, count: int) -> tuple[int, ...]:
    """One number for each of `count` dimensions."""
    return (value,) * count if isinstance(value, int) else tuple(value)


def both_pads(value: Sizes, count: int) -> tuple[int, ...]:
    """All begins, then all ends; begins alone count for ends too."""
    pads = each(value, count)
    return pads if len(pads) == 2 * count else pads + pads
