"""What the rows of a sweep tell: of one plan each, or what a preset of a known experiment tells."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from attrs import frozen

from engine.sweeps import placements, plans, tricks
from engine.sweeps.task import BATCH, PLAN, Task

PLACEMENTS, TRICKS = "placements", "tricks"


@frozen(eq=False)
class Measure:
    """A kind of rows: their columns behind those of all kinds, and the function that finds the values of a task.

    `shown` are the columns that the text has, and `notes` the lines below it. That of a preset has `models` and values
    to `vary` for a sweep that says none. Names among `own` are no lengths of the model. Tasks that do not fit are left
    out, unless none does.
    """

    columns: tuple[str, ...]
    take: Callable[[Task], Mapping[str, Any]]
    shown: tuple[str, ...]
    notes: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    vary: Mapping[str, Sequence[Any]] = MappingProxyType({})
    own: tuple[str, ...] = ()
    fits: Callable[[Task], bool] = lambda _: True


MEASURES: Mapping[str, Measure] = MappingProxyType(
    {
        PLAN: Measure(
            plans.COLUMNS,
            plans.plan_row,
            ("arena_bytes", "gap", "proof", "weights_bytes", "plan_seconds", "run_seconds"),
        ),
        PLACEMENTS: Measure(
            placements.COLUMNS,
            placements.placement_row,
            placements.SHOWN,
            placements.NOTES,
            models=("zoo:vgg16", "zoo:resnet50", "zoo:mobilenet_v2"),
            vary=MappingProxyType({BATCH: (1, 128)}),
        ),
        TRICKS: Measure(
            tricks.COLUMNS,
            tricks.trick_row,
            tricks.SHOWN,
            tricks.NOTES,
            models=("zoo:inception_bn",),
            vary=MappingProxyType({BATCH: (32,), tricks.MODE: tuple(tricks.MODES)}),
            own=(tricks.MODE,),
            fits=tricks.has_mode,
        ),
    }
)
"""The kinds of rows, by name."""
PRESETS = tuple(name for name in MEASURES if name != PLAN)
