"""Instances for solvers, drawn by a seed: kinds that differ in what makes them hard.

Each kind takes a number of buffers from 20 on, and a source of chance. Sizes are bytes, lifetimes half-open ticks.
"""

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from allocator.problem import FREE, Column, Problem

Generator = Callable[[int, np.random.Generator], Problem]
ALIVE, LARGEST = 100, 4096
HEIGHT = 2**20
"""Bytes of the rectangle that `cut_rectangles` cuts: the smallest arena of what it returns. `compiler_lives` needs no
more."""
_CELL, _MOST_CELLS = 512, 256
"""Sizes of `compiler_lives` are multiples of a cell: up to so many cells."""
_BURST, _FULL, _LONG = 0.6, 0.7, 0.3
"""Chances in `compiler_lives`: that buffers begin in a tick, that they take all free bytes, that one lives long."""
_ALIGNMENTS = (1, 16, 64, 256, 4096)
_PAGE = 4096


def draw(kind: str, buffers: int, seed: int) -> Problem:
    """Draws an instance of that kind; the same arguments give the same one."""
    return GENERATORS[kind](buffers, np.random.default_rng(seed))


def random_lifetimes(buffers: int, rng: np.random.Generator) -> Problem:
    """Draws sizes and lifetimes alike: a buffer begins in each tick and lives for 1 to 2 * ALIVE - 1 ticks."""
    begin = np.arange(buffers)
    end = begin + rng.integers(1, 2 * ALIVE, buffers)
    return _problem(begin, end, rng.integers(1, LARGEST + 1, buffers))


def equal_sizes(buffers: int, rng: np.random.Generator) -> Problem:
    """Draws lifetimes of buffers that all have the same size: colouring an interval graph."""
    begin, end = _lifetimes(buffers, rng)
    return _problem(begin, end, np.full(buffers, rng.integers(1, LARGEST + 1)))


def log_uniform(buffers: int, rng: np.random.Generator) -> Problem:
    """Draws sizes of each magnitude from 16 bytes to 1 MiB alike."""
    begin, end = _lifetimes(buffers, rng)
    return _problem(begin, end, _log_uniform(rng, 16, 2**20, buffers))


def power_law_lifetimes(buffers: int, rng: np.random.Generator) -> Problem:
    """Draws lifetimes of which most are short and a few reach over everything."""
    begin = rng.permutation(buffers)
    length = np.minimum(1 + rng.pareto(0.7, buffers), buffers).astype(np.int64)
    return _problem(begin, begin + length, rng.integers(1, LARGEST + 1, buffers))


def nested_u(buffers: int, rng: np.random.Generator) -> Problem:
    """Draws a U-Net: outputs of one arm wait for the other arm, and those between live for two or three ticks."""
    levels = buffers // 4
    depth = np.arange(levels)
    waiting = _problem(depth * 2, 4 * levels - 2 * depth, _halved(depth, levels, rng))
    tick = np.arange(buffers - levels) * 4 * levels // (buffers - levels)
    near = np.minimum(tick // 2, 2 * levels - 1 - tick // 2).clip(0)
    passing = _problem(tick, tick + rng.integers(2, 4, len(tick)), _halved(near, levels, rng))
    return _joined(waiting, passing)


def giants(buffers: int, rng: np.random.Generator) -> Problem:
    """Draws a few buffers that are hundreds of times as large as the others and live longer."""
    begin, end = _lifetimes(buffers, rng)
    size = rng.integers(1, LARGEST + 1, buffers)
    few = rng.choice(buffers, max(2, buffers // 25), replace=False)
    size[few] *= rng.integers(100, 1_000, len(few))
    end[few] += rng.integers(0, 2 + buffers // 10, len(few))
    return _problem(begin, end, size)


def kv_caches(buffers: int, rng: np.random.Generator) -> Problem:
    """Draws requests that keep pages of keys and values until they end, and what each step needs for a moment."""
    kept = buffers // 3
    begin = np.sort(rng.integers(0, buffers, kept))
    caches = _problem(begin, begin + rng.geometric(16 / (buffers + 16), kept), _PAGE * rng.integers(1, 33, kept))
    tick = np.sort(rng.integers(0, buffers, buffers - kept))
    moments = _problem(tick, tick + rng.integers(1, 4, len(tick)), _log_uniform(rng, 64, 2**18, len(tick)))
    return _joined(caches, moments)


def training_mirror(buffers: int, rng: np.random.Generator) -> Problem:
    """Draws a step of training: activations wait for their backward operator, gradients pass, those of weights stay."""
    layers = buffers // 3
    layer = np.arange(layers)
    back = 2 * layers - 1 - layer
    size = _log_uniform(rng, 256, 2**18, layers)
    activations = _problem(layer, back + 1, size)
    gradients = _problem(back - 1, back + 1, size)
    weights = _problem(back, np.full(layers, 2 * layers), _log_uniform(rng, 64, 2**16, layers))
    rest = buffers - 3 * layers
    tick = rng.integers(0, 2 * layers, rest)
    workspaces = _problem(tick, tick + 1, _log_uniform(rng, 256, 2**18, rest))
    return _joined(_joined(activations, gradients), _joined(weights, workspaces))


def mixed_alignment(buffers: int, rng: np.random.Generator) -> Problem:
    """Draws buffers of which each has its own alignment, from 1 byte to a page."""
    begin, end = _lifetimes(buffers, rng)
    size = _log_uniform(rng, 16, 2**16, buffers)
    return Problem(begin, end, size, rng.choice(_ALIGNMENTS, buffers), np.full(buffers, FREE))


def cut_rectangles(buffers: int, rng: np.random.Generator) -> Problem:
    """Cuts a rectangle of ticks and HEIGHT bytes until there are so many pieces: they fill it, so it is the optimum."""
    pieces = [(-float(buffers) * HEIGHT, 0, 0, buffers, 0, HEIGHT)]
    for number in range(1, buffers):
        _, _, begin, end, low, high = heapq.heappop(pieces)
        share, is_upright = rng.uniform(0.2, 0.8), bool(rng.integers(2)) and end - begin > 1
        tick = min(max(begin + round(share * (end - begin)), begin + 1), end - 1)
        byte = min(max(low + round(share * (high - low)), low + 1), high - 1)
        halves = ((begin, end, low, byte), (begin, end, byte, high))
        if is_upright:
            halves = ((begin, tick, low, high), (tick, end, low, high))
        for k, (b, e, bottom, top) in enumerate(halves):
            area = -float(e - b) * (top - bottom) * rng.uniform(0.5, 1)
            heapq.heappush(pieces, (area, 2 * number + k, b, e, bottom, top))
    taken = np.array([piece[2:] for piece in pieces])[rng.permutation(buffers)]
    return _problem(taken[:, 0], taken[:, 1], taken[:, 3] - taken[:, 2])


def compiler_lives(buffers: int, rng: np.random.Generator) -> Problem:
    """Draws what a compiler of networks plans: long lives beside bursts of short ones, in HEIGHT bytes that are enough.

    See `compiler_lives_placed`.
    """
    return compiler_lives_placed(buffers, rng)[0]


def compiler_lives_placed(buffers: int, rng: np.random.Generator) -> tuple[Problem, Column]:
    """Draws `compiler_lives` with offsets that prove that they fit in HEIGHT bytes.

    Buffers come in bursts, into the ranges that are free then: mostly into a part of them, in some ticks into all of
    them, so that not a byte is left. Most live for a few ticks, some for an eighth of all ticks and more.
    """
    longest = max(buffers // 4, 8)
    alive, rows, tick = list[tuple[int, int, int]](), list[tuple[int, int, int, int]](), 0
    while len(rows) < buffers:
        alive = [one for one in alive if one[0] > tick]
        if not rows or rng.random() < _BURST:
            share = 1.0 if rng.random() < _FULL else rng.uniform(0.2, 0.9)
            for low, high in _pieces(sorted((a, b) for _, a, b in alive), share, rng):
                life = rng.integers(longest // 2, longest + 1) if rng.random() < _LONG else rng.geometric(0.2)
                rows.append((tick, tick + int(life), low, high))
                alive.append((tick + int(life), low, high))
        tick += 1
    begin, end, low, high = np.array(rows)[rng.permutation(buffers)].T
    return _problem(begin, end, high - low), low


def _pieces(used: Sequence[tuple[int, int]], share: float, rng: np.random.Generator) -> Iterator[tuple[int, int]]:
    """Yields ranges of bytes from those that nobody uses, each of them with this chance."""
    low = 0
    for first, behind in (*used, (HEIGHT, HEIGHT)):
        while low < first:
            high = min(low + _CELL * int(_log_uniform(rng, 1, _MOST_CELLS, 1)[0]), first)
            if rng.random() < share:
                yield low, high
            low = high
        low = behind


def _problem(begin: Column, end: Column, size: Column) -> Problem:
    return Problem(begin, end, size, np.ones(len(size)), np.full(len(size), FREE))


def _joined(one: Problem, other: Problem) -> Problem:
    begin, end, size = (np.append(getattr(one, c), getattr(other, c)) for c in ("begin", "end", "size"))
    return _problem(begin, end, size)


def _lifetimes(buffers: int, rng: np.random.Generator) -> tuple[Column, Column]:
    """Draws lifetimes of which 5 to 20 meet, or more where there are many."""
    begin = rng.integers(0, buffers, buffers)
    return begin, begin + rng.integers(1, 10 + min(buffers // 5, 2 * ALIVE), buffers)


def _log_uniform(rng: np.random.Generator, low: int, high: int, count: int) -> Column:
    return np.exp(rng.uniform(np.log(low), np.log(high), count)).astype(np.int64)


def _halved(depth: Column, levels: int, rng: np.random.Generator) -> Column:
    """Returns sizes that are halved five times on the way down."""
    return (2**20 >> depth * 5 // levels) * rng.integers(3, 6, len(depth))


RANDOM = "random"
KINDS: Mapping[str, Generator] = MappingProxyType(
    {
        g.__name__: g
        for g in (
            *(equal_sizes, log_uniform, power_law_lifetimes, nested_u, giants, kv_caches),
            *(training_mirror, mixed_alignment, cut_rectangles),
        )
    }
)
COMPILER_LIVES = compiler_lives.__name__
GENERATORS: Mapping[str, Generator] = MappingProxyType(
    {RANDOM: random_lifetimes, COMPILER_LIVES: compiler_lives, **KINDS}
)
