"""Loops over several arrays of one shape, as few and as long as their strides allow."""

from collections.abc import Sequence

from attrs import frozen

from ops.tensor.spec import Shape


@frozen
class Loops:
    """Lengths, two or more, the outermost first; and of each array the bytes from one turn of each loop to the next."""

    shape: Shape
    strides: tuple[tuple[int, ...], ...]


def collapse(shape: Shape, strides: Sequence[tuple[int, ...]]) -> Loops:
    """Returns loops over arrays with these strides, in the order in which the last array lies; nothing in it is empty.

    Neighbouring loops are joined where each array steps over exactly the inner one.
    """
    axes = [i for i, n in enumerate(shape) if n != 1]
    axes.sort(key=lambda i: -abs(strides[-1][i]))
    lengths, steps = list[int](), list[tuple[int, ...]]()
    for axis in axes:
        step = tuple(s[axis] for s in strides)
        if steps and all(outer == inner * shape[axis] for outer, inner in zip(steps[-1], step, strict=True)):
            lengths[-1], steps[-1] = lengths[-1] * shape[axis], step
        else:
            lengths.append(shape[axis])
            steps.append(step)
    none = (0,) * len(strides)
    short = max(0, 2 - len(lengths))
    lengths, steps = [1] * short + lengths, [none] * short + steps
    return Loops(tuple(lengths), tuple(zip(*steps, strict=True)))
