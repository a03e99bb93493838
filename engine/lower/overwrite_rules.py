"""The rules that an overwrite must keep before lifetimes are considered."""

from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum

from engine.lower.calls import Storage, Value
from ops.schema.schema import Overwrite


class OverwriteRule(StrEnum):
    """The first rule that an overwrite breaks."""

    NONE = ""
    """No rule is broken: lifetimes decide."""
    BESIDE = "beside"
    """The operator also reads the input at a position that may not be overwritten."""
    MISALIGNED = "misaligned"
    """The first byte is not aligned for an element of the output."""
    CONSTANT = "constant"
    """The input is a constant."""
    CALLERS = "callers"
    """The input or the output is an array of the caller's."""
    STRIDED = "strided"
    """The input is not dense: a view with holes or in another order."""
    PARAMETER = "parameter"
    """The output is the next value of a parameter, which it must overwrite."""
    NESTED = "nested"
    """The output is computed inside another tensor."""


def broken_rule(
    forward: Overwrite,
    declared: Collection[Overwrite],
    inputs: Sequence[int],
    outputs: Sequence[int],
    values: Sequence[Value] | Mapping[int, Value],
) -> OverwriteRule:
    """Returns the first rule of bytes that an overwrite breaks:

    storage, density, alignment, other reads of the same input.

    `inputs` and `outputs` are the values (by id) of the operator that declares the overwrite.
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
    """Returns PARAMETER where the update of a parameter would overwrite other bytes than those of that parameter.

    `parameters` maps each parameter to the value that it holds after the run.
    """
    updated = [parameter for parameter, value in parameters.items() if value == taker and parameter != taker]
    if not updated or (updated[0] == taken and not forward.offset):
        return OverwriteRule.NONE
    return OverwriteRule.PARAMETER
