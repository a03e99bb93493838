"""The judges of execution plans; they share no code with what makes plans."""

from engine.check.data_flow import check_data_flow
from engine.check.handover import check_handover
from engine.check.placement import Asked, check_placement
from engine.check.races import check_races

__all__ = ["Asked", "check_data_flow", "check_handover", "check_placement", "check_races"]
