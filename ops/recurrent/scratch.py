"""Temporaries of recurrent operators: those of one direction, and of one block of time steps."""

from attrs import frozen

from ops.recurrent.shapes import Case, Family, case_for
from ops.schema.schema import Signature
from ops.tensor.spec import BOOL, Array, TensorSpec

BLOCK = 1 << 18
"""Most elements of the gates of one block, where one time step has no more already."""


@frozen(eq=False)
class Buffers:
    """Temporaries of one direction. `inputs`, `w` and `r` are for float16 alone, the others as in Cell."""

    gates: Array
    inputs: Array
    w: Array
    r: Array
    product: Array
    temporary: Array
    h: Array
    c: Array
    bias: Array
    peepholes: Array
    mask: Array
    live: Array


def steps_of(case: Case) -> int:
    """Returns the number of time steps of one block."""
    return max(1, min(case.time, BLOCK // max(case.batch * case.width, 1)))


def temporaries(family: Family, signature: Signature) -> tuple[TensorSpec, ...]:
    """Returns the specs of Buffers, flat; empty where one is not needed."""
    case, names = case_for(family, signature), signature.attrs["given"]
    steps, half = steps_of(case), case.compute != case.dtype
    state = case.batch * case.hidden
    sizes = (
        steps * case.batch * case.width,
        steps * case.batch * case.inputs * half,
        case.width * case.inputs * half,
        case.width * case.hidden * half,
        case.batch * case.width,
        state,
        state,
        state * (family.states > 1),
        2 * case.width * ("bias" in names),
        3 * case.hidden * ("peepholes" in names),
    )
    masks = (state, case.batch * ("lengths" in names))
    return *(TensorSpec((n,), case.compute) for n in sizes), *(TensorSpec((n,), BOOL) for n in masks)
