"""The judge between two stages: what the second believes to be alive is what the first left there, not moved."""

from engine.check.plans import PlanLike
from engine.lower.calls import Storage
from engine.text.errors import HandoverError


def check_handover(before: PlanLike, after: PlanLike) -> None:
    """Raises HandoverError with the first tensor that is not where it was left, or was not left at all.

    With the judge of data flow on each stage, no live byte was moved or written between the stages either.
    """
    left, taken = before.lowered.outputs, after.lowered.inputs
    for name, value in taken.items():
        if name not in left:
            raise HandoverError(f"tensor {name!r} is taken to be alive, but the stage before did not leave it")
        here, there = after.places[value], before.places[left[name]]
        specs = after.lowered.values[value].spec, before.lowered.values[left[name]].spec
        if specs[0] != specs[1]:
            raise HandoverError(f"tensor {name!r} is left as {specs[1]} and taken as {specs[0]}")
        in_arena = here.storage is Storage.ARENA and there.storage is Storage.ARENA
        if not in_arena or (specs[0].nbytes and here.layout != there.layout):
            extents = "[{}, {})".format(*there.layout.extent), "[{}, {})".format(*here.layout.extent)
            raise HandoverError(f"tensor {name!r} is alive at {extents[0]}, and the next stage has it at {extents[1]}")
