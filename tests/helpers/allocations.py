"""Checks that a run takes no memory of its own."""

import tracemalloc
from collections.abc import Callable

import numpy as np


def check_allocates_nothing(run: Callable[[], object], most_bytes: int = 16 * 1024) -> None:
    """Checks that a function leaves no numpy array, and takes fewer than `most_bytes` while it runs.

    It runs twice: the first run replaces objects from before the measurement, the second one is measured.
    """
    arrays = tracemalloc.DomainFilter(inclusive=True, domain=np.lib.tracemalloc_domain)
    tracemalloc.start()
    try:
        run()
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
        run()
        after, peak = tracemalloc.get_traced_memory()
        left = tracemalloc.take_snapshot().filter_traces([arrays]).traces
    finally:
        tracemalloc.stop()
    assert sum(trace.size for trace in left) == 0
    assert peak - min(before, after) < most_bytes
