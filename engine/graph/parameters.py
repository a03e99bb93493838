"""Parameters: tensors that stay in the arena from run to run, and the operators that may overwrite one."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from attrs import frozen

from engine.graph.operator import Operator
from engine.graph.var import Var
from engine.text.errors import GraphError
from ops.tensor.spec import LOST_MASK, Array, is_masked


@frozen(eq=False)
class Parameter:
    """A tensor that stays in the arena:

    its value before the first run (read-only, dense), and whether training changes it.
    """

    initial: Array
    trainable: bool


def as_kept(what: str, value: npt.ArrayLike) -> Array:
    """Returns a dense, read-only array: the same one where it is so already, else a copy. Raises GraphError."""
    if is_masked(value):
        raise GraphError(f"a {what} is {LOST_MASK}")
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise GraphError(f"a {what} must be an array: {error}") from error
    kept = array if array.flags.c_contiguous and not array.flags.writeable else np.array(array, order="C")
    kept.flags.writeable = False
    return kept


def is_written_over(value: Var, parameter: Var, makers: Mapping[Var, Operator]) -> bool:
    """Returns whether an operator computes the value and may write it over the parameter, byte for byte."""
    if value not in makers:
        return False
    operator = makers[value]
    others = (v for v in operator.inputs if v is not parameter)
    if any(looks_at(v, makers) is parameter for v in others):
        return False
    output, forwards = list(map(id, operator.outputs)).index(id(value)), operator.schema.forwards(operator.signature)
    permitted = {f.input for f in forwards if f.output == output and not f.offset}
    read = {i for i, v in enumerate(operator.inputs) if v is parameter}
    return bool(read) and read <= permitted


def looks_at(var: Var, makers: Mapping[Var, Operator]) -> Var:
    """Returns the var whose elements a view shows; the var itself where it is no view."""
    while var in makers and makers[var].shows_its_input:
        var = makers[var].inputs[0]
    return var
