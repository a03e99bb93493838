"""Permutations of axes, as the rules for transposes use them: `perm[i]` is the input axis that output axis i shows."""

import numpy as np

from engine.graph.operator import Operator
from ops.tensor.spec import normalize_axes

Perm = tuple[int, ...]


def permutation(transpose: Operator) -> Perm:
    """Returns the permutation of a transpose; all its axes are counted from the front."""
    ndim = transpose.inputs[0].ndim
    perm = transpose.attrs["perm"]
    return tuple(reversed(range(ndim))) if perm is None else normalize_axes(perm, ndim)


def composed(first: Perm, second: Perm) -> Perm:
    """Returns the permutation that is the first one followed by the second."""
    return tuple(first[axis] for axis in second)


def inverse(perm: Perm) -> Perm:
    """Returns the permutation that undoes this one."""
    return tuple(int(axis) for axis in np.argsort(perm))


def is_identity(perm: Perm) -> bool:
    """Returns whether every axis stays where it is."""
    return perm == tuple(range(len(perm)))
