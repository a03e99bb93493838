"""A plan as plain data: its report, and the resident set to expect."""

from typing import Any

from engine.planning.placed import PlacedPlan
from engine.report.report import Report, report
from engine.report.resident import ResidentSet, resident_set


def plan_data(plan: PlacedPlan, totals: Report | None = None, resident: ResidentSet | None = None) -> dict[str, Any]:
    """Returns what `arenaplan plan --json` prints; `totals` and `resident` are used where they are there already."""
    if resident is None and plan.lowered.target.is_host:
        resident = resident_set(plan)
    return (totals or report(plan)).to_json() | {"resident_set": resident and resident.to_json()}
