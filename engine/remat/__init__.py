"""Plans in which values are computed again, for a budget that the plain plan does not meet."""

from typing import TYPE_CHECKING

from ops.lazy import importer

if TYPE_CHECKING:  # most plans fit; at run time it is imported when it is first used
    from engine.remat.planning import plan_recomputed
    from engine.remat.within import may_cascade, plans_within

__all__ = ["may_cascade", "plan_recomputed", "plans_within"]

_HOMES = {
    "may_cascade": "engine.remat.within:may_cascade",
    "plans_within": "engine.remat.within:plans_within",
    "plan_recomputed": "engine.remat.planning:plan_recomputed",
}

if not TYPE_CHECKING:  # a checker of types would take every name for one that exists
    __getattr__ = importer(__name__, _HOMES)
