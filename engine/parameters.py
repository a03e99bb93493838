"""Parameters: tensors that lie in the arena from run to run, and which operators may write the next value over one."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from attrs import frozen

from engine.errors import GraphError
from engine.operator import Operator
from engine.var import Var
from ops.layout import Layout
from ops.spec import Array


@frozen(eq=False)
class Parameter:
    """What a parameter holds before the first run (read-only, dense), and whether training changes it."""

    initial: Array
    trainable: bool


def as_initial(value: npt.ArrayLike) -> Array:
    """A dense, read-only array: the very one where it is so already, else a copy. Raises GraphError."""
    try:
        given = np.asarray(value)
    except ValueError as error:
        raise GraphError(f"a parameter must be an array: {error}") from error
    kept = given if given.flags.c_contiguous and not given.flags.writeable else np.array(given, order="C")
    kept.flags.writeable = False
    return kept


def is_written_over(value: Var, parameter: Var, makers: Mapping[Var, Operator]) -> bool:
    """Whether an operator computes the value and may write it over the parameter, byte for byte."""
    if value not in makers:
        return False
    operator = makers[value]
    others = (v for v in operator.inputs if v is not parameter)
    if any(looks_at(v, makers) is parameter for v in others):
        return False
    output, forwards = operator.outputs.index(value), operator.schema.forwards(operator.signature)
    return any(f.output == output and not f.offset and operator.inputs[f.input] is parameter for f in forwards)


def looks_at(var: Var, makers: Mapping[Var, Operator]) -> Var:
    """The var whose elements a view shows; the var itself where it is none."""
    while var in makers:
        operator = makers[var]
        if not operator.inputs or None in operator.schema.views(
            Layout.dense(operator.inputs[0].spec), operator.signature
        ):
            break
        var = operator.inputs[0]
    return var
