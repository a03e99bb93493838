"""Calls of primitives with activations, which keep NaN and infinities as numpy does; see `execute_code`."""

import math
from collections.abc import Sequence

import numpy as np
from attrs import evolve

from ops.native.call import FOREIGN, Native, Step, Word
from ops.native.door import address as compiled
from ops.native.door import foreign_address, region_address
from ops.onednn import args as w
from ops.onednn import declarations as c
from ops.onednn.descriptors import Eltwise, Sum
from ops.onednn.openmp import team_addresses
from ops.onednn.primitives import Case, Operand, Prepared, Primitive, address, prepare, primitives
from ops.tensor.spec import Array

_CODE = "ops.onednn.execute_code"
_LOSSY = frozenset({c.CLIP, c.GELU_ERF, c.GELU_TANH, c.SWISH})


def _bare(case: Case) -> Case:
    return evolve(case, posts=case.posts[:-1])  # type: ignore[misc] # all cases are attrs classes


def loses_nan(case: Case) -> bool:
    """Whether the library's last post-operation loses NaN, or makes it of infinities."""
    match case.posts[-1:]:
        case (Eltwise(algorithm, alpha),):
            return algorithm in _LOSSY or (algorithm == c.RELU and not alpha)
    return False


def uses(case: Case) -> tuple[Case, ...]:
    """The cases of all primitives that a call of it may run."""
    if not loses_nan(case):
        return (case,)
    return (_bare(case),) if Sum() in case.posts else (case, _bare(case))


def usable(cases: Sequence[Case], threads: int) -> tuple[Primitive, ...]:
    """All primitives of calls of these cases; none where one is missing or slow."""
    wanted = [used for case in cases for used in uses(case)]
    found = [p for case in wanted for p in primitives(case, threads)]
    fast = len(found) == len(wanted) and all(p.planned for p in found)
    return tuple(found) if fast else ()


def packing(case: Case, threads: int) -> tuple[Primitive, ...]:
    """The same for one whose weights lie as the library likes; none either where they would lie in several ways."""
    found = usable((case,), threads)
    same = all(p.at.lib.dnnl_memory_desc_equal(found[0].weights, p.weights) for p in found)
    return found if same else ()


def call(
    case: Case, operands: Sequence[Operand], workspace: Array, threads: int, added: Sequence[Array] = ()
) -> Native:
    """The call of a case, on so many threads.

    What is added must lie where y will: it is copied to it, if it is not there yet.
    """
    prepared = [prepare(primitives(used, threads)[0], operands, workspace) for used in uses(case)]
    (y,) = (o.array for o in operands if o.role == c.TARGET)
    before = [_copy(a, y) for a in added if address(a) != address(y)]
    words = _finish_words(case, prepared, y) if loses_nan(case) else prepared[0].words
    function = "execute_watched" if len(prepared) > 1 else "execute"
    after = [Step(compiled(_CODE, "finish"), tuple(words))] if loses_nan(case) and len(prepared) == 1 else []
    step = Step(0, tuple(words))  # turns floats into words
    entry = Step(foreign_address(_CODE, function), (address(step.words), 0, 0, 0), FOREIGN)
    return Native((*before, entry, *after), (step, *prepared, *added))


def _copy(source: Array, target: Array) -> Step:
    return Step(compiled(_CODE, "copy"), (address(source), address(target), target.size))


def _finish_words(case: Case, prepared: Sequence[Prepared], y: Array) -> list[Word]:
    last = case.posts[-1]
    assert isinstance(last, Eltwise)
    low, high = (0.0, math.inf) if last.algorithm == c.RELU else (last.alpha, last.beta)
    found: list[Word] = [0] * (w.HIGH + 1)
    found[: w.ARGUMENTS + 1] = prepared[0].words
    found[w.PARALLEL], found[w.REGION] = team_addresses()[0], region_address(_CODE, "gather")
    found[w.BARE_PRIMITIVE], found[w.BARE_ARGUMENTS] = (prepared[-1].words[i] for i in (w.PRIMITIVE, w.ARGUMENTS))
    found[w.TARGET], found[w.ELEMENTS] = address(y), y.size
    found[w.ALGORITHM] = c.CLIP if last.algorithm == c.RELU else last.algorithm
    found[w.LOW], found[w.HIGH] = (float(np.float32(v)) for v in (low, high))
    return found
