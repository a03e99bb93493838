"""Greedy by size for shared objects (Pisarchyk and Lee 2020)."""

import numpy as np

from allocator.kernels.shared_objects import FAR, NEVER
from allocator.problem import Column
from allocator.solvers.shared import InterferenceGraph, SharedObjectsSolver, share_in_order


def _share(graph: InterferenceGraph) -> Column:
    """Gives the largest units first (ties: first to begin) the smallest object that is free while they live."""
    return share_in_order(graph, np.argsort(-graph.units.size, kind="stable"), FAR, NEVER)


SHARED_BY_SIZE = SharedObjectsSolver("shared_by_size", _share)
