"""The loop that finds what the words of a call point to. Imports numba: `ops.native.door` loads it, on first use."""

from collections.abc import Callable
from typing import Any

import numba

from ops.native.door import compiled_once
from ops.tensor.spec import Array


def _locate(words: Array, spans: Array, pointee: Array) -> None:
    for i in range(len(words)):
        pointee[i] = -1
        for j in range(len(spans)):
            if spans[j, 0] <= words[i] < spans[j, 1]:
                pointee[i] = j
                words[i] -= spans[j, 2]
                break


def compile_locate() -> Callable[[Array, Array, Array], None]:
    """Compiles the function of `ops.native.door.run_locate`."""
    types: Any = numba.types
    signature = types.void(numba.int64[::1], numba.int64[:, ::1], numba.int64[::1])
    compiled: Callable[[Array, Array, Array], None] = compiled_once(_locate, signature)
    return compiled
