"""Distinct numbers of a column."""

import numpy as np

from allocator.problem import Column


def distinct(values: Column) -> Column:
    """Each once, sorted. (numpy.unique of numpy 2.3 and 2.4 hashes integers, which takes a hundred times as long.)"""
    found = np.sort(values)
    return found[np.append(True, found[1:] != found[:-1])] if len(found) else found
