"""Random problems like those of MegEngine's own tests."""

import numpy as np

from allocator.problem import FREE, Problem


def megengine_problem(seed: int, count: int, alignment: int = 1, padding: int = 0) -> Problem:
    """Returns a problem like those of MegEngine's tests: sizes up to 4,096 bytes, `count` ticks, a fifth overwrites."""
    draw = np.random.default_rng(seed)
    begin, end, size = np.zeros((3, count), np.int64)
    pairs: list[tuple[int, int, int]] = []
    for chunk in range(count):
        begin[chunk], size[chunk] = draw.integers(count), draw.integers(1, 4096)
        dest = int(draw.integers(max(chunk, 1)))
        taken = dest in {d for _, d, _ in pairs}
        if draw.random() < 0.2 and dest < chunk and end[dest] - begin[dest] > 1 and size[dest] > 1 and not taken:
            at = int(draw.integers(size[dest]))
            begin[chunk], size[chunk] = end[dest] - 1, draw.integers(1, size[dest] - at + 1)
            pairs.append((chunk, dest, at))
        end[chunk] = begin[chunk] + draw.integers(1, max(count, 2))
    columns = np.array(pairs, np.int64).reshape(-1, 3).T
    alignments = np.full(count, alignment)
    alignments[columns[0]] = 1
    return Problem(begin, end, size + padding, alignments, np.full(count, FREE), *columns)
