"""Layers: the paths that names of operators such as `layer1.0/relu` begin with."""

import re
from collections.abc import Iterator, Sequence

_DEEPEST = 16
"""Levels of a name that are looked at."""
_MOST = 64
"""Layers that are told apart: paths are cut at the deepest level that has no more."""
_PART = re.compile("[^/]+")


def depth_of(names: Sequence[str]) -> int:
    """Returns the level at which names are cut: at least two layers, and two operators for each; 0 for none.

    There are none where most names are no paths.
    """
    paths = [layers_around(name) for name in names]
    if 2 * sum(map(bool, paths)) < len(paths):
        return 0
    best = 0
    for depth in range(1, min(_DEEPEST, max(map(len, paths), default=0)) + 1):
        count = len({_cut(path, depth) for path in paths})
        if count > _MOST:
            break
        best = depth if 2 <= count <= len(names) // 2 else best
    return best


def layer_of(name: str, depth: int) -> str:
    """Returns the layer of an operator, cut at a level; "" for a name that is no path."""
    return _cut(layers_around(name), depth)


def layers_around(name: str) -> list[str]:
    """Returns the layers that an operator of that name is in, the outermost first: all but its own part of the name."""
    return list(_prefixes(name))[:-1]


def _cut(path: Sequence[str], depth: int) -> str:
    return path[:depth][-1] if path else ""


def _prefixes(name: str) -> Iterator[str]:
    """Yields what a name begins with, level by level, up to the whole name or `_DEEPEST` levels.

    Levels end with a slash or a dot. A part that begins with the part before and a dot repeats it, as in
    `/layer1/layer1.0/conv1/Conv`, whose levels are `layer1`, `layer1/layer1.0` and so on.
    """
    first, before, levels = len(name) - len(name.lstrip("/")), "", 0
    for part in _PART.finditer(name):
        if levels == _DEEPEST:
            return
        at = part.start() + (len(before) + 1 if before and part[0].startswith(f"{before}.") else 0)
        before = part[0]
        while at <= part.end() and levels < _DEEPEST:
            dot = name.find(".", at + 1, part.end())
            at = part.end() if dot < 0 else dot
            levels += 1
            yield name[first:at]
            at += 1
