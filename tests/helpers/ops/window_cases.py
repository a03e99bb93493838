"""Windows of convolutions and pooling, drawn for tests: their attributes, lengths, and sizes that they fit into."""

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st


def lengths(draw: st.DrawFn, count: int, most: int, least: int = 1) -> tuple[int, ...]:
    """Draws `count` numbers from `least` to `most`."""
    return tuple(draw(st.lists(st.integers(least, most), min_size=count, max_size=count)))


def window_attrs(draw: st.DrawFn, ndim: int, strides: int, dilations: int, pads: int) -> dict[str, Any]:
    """Draws the attributes of windows over `ndim` dimensions, each up to the number that is given for it."""
    return {
        "strides": lengths(draw, ndim, strides),
        "dilations": lengths(draw, ndim, dilations),
        "pads": lengths(draw, 2 * ndim, pads, 0),
    }


def extents(kernel: Sequence[int], dilations: Sequence[int]) -> list[int]:
    """Returns how many elements lie from the first to the last that a window reads, in each dimension."""
    return [d * (k - 1) + 1 for k, d in zip(kernel, dilations, strict=True)]


def least_sizes(kernel: Sequence[int], attrs: dict[str, Any]) -> list[int]:
    """Returns the smallest sizes, at least one, that hold a window together with their padding."""
    ndim, pads = len(kernel), attrs["pads"]
    both = zip(pads[:ndim], pads[ndim:], strict=True)
    return [max(1, n - sum(p)) for n, p in zip(extents(kernel, attrs["dilations"]), both, strict=True)]


def conv_cases() -> st.SearchStrategy[tuple[Any, ...]]:
    """Draws sizes, lengths of windows, strides, pads (begins and ends), dilations, and the number of groups."""

    def of_dimensions(n: int) -> st.SearchStrategy[tuple[Any, ...]]:
        def each(low: int, high: int, count: int = n) -> st.SearchStrategy[tuple[int, ...]]:
            return st.tuples(*[st.integers(low, high)] * count)

        return st.tuples(each(5, 7), each(1, 3), each(1, 3), each(0, 2, 2 * n), each(1, 2), st.integers(1, 2))

    return st.integers(1, 3).flatmap(of_dimensions)
