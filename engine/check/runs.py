"""The runs of bytes that a layout touches; nothing that plans uses this."""

from itertools import pairwise, product

from ops.tensor.layout import Layout

Run = tuple[int, int]
"""Half-open."""
MOST_RUNS = 4096
"""Of one layout, beyond which its extent stands for it."""


def runs_of(layout: Layout) -> tuple[Run, ...]:
    """Returns the longest runs of bytes, in order; the whole extent where they are too many or overlap."""
    low, high = layout.extent
    if layout.is_dense or low == high:
        return ((low, high),) if low < high else ()
    steps = sorted((abs(s), n) for n, s in zip(layout.shape, layout.strides, strict=True) if n > 1 and s)
    length = layout.itemsize
    while steps and steps[0][0] == length:
        length *= steps.pop(0)[1]
    count = 1
    for _, n in steps:
        count *= n
    if count > MOST_RUNS:
        return ((low, high),)
    starts = sorted(low + sum(at) for at in product(*(range(0, s * n, s) for s, n in steps)))
    apart = all(b - a >= length for a, b in pairwise(starts))
    return tuple((a, a + length) for a in starts) if apart else ((low, high),)
