"""Small thunks that kernels of several operators are made of."""

from collections.abc import Callable, Iterable
from functools import partial

import numpy as np

from ops.native.call import Native, joined
from ops.schema.schema import Thunk
from ops.tensor.layout import Layout
from ops.tensor.spec import Array

_MANY = 10_000


def nothing() -> None:
    """Does nothing, for calls whose output already holds what it should."""


def in_turn(*thunks: Thunk) -> Thunk:
    """Returns a thunk that runs `thunks` one after the other.

    Where all of them are compiled, it is one call without Python in between.
    """
    if len(thunks) < 2:
        return thunks[0] if thunks else nothing
    native = [t for t in thunks if isinstance(t, Native)]
    if native and len(native) == len(thunks):
        return joined(native)

    def run() -> None:
        for thunk in thunks:
            thunk()

    return run


def made_anew(make: Callable[[], Iterable[Thunk]], count: int) -> Iterable[Thunk]:
    """Returns the steps of `make`, about `count`; very many are one step that makes them in each run.

    So they take no memory between runs: each would take some hundred bytes, more than the elements that it moves.
    """
    return make() if count <= _MANY else (partial(_run, make),)


def _run(make: Callable[[], Iterable[Thunk]]) -> None:
    for thunk in make():
        thunk()


def copier(source: Array, y: Array) -> Thunk:
    """Returns a thunk that copies `source` (any strides) into the dense `y` of its shape.

    It does nothing where both are the very same bytes.
    """
    if Layout.of(source).is_dense and source.ctypes.data == y.ctypes.data:
        return nothing
    return partial(np.copyto, y, source)
