"""The part of a budget that each network has in an arena that all share: what the state of the others leaves."""

from collections.abc import Sequence

from allocator.problem import align_up
from engine.execution_plan import ExecutionPlan
from engine.sharing.blocks import Groups
from engine.sharing.parts import SplitPlan, split


def states_of_others(plans: Sequence[ExecutionPlan], same_state: Groups) -> list[int]:
    """Returns, for each plan, the bytes of the shared arena that the state of the other networks takes.

    Networks of one of the groups of `same_state` have one state, which is nobody's else.
    """
    parts = [split(plan) for plan in plans]
    states = {group: max(_state_bytes(parts[number]) for number in group) for group in same_state}
    return [sum(size for group, size in states.items() if number not in group) for number in range(len(plans))]


def bytes_in_two_parts(plan: ExecutionPlan) -> int:
    """Returns the bytes of a plan whose state lies before its scratch, as it does in an arena that is shared."""
    part = split(plan)
    return _state_bytes(part) + part.scratch_bytes


def _state_bytes(part: SplitPlan) -> int:
    return align_up(part.state_bytes, part.alignment)
