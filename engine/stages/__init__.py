"""Networks whose sizes are not known beforehand: plans that are kept for lengths, and runs in stages."""

from typing import TYPE_CHECKING

from ops.lazy import importer

if TYPE_CHECKING:  # most networks have sizes that are known; at run time each name is imported when it is first used
    from engine.stages.compiling import staged
    from engine.stages.cost_report import StageReport, stage_report
    from engine.stages.length_ranges import LengthRangeCosts, LengthRangePlanner, length_range_costs
    from engine.stages.pass_values import judge_passes
    from engine.stages.run import StagedExecutor
    from engine.stages.stage import Stage, first_stage
    from engine.stages.trace import trace_stages

__all__ = [
    "LengthRangeCosts",
    "LengthRangePlanner",
    "Stage",
    "StageReport",
    "StagedExecutor",
    "first_stage",
    "judge_passes",
    "length_range_costs",
    "stage_report",
    "staged",
    "trace_stages",
]

_HOMES = {
    "staged": "engine.stages.compiling:staged",
    "StageReport": "engine.stages.cost_report:StageReport",
    "stage_report": "engine.stages.cost_report:stage_report",
    "LengthRangeCosts": "engine.stages.length_ranges:LengthRangeCosts",
    "LengthRangePlanner": "engine.stages.length_ranges:LengthRangePlanner",
    "length_range_costs": "engine.stages.length_ranges:length_range_costs",
    "judge_passes": "engine.stages.pass_values:judge_passes",
    "StagedExecutor": "engine.stages.run:StagedExecutor",
    "Stage": "engine.stages.stage:Stage",
    "first_stage": "engine.stages.stage:first_stage",
    "trace_stages": "engine.stages.trace:trace_stages",
}

if not TYPE_CHECKING:  # a checker of types would take every name for one that exists
    __getattr__ = importer(__name__, _HOMES)
