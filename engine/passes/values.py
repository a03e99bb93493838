"""The judge of values: computes a graph before and after a pass from the same numbers, and compares what comes out.

Judge 0 (verify.py) looks at form only: a pass that drops a term leaves a graph that can be run. Here operators are
computed one by one on arrays of their own, with no plan. No kernel packs constants, so that a formula that stays is
computed by the same kernel on both sides; but where all inputs are constants, they are packed, as in constant folding.
"""

from collections.abc import Callable, Iterable, Mapping

import numpy as np
from attrs import evolve

from engine.executor.binding import kernel_state
from engine.graph.graph import Graph
from engine.graph.operator import Operator
from engine.graph.var import Var
from engine.passes.pipeline import Applied
from engine.text.errors import EngineError, KernelError, PassError
from ops.schema.schema import Binding
from ops.tensor.errors import OpError
from ops.tensor.layout import Layout
from ops.tensor.spec import BFLOAT16, FLOATS, Array, new_arrays

Outputs = Mapping[str, Array]
QUANTUM = 0.02
"""What last bits may move an output by where tensors have 8 bits: a few steps of the quantisation."""
_STEPS = {np.dtype("float16"): 4 * 2.0**-10, BFLOAT16: 4 * 2.0**-7}
"""Four times the distance of two neighbouring numbers of 16 bits, in parts of them."""
_CODES = frozenset(map(np.dtype, ("int8", "uint8")))


def check_values(applied: Iterable[Applied], compute: Callable[[Graph], Outputs], least: float = 0.0) -> None:
    """Computes the graph before and after each pass. Raises PassError where an output moves by more than is promised.

    `least` is what any output may move by, in parts of its largest value.
    """
    before: Outputs = {}
    for each in applied:
        before = before or compute(each.before)
        try:
            after = compute(each.after)
        except (OpError, EngineError) as error:
            raise PassError(f"pass {each.by!r} leaves a graph that fails: {error}") from error
        for name, wanted in before.items():
            _compare(each, name, after[name], wanted, max(least, _tolerance(each, wanted.dtype)))
        before = after


def _tolerance(applied: Applied, dtype: np.dtype[np.generic]) -> float:
    """Returns what an output of that type may move by, in parts of its largest value."""
    if not applied.tolerance:
        return 0.0
    coarse = any(v.dtype in _CODES for op in applied.before.operators for v in op.outputs)
    return max(applied.tolerance, QUANTUM * coarse, _STEPS.get(dtype, 0.0))


def _compare(applied: Applied, name: str, actual: Array, wanted: Array, tolerance: float) -> None:
    if (actual.shape, actual.dtype) != (wanted.shape, wanted.dtype):
        raise PassError(f"pass {applied.by!r} makes {name!r} {actual.dtype}{list(actual.shape)}")
    if np.array_equal(actual, wanted, equal_nan=wanted.dtype in FLOATS):
        return
    moved = difference(actual, wanted)
    if not (moved <= tolerance or (tolerance and _is_one_step(actual, wanted))):
        promise = f"may by {tolerance:g}" if tolerance else "keeps every bit"
        raise PassError(
            f"pass {applied.by!r} moves {name!r} by {moved:.2g} of its largest value, and {promise}: "
            f"{_example(actual, wanted)}"
        )


def _is_one_step(actual: Array, wanted: Array) -> bool:
    """Returns whether all codes are those wanted, or beside them. Where all are small, one step is a large part."""
    is_coded = wanted.dtype in _CODES
    return is_coded and bool(np.all(np.abs(actual.astype(np.int16) - wanted.astype(np.int16)) <= 1))


def difference(actual: Array, wanted: Array) -> float:
    """Returns the largest difference, in parts of the largest finite value; NaN and infinities must be the same."""
    one, other = (np.asarray(a, np.float64) for a in (actual, wanted))
    finite = np.isfinite(one) & np.isfinite(other)
    if not np.array_equal(one[~finite], other[~finite], equal_nan=True):
        return np.inf
    largest = float(np.abs(other[finite]).max(initial=0.0))
    moved = float(np.abs(one[finite] - other[finite]).max(initial=0.0))
    return moved / largest if largest else (np.inf if moved else 0.0)


def _example(actual: Array, wanted: Array) -> str:
    """Returns, in words, the element that differs most."""
    with np.errstate(all="ignore"):
        apart = np.abs(np.asarray(actual, np.float64) - np.asarray(wanted, np.float64))
    place = np.unravel_index(int(np.nan_to_num(apart, nan=np.inf).argmax()), apart.shape)
    return f"element {tuple(map(int, place))} is {actual[place]}, and was {wanted[place]}"


def compute(graph: Graph, feeds: Mapping[str, Array]) -> dict[str, Array]:
    """Computes the outputs of a graph of known sizes, and what its parameters become. Raises KernelError."""
    arrays: dict[Var, Array] = {var: feeds[name] for name, var in graph.inputs.items()}
    arrays |= {var: parameter.initial for var, parameter in graph.parameters.items()}
    wanted = {f"parameter {p.name}": v for p, v in graph.updates.items()} | dict(graph.outputs)
    last = {var: number for number, operator in enumerate(graph.operators) for var in operator.inputs}
    kept = set(wanted.values())
    with kernel_state():
        for number, operator in enumerate(graph.operators):
            inputs = [arrays[v] if v in arrays else graph.constants[v] for v in operator.inputs]
            arrays.update(zip(operator.outputs, _computed(operator, inputs), strict=True))
            for var in {*operator.inputs, *operator.outputs} - kept:
                if last.get(var, -1) <= number:
                    arrays.pop(var, None)
    return {name: arrays[v] if v in arrays else graph.constants[v] for name, v in wanted.items()}


def _computed(operator: Operator, inputs: list[Array]) -> tuple[Array, ...]:
    """Returns the outputs of an operator."""
    constants = operator.signature.constants
    signature = evolve(operator.signature, constants=constants if len(constants) == len(inputs) else frozenset())
    kernel, outputs = operator.schema.kernel(signature), new_arrays(signature.outputs)
    pairs = enumerate(inputs)
    read = tuple(a if kernel.accepts(signature, i, Layout.of(a)) else np.array(a, order="C") for i, a in pairs)
    packed = kernel.pack(signature, dict(enumerate(read))) if signature.constants else ()
    try:
        kernel.bind(Binding(signature, read, outputs, new_arrays(kernel.temporaries(signature)), packed))()
    except Exception as error:
        raise KernelError(f"operator {operator.name!r} failed on {signature.inputs}: {error}") from error
    return outputs
