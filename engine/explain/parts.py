"""What an arena is made of in the tick in which most of it is used."""

from collections.abc import Iterable

from attrs import frozen

from engine.explain.alive import AliveTensor
from engine.report.report import Report

PADDING, ALIGNMENT, HOLES = "padding", "alignment", "fragmentation"


@frozen
class ArenaPart:
    """`what` is the role of tensors, or what else takes bytes; of how many tensors, and the share of the arena."""

    what: str
    bytes: int
    tensors: int
    share: float


def parts(report: Report, alive: Iterable[AliveTensor]) -> tuple[ArenaPart, ...]:
    """They add up to the arena: roles, the largest first, then padding, what alignment costs, and other holes."""
    roles, count, padding = dict[str, int](), dict[str, int](), 0
    for each in alive:
        roles[each.role] = roles.get(each.role, 0) + each.bytes
        count[each.role] = count.get(each.role, 0) + 1
        padding += each.padding
    whole = max(report.arena_bytes, 1)
    made = [ArenaPart(role, size, count[role], size / whole) for role, size in roles.items()]
    made.sort(key=lambda part: (-part.bytes, part.what))
    idle = ((PADDING, padding), (ALIGNMENT, report.alignment_loss), (HOLES, report.fragmentation))
    return (*made, *(ArenaPart(what, size, 0, size / whole) for what, size in idle))
