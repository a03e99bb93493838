"""First fit by begin: units come in order of time, each at the lowest place that is free."""

from allocator.kernels.numbers import Numbers, kernel

OFFSET, TOP, ABOVE, BELOW = range(4)
"""Numbers of a unit: where it begins and ends, and the next units that are alive above and below it."""
WIDTH = 4


@kernel
def place_by_begin(
    begin: Numbers, end: Numbers, size: Numbers, alignment: Numbers, leaving: Numbers, units: Numbers
) -> None:
    """Places units, which are given by begin; `leaving` are the same by end.

    Unit k has WIDTH numbers from WIDTH * k on. Those that are alive are a ring by offset. It is closed by one more, of
    no bytes, behind all others in `units`.
    """
    bottom, left = WIDTH * len(begin), 0
    units[bottom + ABOVE] = units[bottom + BELOW] = bottom
    for row in range(len(begin)):
        while end[leaving[left]] <= begin[row]:
            link(units, units[WIDTH * leaving[left] + BELOW], units[WIDTH * leaving[left] + ABOVE])
            left += 1
        offset, above = 0, units[bottom + ABOVE]
        while above != bottom and units[above + OFFSET] < offset + size[row]:
            offset = units[above + TOP]
            if alignment[row] > 1:
                offset = -(-offset // alignment[row]) * alignment[row]
            above = units[above + ABOVE]
        unit = WIDTH * row
        units[unit + OFFSET], units[unit + TOP] = offset, offset + size[row]
        link(units, units[above + BELOW], unit)
        link(units, unit, above)


def link(units: Numbers, below: int, above: int) -> None:
    """Makes one unit the next above another."""
    units[below + ABOVE], units[above + BELOW] = above, below
