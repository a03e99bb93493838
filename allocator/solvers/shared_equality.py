"""Equality for shared objects (TensorFlow Lite, equality_assignment): only units of one size share one."""

import numpy as np

from allocator.kernels.shared_objects import NEVER
from allocator.problem import Column
from allocator.solvers.shared import InterferenceGraph, SharedObjectsSolver, share_in_order


def _share(graph: InterferenceGraph) -> Column:
    """Gives each unit, as they begin, a free object of its own size."""
    return share_in_order(graph, np.arange(len(graph)), 0, NEVER)


SHARED_EQUALITY = SharedObjectsSolver("shared_equality", _share)
