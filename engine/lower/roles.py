"""The roles of tensors in a training step: gradient, weight update, optimiser state, or kept for the backward pass.

A graph does not say which operators are its backward pass. The outputs do: what they depend on is the forward pass, and
what only updates of trainable parameters depend on is the rest. These are the classes of PyTorch's memory profiler.
"""

from collections.abc import Iterable, Mapping, Set
from enum import Enum

from attrs import frozen

from engine.lower.calls import Call, Instruction, Lowered, Role

AGAIN = "again"
"""The end of the name of an operator that runs again."""


class TrainingRole(Enum):
    """The purpose of a value that is there for training alone."""

    GRADIENT = "gradient"
    UPDATE = "weight update"
    STATE = "optimiser state"
    SAVED = "saved for backward"


def roles_of(lowered: Lowered) -> tuple[str, ...]:
    """Returns the role of each value, in the order of `lowered.values`.

    Without updates of trainable parameters, these are the roles of the values themselves. Where a graph also outputs
    gradients, what they depend on counts as its forward pass.
    """
    roles = [value.role.value for value in lowered.values]
    trained = _trained(lowered)
    if trained:
        for value, role in _training_roles(lowered, _phases(lowered, trained), trained).items():
            roles[value] = role
    return tuple(roles)


def is_kept(role: str) -> bool:
    """Returns whether a value of a role that no instruction writes is kept from run to run."""
    return role in (Role.PARAMETER.value, TrainingRole.STATE.value)


@frozen(eq=False)
class _Phases:
    """The instructions of a training step: `optimiser` has updates and what is computed for them without gradients."""

    forward: tuple[Instruction, ...]
    backward: tuple[Instruction, ...]
    optimiser: tuple[Instruction, ...]


def _trained(lowered: Lowered) -> dict[int, int]:
    """Returns the trainable parameters that are updated, with the values that they hold after the run."""
    trainable = {var.name for var, parameter in lowered.graph.parameters.items() if parameter.trainable}
    pairs = lowered.parameters.items()
    return {p: v for p, v in pairs if p != v and lowered.values[p].source in trainable}


def _phases(lowered: Lowered, trained: Mapping[int, int]) -> _Phases:
    forward = _needed(lowered, lowered.outputs.values())
    updated = set(trained.values())
    updates = [i for i in lowered.instructions if not updated.isdisjoint(i.outputs)]
    needed = _needed(lowered, (v for update in updates for v in update.inputs)) - forward
    read = _inputs_of(lowered, (i for i in lowered.instructions if i.tick in forward))
    alone = _of_state(lowered, lowered.parameters.keys() - trained.keys() - read)
    ticks = {update.tick for update in updates}
    backward, optimiser = needed - alone - ticks, (needed & alone) | ticks - forward
    phases = forward, backward, optimiser
    return _Phases(*(tuple(i for i in lowered.instructions if i.tick in phase) for phase in phases))


def _needed(lowered: Lowered, values: Iterable[int]) -> set[int]:
    """Returns the ticks of all instructions that values depend on."""
    wanted = _touched(lowered, values)
    ticks = set[int]()
    for instruction in reversed(lowered.instructions):
        if not wanted.isdisjoint(_touched(lowered, instruction.outputs)):
            ticks.add(instruction.tick)
            wanted |= _touched(lowered, instruction.inputs)
    return ticks


def _of_state(lowered: Lowered, state: Set[int]) -> set[int]:
    """Returns the ticks of all instructions that read such parameters, and nothing else but constants."""
    reached, ticks = set(state), set[int]()
    for instruction in lowered.instructions:
        inputs = _touched(lowered, instruction.inputs) - lowered.constants.keys()
        if inputs and inputs <= reached:
            ticks.add(instruction.tick)
            reached |= _touched(lowered, instruction.outputs)
    return ticks


def _touched(lowered: Lowered, values: Iterable[int]) -> set[int]:
    """Returns values, and the values that own their bytes."""
    touched = set(values)
    return touched | {lowered.values[v].owner for v in touched}


def _training_roles(lowered: Lowered, phases: _Phases, trained: Mapping[int, int]) -> dict[int, str]:
    roles = {v: Role.PARAMETER.value for v in lowered.parameters.values()}
    for instruction in phases.backward:
        if not _runs_again(instruction):
            roles |= dict.fromkeys(_results(lowered, (instruction,)), TrainingRole.GRADIENT.value)
    roles |= dict.fromkeys(_results(lowered, phases.optimiser), TrainingRole.STATE.value)
    roles |= dict.fromkeys(trained.values(), TrainingRole.UPDATE.value)
    kept = _inputs_of(lowered, phases.optimiser) - _inputs_of(lowered, (*phases.forward, *phases.backward))
    roles |= {p: TrainingRole.STATE.value for p in lowered.parameters if p in kept and p not in trained}
    later = _inputs_of(lowered, (*phases.backward, *phases.optimiser))
    return roles | {v: TrainingRole.SAVED.value for v in _results(lowered, phases.forward) if v in later}


def _inputs_of(lowered: Lowered, instructions: Iterable[Instruction]) -> set[int]:
    """Returns what instructions read."""
    return _touched(lowered, (v for instruction in instructions for v in instruction.inputs))


def _results(lowered: Lowered, instructions: Iterable[Instruction]) -> list[int]:
    """Returns the values that instructions compute and that are not there for another reason."""
    outputs = (v for instruction in instructions for v in instruction.outputs)
    return [v for v in outputs if lowered.values[v].role is Role.ACTIVATION]


def _runs_again(instruction: Instruction) -> bool:
    """Returns whether a call computes again what the forward pass has computed."""
    return isinstance(instruction, Call) and instruction.name.rpartition("/")[2].rstrip("0123456789") == AGAIN
