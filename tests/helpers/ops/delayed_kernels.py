"""Kernels with random pauses around them."""

import random
import time
from functools import partial

from engine.executor.static import StaticExecutor
from ops.schema.schema import Thunk


def delay(executor: StaticExecutor, rng: random.Random) -> None:
    """Puts random pauses of up to 0.2 milliseconds around all calls of an executor."""
    for i, thunk in enumerate(executor.thunks):
        delays = (rng.choice([0, 0, 1e-6, 2e-4]), rng.choice([0, 0, 1e-6, 2e-4]))
        executor.thunks[i] = partial(_late, thunk, delays)


def _late(thunk: Thunk, delays: tuple[float, float]) -> None:
    time.sleep(delays[0])
    thunk()
    time.sleep(delays[1])
