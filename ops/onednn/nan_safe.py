"""Calls of primitives with activations that keep NaN and infinities as numpy does; see `execute_code`."""

import math
from collections.abc import Sequence

import numpy as np
from attrs import evolve

from allocator.machine_code.door import address as compiled
from ops.native.call import Native, Step
from ops.native.records import pack_args
from ops.native.runners import FOREIGN
from ops.onednn import declarations as c
from ops.onednn.args import COPY, call_args
from ops.onednn.descriptors import Eltwise, Sum
from ops.onednn.openmp import team_addresses
from ops.onednn.primitives import Case, Operand, Prepared, Primitive, prepare, primitives
from ops.tensor.layout import address_of
from ops.tensor.spec import Array

_CODE = "ops.onednn.execute_code"
_LOSSY = frozenset({c.CLIP, c.SWISH})


def _bare(case: Case) -> Case:
    return evolve(case, posts=case.posts[:-1])  # type: ignore[misc] # all cases are attrs classes


def loses_nan(case: Case) -> bool:
    """Returns whether the library's last post-operation loses NaN, or computes it from infinities."""
    match case.posts[-1:]:
        case (Eltwise(algorithm, alpha),):
            return algorithm in _LOSSY or (algorithm == c.RELU and not alpha)
    return False


def uses(case: Case) -> tuple[Case, ...]:
    """Returns the cases of all primitives that a call of this case may run."""
    if not loses_nan(case):
        return (case,)
    return (_bare(case),) if Sum() in case.posts else (case, _bare(case))


def usable(cases: Sequence[Case], threads: int) -> tuple[Primitive, ...]:
    """Returns all primitives of calls of these cases; none if one is missing or slow."""
    used_cases = [used for case in cases for used in uses(case)]
    available = [p for case in used_cases for p in primitives(case, threads)]
    fast = len(available) == len(used_cases) and all(p.planned for p in available)
    return tuple(available) if fast else ()


def packing(case: Case, threads: int) -> tuple[Primitive, ...]:
    """Returns all primitives of a case whose weights have the library's layout; none if their layouts differ."""
    available = usable((case,), threads)
    same = all(p.at.lib.dnnl_memory_desc_equal(available[0].weights, p.weights) for p in available)
    return available if same else ()


def call(
    case: Case, operands: Sequence[Operand], workspace: Array, threads: int, added: Sequence[Array] = ()
) -> Native:
    """Returns the call of a case, on so many threads.

    A tensor that is added must be in y's memory: it is copied there if it has another address.
    """
    prepared = [prepare(primitives(used, threads)[0], operands, workspace) for used in uses(case)]
    (y,) = (o.array for o in operands if o.role == c.TARGET)
    before = [_copy(a, y) for a in added if address_of(a) != address_of(y)]
    args = _finish_args(case, prepared, y) if loses_nan(case) else call_args(prepared[0].fields)
    function = "execute_watched" if len(prepared) > 1 else "execute"
    after = [Step(compiled(_CODE, "finish"), args)] if loses_nan(case) and len(prepared) == 1 else []
    entry = Step(compiled(_CODE, function), (address_of(args), 0, 0, 0), FOREIGN)
    return Native((*before, entry, *after), (args, *prepared, *added))


def _copy(source: Array, target: Array) -> Step:
    return Step(
        compiled(_CODE, "copy"),
        pack_args(COPY, source=address_of(source), target=address_of(target), count=target.size),
    )


def _finish_args(case: Case, prepared: Sequence[Prepared], y: Array) -> Array:
    """Returns the arguments of a call whose activation is applied here, at least where an operation was invalid."""
    last = case.posts[-1]
    assert isinstance(last, Eltwise)
    low, high = (0.0, math.inf) if last.algorithm == c.RELU else (last.alpha, last.beta)
    return call_args(
        prepared[0].fields,
        parallel=team_addresses()[0],
        region=compiled(_CODE, "gather"),
        bare_primitive=prepared[-1].fields["primitive"],
        bare_arguments=prepared[-1].fields["arguments"],
        target=address_of(y),
        elements=y.size,
        algorithm=c.CLIP if last.algorithm == c.RELU else last.algorithm,
        low=float(np.float32(low)),
        high=float(np.float32(high)),
    )
