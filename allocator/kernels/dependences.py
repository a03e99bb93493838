"""Passes over steps in their order. The steps that step i waits for are near[start[i] : start[i + 1]], all below i."""

from allocator.kernels.numbers import Numbers, kernel


@kernel
def follow(start: Numbers, near: Numbers, weight: Numbers, reach: Numbers, via: Numbers) -> None:
    """Computes the heaviest path that ends in each step: its weight, and the step before; -1 where it begins."""
    for step in range(len(weight)):
        best, source = 0, -1
        for k in range(start[step], start[step + 1]):
            if reach[near[k]] > best:
                best, source = reach[near[k]], near[k]
        reach[step], via[step] = best + weight[step], source


@kernel
def hand_on(start: Numbers, near: Numbers, seen: Numbers) -> None:
    """Computes for each step the greatest `seen` of itself and all steps before it."""
    for step in range(len(seen)):
        for k in range(start[step], start[step + 1]):
            seen[step] = max(seen[step], seen[near[k]])
