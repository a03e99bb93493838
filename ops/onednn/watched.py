"""Calls of primitives with activations, which keep NaN and infinities as numpy does; see `execute_code`."""

import math
from collections.abc import Sequence

import numpy as np
from attrs import evolve

from ops.native.call import FOREIGN, Native, Step, Word
from ops.native.door import address as compiled
from ops.native.door import foreign_address, region_address
from ops.onednn import declarations as c
from ops.onednn import words as w
from ops.onednn.descriptors import Eltwise, Sum
from ops.onednn.openmp import team_addresses
from ops.onednn.primitives import Case, Operand, Prepared, Primitive, address, prepare, primitives
from ops.spec import Array

_CODE = "ops.onednn.execute_code"
_LOSSY = frozenset({c.CLIP, c.GELU_ERF, c.GELU_TANH, c.SWISH})


def _bare(case: Case) -> Case:
    return evolve(case, posts=case.posts[:-1])  # type: ignore[misc] # all cases are attrs classes


def _lossy(case: Case) -> bool:
    """Whether its last post-operation is one that loses NaN, or makes it of infinities."""
    match case.posts[-1:]:
        case (Eltwise(algorithm, alpha),):
            return algorithm in _LOSSY or (algorithm == c.RELU and not alpha)
    return False


def uses(case: Case) -> tuple[Case, ...]:
    """The cases of all primitives that a call of it may run."""
    if not _lossy(case):
        return (case,)
    return (_bare(case),) if Sum() in case.posts else (case, _bare(case))


def usable(cases: Sequence[Case]) -> tuple[Primitive, ...]:
    """All primitives of calls of these cases; none where one is missing or slow."""
    wanted = [used for case in cases for used in uses(case)]
    found = [p for case in wanted for p in primitives(case)]
    fast = len(found) == len(wanted) and all(p.planned for p in found)
    return tuple(found) if fast else ()


def packing(cases: Sequence[Case]) -> tuple[Primitive, ...]:
    """The same for cases whose weights lie as the library likes; none either where they would lie in several ways."""
    found = usable(cases)
    same = all(p.at.lib.dnnl_memory_desc_equal(found[0].weights, p.weights) for p in found)
    return found if same else ()


def call(case: Case, operands: Sequence[Operand], workspace: Array) -> Native:
    """The call of a case. All that it uses lives as long."""
    prepared = [prepare(primitives(used)[0], operands, workspace) for used in uses(case)]
    if not _lossy(case):
        return _native("execute", prepared, prepared[0].words)
    words = _finish_words(case, prepared, operands)
    if len(prepared) > 1:
        return _native("execute_watched", prepared, words)
    first = _native("execute", prepared, words)
    return Native((*first.steps, Step(compiled(_CODE, "finish"), tuple(words))), (first,))


def _native(function: str, prepared: Sequence[Prepared], words: Sequence[Word]) -> Native:
    """One step; its first word is the address of those that the function reads."""
    step = Step(0, tuple(words))  # turns floats into words
    entry = Step(foreign_address(_CODE, function), (address(step.words), 0, 0, 0), FOREIGN)
    return Native((entry,), (step, *prepared))


def _finish_words(case: Case, prepared: Sequence[Prepared], operands: Sequence[Operand]) -> list[Word]:
    last = case.posts[-1]
    assert isinstance(last, Eltwise)
    (y,) = (o.array for o in operands if o.role == c.TARGET)
    low, high = (0.0, math.inf) if last.algorithm == c.RELU else (last.alpha, last.beta)
    found: list[Word] = [0] * (w.HIGH + 1)
    found[: w.ARGUMENTS + 1] = prepared[0].words
    found[w.PARALLEL], found[w.REGION] = team_addresses()[0], region_address(_CODE, "gather")
    found[w.BARE_PRIMITIVE], found[w.BARE_ARGUMENTS] = (prepared[-1].words[i] for i in (w.PRIMITIVE, w.ARGUMENTS))
    found[w.TARGET], found[w.ELEMENTS] = address(y), y.size
    found[w.ALGORITHM] = c.CLIP if last.algorithm == c.RELU else last.algorithm
    found[w.LOW], found[w.HIGH] = (float(np.float32(v)) for v in (low, high))
    return found
