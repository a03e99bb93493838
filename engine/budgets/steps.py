"""The steps that lead to fewer bytes, as data: what each changes, and what it may do to the bits of outputs.

Whoever adds a step adds it here: the search combines whatever it finds in `STEPS`.
"""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from attrs import frozen

from engine.lower.backends import backends_of
from engine.lower.order import MEMORY
from engine.planning.options import CASCADE_PERCENTS, FIELDS, LEVELS, STORED, Options, about, flag
from engine.text.errors import OptionError
from ops.schema.backends import NUMBA, NUMPY, ONEDNN

KEPT = "every bit is kept"
LAST_BITS = "last bits may change"
ROUNDED = "rounded to 16 bits"


@frozen(eq=False)
class Step:
    """A change of options of planning that may save bytes. Of each `family`, one step at most is taken.

    `how` is what it is called on the command line; `bits` is one of KEPT, LAST_BITS and ROUNDED.
    """

    family: str
    what: str
    how: str
    bits: str
    changes: Mapping[str, Any]


Steps = tuple[Step, ...]
"""Steps that are taken together."""

CASCADES: Mapping[int, Step] = {
    percent: Step(
        "cascades",
        f"images in stripes of rows, for at most {percent} % more work",
        f"--cascade {percent}",
        KEPT,
        {"cascade": percent},
    )
    for percent in CASCADE_PERCENTS
}
"""The steps to cascades, by percentage: those that a budget leads to by itself."""
STEPS: Steps = (
    *(
        Step("passes", f"passes of level {n}" if n else "no passes", f"--optimise {n}", LAST_BITS, {"optimise": n})
        for n in LEVELS
    ),
    *(Step("storage", f"tensors stored as {t}", f"--store {t}", ROUNDED, {"store": t}) for t in reversed(STORED)),
    *(Step("back-end", f"kernels of {b}", f"--backend {b}", LAST_BITS, {"backend": b}) for b in (NUMPY, NUMBA, ONEDNN)),
    *CASCADES.values(),
    Step("packing", "no packed copies of weights", "--no-prepack", LAST_BITS, {"prepack": False}),
    *(
        Step(name, about(name).saving, f"without {flag(name)}", KEPT, {name: FIELDS[name].default})
        for name in FIELDS
        if about(name).saving
    ),
    Step("order", "another order of the operators", "--order memory", KEPT, {"order": MEMORY}),
)
"""All steps but one: that operators run again is part of every plan with a budget."""
LATE = ("order",)
"""Families that take a search of their own: they are tried where nothing else fits as cheaply."""


def steps_from(options: Options) -> Steps:
    """Returns the steps that change something in these options, and that this machine can take."""
    return tuple(
        step
        for step in STEPS
        if any(getattr(options, name) != value for name, value in step.changes.items()) and _can_be_taken(step)
    )


def combinations(steps: Steps, most: int) -> Sequence[Steps]:
    """Returns all choices of at most `most` steps of different families, the shortest first."""
    families = dict.fromkeys(step.family for step in steps)
    choices = [((), *((step,) for step in steps if step.family == family)) for family in families]
    every = [tuple(step for part in chosen for step in part) for chosen in product(*choices)]
    return sorted((chosen for chosen in every if len(chosen) <= most), key=len)


def changes_of(steps: Steps) -> dict[str, Any]:
    """Returns the options that steps change."""
    return {name: value for step in steps for name, value in step.changes.items()}


def _can_be_taken(step: Step) -> bool:
    """Returns whether the back-end of a step is installed."""
    try:
        return bool(backends_of(step.changes.get("backend", NUMPY)))
    except OptionError:
        return False
