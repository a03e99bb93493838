"""Every way to run one plan gives the same bits, and passes move outputs by little."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from engine.passes.base import LAST_BITS
from engine.passes.values import difference
from ops.tensor.spec import Array
from tests.fuzz.base import WrongError

WAYS: tuple[dict[str, Any], ...] = (
    {"threads": 1},
    {"threads": 2},
    {"mode": "dynamic", "threads": 1},
    {"debug": "poison", "threads": 1},
    *({"parallel": policy, "threads": 2} for policy in ("exact", "levels", "edges", "colour:2")),
)
"""Options of all ways to run."""


def same_bits(wanted: Mapping[str, Array], *others: Mapping[str, Array], what: object = "another mode") -> None:
    """Raises WrongError where outputs differ in a bit; any NaN is as good as any other."""
    for other in others:
        if list(other) != list(wanted):
            raise WrongError(f"{what} has outputs {list(other)}, not {list(wanted)}")
        for name, array in wanted.items():
            if (other[name].shape, other[name].dtype) != (array.shape, array.dtype):
                raise WrongError(f"{what}: {name!r} is {other[name].dtype}{other[name].shape}")
            if not _equal(array, other[name]):
                raise WrongError(f"{what} gives another bit in {name!r}")


def near(wanted: Mapping[str, Array], other: Mapping[str, Array], what: object) -> None:
    """Raises WrongError where outputs differ by more than passes may move them."""
    for name, array in wanted.items():
        moved = difference(other[name], array)
        if not moved <= LAST_BITS:
            raise WrongError(f"{what} moves {name!r} by {moved:.2g} of its largest value")


def _equal(a: Array, b: Array) -> bool:
    if np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes():
        return True
    differ = np.ascontiguousarray(a).reshape(-1).view(f"u{a.itemsize}") != np.ascontiguousarray(b).reshape(-1).view(
        f"u{a.itemsize}"
    )
    return bool((np.isnan(a.reshape(-1)[differ]) & np.isnan(b.reshape(-1)[differ])).all())
