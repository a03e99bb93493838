"""Sum by sum of intervals: how many of the largest units are ever alive at once.

`tallest` and `own` are a tree over ticks (node k stands above nodes 2 k and 2 k + 1, the leaves are the second half):
`own` counts units that live all the time below a node and not all the time below its parent, `tallest` is the largest
number of units alive in one of its ticks, those counted further up left out.
"""

from allocator.kernels.numbers import Numbers, kernel


def raise_ticks(tallest: Numbers, own: Numbers, begin: int, end: int) -> None:
    """Counts one unit more in the ticks [begin, end)."""
    half = len(tallest) // 2
    low, high = half + begin, half + end
    while low < high:
        if low % 2:
            tallest[low] += 1
            own[low] += 1
            low += 1
        if high % 2:
            high -= 1
            tallest[high] += 1
            own[high] += 1
        low, high = low // 2, high // 2
    for edge in (half + begin, half + end - 1):
        node = edge // 2
        while node:
            tallest[node] = max(tallest[2 * node], tallest[2 * node + 1]) + own[node]
            node //= 2


@kernel
def find_maximums(
    begin: Numbers, end: Numbers, size: Numbers, tallest: Numbers, own: Numbers, maximums: Numbers
) -> int:
    """Fills `found` with the positional maximums of units that come largest first. Returns their number. O(n log n).

    The k-th of them is the largest size of which k units, that large or larger, are alive at once.
    """
    count = 0
    for unit in range(len(begin)):
        raise_ticks(tallest, own, begin[unit], end[unit])
        if tallest[1] > count:
            maximums[count] = size[unit]
            count += 1
    return count
