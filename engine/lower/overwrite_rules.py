"""What stands against an overwrite that an operator declares, before lifetimes are looked at."""

from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum

from engine.lower.calls import Storage, Value
from ops.schema.schema import Overwrite


class OverwriteRule(StrEnum):
    """The first of these that holds."""

    NONE = ""
    """The planner may take it, where lifetimes allow it."""
    BESIDE = "beside"
    """The operator reads the input in another place too, where it may not be overwritten."""
    MISALIGNED = "misaligned"
    """The bytes begin where no element of the output may."""
    CONSTANT = "constant"
    """The input is a constant, which stays as it is."""
    CALLERS = "callers"
    """The input or the output is an array of the caller's."""
    STRIDED = "strided"
    """The input does not lie dense: it is a view with holes or in another order."""
    PARAMETER = "parameter"
    """The output is the next value of a parameter, and written over that one."""
    NESTED = "nested"
    """The output has a place inside another tensor."""


def broken_rule(
    forward: Overwrite,
    declared: Collection[Overwrite],
    inputs: Sequence[int],
    outputs: Sequence[int],
    values: Sequence[Value],
) -> OverwriteRule:
    """Of the bytes: whether they are the arena's and dense, and each position that reads the value may be overwritten.

    `inputs` and `outputs` are the values (by id) of the operator that declares the forwards.
    """
    taken, taker = values[inputs[forward.input]], values[outputs[forward.output]]
    readers = (i for i, v in enumerate(inputs) if v == taken.id and i != forward.input)
    if any(Overwrite(forward.output, i, forward.offset) not in declared for i in readers):
        return OverwriteRule.BESIDE
    if (taken.layout.offset + forward.offset) % taker.layout.itemsize:
        return OverwriteRule.MISALIGNED
    if taken.storage is not Storage.ARENA:
        return OverwriteRule.CONSTANT if taken.storage is Storage.CONSTANT else OverwriteRule.CALLERS
    if taker.storage is not Storage.ARENA:
        return OverwriteRule.CALLERS
    return OverwriteRule.NONE if taken.layout.is_dense else OverwriteRule.STRIDED


def broken_parameter_rule(forward: Overwrite, taken: int, taker: int, parameters: Mapping[int, int]) -> OverwriteRule:
    """Of an update: whether it is written over that very parameter. `parameters` maps each to what it then holds."""
    updated = [parameter for parameter, value in parameters.items() if value == taker and parameter != taker]
    if not updated or (updated[0] == taken and not forward.offset):
        return OverwriteRule.NONE
    return OverwriteRule.PARAMETER
