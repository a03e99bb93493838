"""LayerNorm and RMSNorm recognised from means, squares and roots, as PyTorch, TensorFlow and others export them."""

from collections.abc import Iterator

import numpy as np
from attrs import frozen

import ops
from engine.graph.operator import Operator
from engine.graph.var import Var
from engine.passes.base import RulePass
from engine.passes.edit import Edit
from engine.passes.recognise.formulas import (
    Axes,
    are_pieces,
    centred,
    means,
    pairs,
    root_quotients,
    squares,
    with_number,
)
from ops.elementwise.binary import ADD, DIV, MUL, SUB
from ops.norm.norm import LAYER_NORM, RMS_NORM
from ops.tensor.spec import normalize_axis


@frozen(eq=False)
class _Norm:
    """x over the root of its mean square, or of its variance where it is centred."""

    x: Var
    axis: int
    epsilon: float
    is_centred: bool

    def build(self, edit: Edit) -> Var:
        """The operator, with scales of 1."""
        ones = edit.constant(np.ones(self.x.shape[self.axis :], self.x.dtype))
        make = ops.layer_norm if self.is_centred else ops.rms_norm
        return make(self.x, ones, axis=self.axis, epsilon=self.epsilon)


def recognise(edit: Edit, operator: Operator) -> None:
    """Puts a normalisation in the place of its pieces, or takes a scale or a bias behind one into it."""
    (result,) = operator.outputs[:1]
    if operator.schema in (DIV, MUL) and _replaced(edit, result):
        return
    if operator.schema is MUL:
        _take_scale(edit, result)
    elif operator.schema is ADD:
        _take_bias(edit, result)
        _replace_spread(edit, result)


def _replaced(edit: Edit, result: Var) -> bool:
    for norm in _norms(edit, result):
        if norm.x.spec == result.spec and are_pieces(edit, result, (norm.x,)):
            edit.replace(result, norm.build(edit))
            return True
    return False


def _norms(edit: Edit, result: Var) -> Iterator[_Norm]:
    """The normalisations that the var is, before any scale."""
    for above, below in root_quotients(edit, result):
        for z, axes, epsilon in _mean_squares(edit, below):
            if z is not above:
                continue
            for x in centred(edit, z, axes):
                yield _Norm(x, axes[0], epsilon, True)
            yield _Norm(z, axes[0], epsilon, False)


def _mean_squares(edit: Edit, var: Var) -> Iterator[tuple[Var, Axes, float]]:
    """(z, axes, epsilon) where var = mean(z ** 2) + epsilon over the last axes."""
    for mean, epsilon in with_number(edit, var):
        for square, axes in means(edit, mean):
            for z in squares(edit, square):
                if axes and axes == tuple(range(axes[0], z.ndim)) and z.dtype.kind == "f":
                    yield z, axes, epsilon


def _take_scale(edit: Edit, result: Var) -> None:
    """norm(x, 1) * scale -> norm(x, scale)"""
    for normed, scale in pairs(edit, result, MUL):
        norm = _norm_behind(edit, normed, result)
        if norm is None or edit.number(norm.inputs[1]) != 1 or len(norm.inputs) > 2:
            continue
        for fitted in _fitted(edit, scale, _rows(norm), normed):
            edit.replace(result, edit.add(norm.schema, (norm.inputs[0], fitted), norm.attrs)[0])
            return


def _take_bias(edit: Edit, result: Var) -> None:
    """layer_norm(x, scale) + bias -> layer_norm(x, scale, bias)"""
    for normed, bias in pairs(edit, result, ADD):
        norm = _norm_behind(edit, normed, result)
        if norm is None or norm.schema is not LAYER_NORM or len(norm.inputs) > 2:
            continue
        for fitted in _fitted(edit, bias, _rows(norm), normed):
            edit.replace(result, edit.add(norm.schema, (*norm.inputs, fitted), norm.attrs)[0])
            return


def _norm_behind(edit: Edit, normed: Var, result: Var) -> Operator | None:
    norm = edit.writer(normed)
    if norm is None or norm.schema not in (LAYER_NORM, RMS_NORM) or len(norm.outputs) > 1:
        return None
    if any(map(edit.is_old_state, norm.inputs)):
        return None
    return norm if edit.sole_reader(normed) is not None and normed.spec == result.spec else None


def _rows(norm: Operator) -> int:
    """How many axes are normalised."""
    ndim = norm.inputs[0].ndim
    return ndim - normalize_axis(norm.attrs["axis"], ndim)


def _fitted(edit: Edit, given: Var, rows: int, normed: Var) -> Iterator[Var]:
    """A scale or bias in a shape that broadcasts to the last axes, which are rows, if it has one."""
    lead, tail = given.shape[:-rows], given.shape[-rows:]
    if given is normed or given.dtype != normed.dtype or any(n != 1 for n in lead):
        return
    if any(n not in (1, m) for n, m in zip(reversed(tail), reversed(normed.shape), strict=False)):
        return
    if given.ndim <= rows:
        yield given
    elif given in edit.constants:
        yield edit.constant(edit.constants[given].reshape(tail), given.name)


@frozen(eq=False)
class _Spread:
    """TensorFlow's way: x * s + (bias - mean * s) with s = scale / sqrt(variance + epsilon)."""

    x: Var
    s: Var
    bias: Var
    mean: Var


def _replace_spread(edit: Edit, result: Var) -> None:
    for spread in _spreads(edit, result):
        for scale, norm in _spread_norms(edit, spread):
            (x, bias), rows = (norm.x, spread.bias), norm.x.ndim - norm.axis
            fits = [fitted for v in (scale, bias) for fitted in _fitted(edit, v, rows, x)]
            if len(fits) == 2 and x.spec == result.spec and are_pieces(edit, result, (x, scale, bias)):
                edit.replace(result, ops.layer_norm(x, fits[0], fits[1], norm.axis, norm.epsilon))
                return


def _spreads(edit: Edit, result: Var) -> Iterator[_Spread]:
    for scaled, shift in pairs(edit, result, ADD):
        for bias, centre in pairs(edit, shift, SUB):
            for mean, s in pairs(edit, centre, MUL):
                yield from (_Spread(x, s, bias, mean) for x, again in pairs(edit, scaled, MUL) if again is s)


def _spread_norms(edit: Edit, spread: _Spread) -> Iterator[tuple[Var, _Norm]]:
    """The scale, and the normalisation without it."""
    for a, axes in means(edit, spread.mean):
        for scale, below in root_quotients(edit, spread.s) if a is spread.x else ():
            for z, over, epsilon in _mean_squares(edit, below):
                if over == axes and any(x is a for x in centred(edit, z, axes)):
                    yield scale, _Norm(a, axes[0], epsilon, True)


LAYER_NORMS = RulePass("layer normalisation", recognise)
