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
    centred,
    is_replaceable,
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
    """A normalisation over the axes from `axis` on: x / rms(x), or (x - mean(x)) / deviation(x) if `is_centred`."""

    x: Var
    axis: int
    epsilon: float
    is_centred: bool

    def build(self, edit: Edit) -> Var:
        """Adds the operator, with scales of 1, and returns its result."""
        ones = edit.constant(np.ones(self.x.shape[self.axis :], self.x.dtype))
        make = ops.layer_norm if self.is_centred else ops.rms_norm
        return make(self.x, ones, axis=self.axis, epsilon=self.epsilon)


def recognise(edit: Edit, operator: Operator) -> None:
    """Replaces the formula of a normalisation by one operator, or merges a scale or a bias into one.

    1. (x - mean(x)) / sqrt(mean((x - mean(x))^2) + e) -> layer_norm(x, 1)
    2. x / sqrt(mean(x^2) + e) -> rms_norm(x, 1)
    3. norm(x, 1) * scale -> norm(x, scale)
    4. layer_norm(x, scale) + bias -> layer_norm(x, scale, bias)
    5. x s + (bias - mean(x) s), s = scale / sqrt(variance(x) + e) (TensorFlow) -> layer_norm(x, scale, bias)

    The means are over the last axes. The rule does not apply where something else reads a value of the formula, where
    x is overwritten state, or where a scale or bias does not broadcast to the normalised axes.
    """
    (result,) = operator.outputs[:1]
    if operator.schema in (DIV, MUL) and _replaced(edit, result):
        return
    if operator.schema is MUL:
        _merge_scale(edit, result)
    elif operator.schema is ADD:
        _merge_bias(edit, result)
        _replace_expanded(edit, result)


def _replaced(edit: Edit, result: Var) -> bool:
    """Replaces the formula that ends in `result`; returns whether it is a normalisation without scale (cases 1, 2)."""
    for norm in _norms(edit, result):
        if norm.x.spec == result.spec and is_replaceable(edit, result, (norm.x,)):
            edit.replace(result, norm.build(edit))
            return True
    return False


def _norms(edit: Edit, result: Var) -> Iterator[_Norm]:
    """Yields the normalisations without scale that compute a var."""
    for above, below in root_quotients(edit, result):
        for z, axes, epsilon in _mean_squares(edit, below):
            if z is not above:
                continue
            for x in centred(edit, z, axes):
                yield _Norm(x, axes[0], epsilon, True)
            yield _Norm(z, axes[0], epsilon, False)


def _mean_squares(edit: Edit, var: Var) -> Iterator[tuple[Var, Axes, float]]:
    """Yields (z, axes, epsilon) where var = mean(z ** 2) + epsilon over the last axes."""
    for mean, epsilon in with_number(edit, var):
        for square, axes in means(edit, mean):
            for z in squares(edit, square):
                if axes and axes == tuple(range(axes[0], z.ndim)) and z.dtype.kind == "f":
                    yield z, axes, epsilon


def _merge_scale(edit: Edit, result: Var) -> None:
    """Rewrites norm(x, 1) * scale to norm(x, scale)."""
    for normed, scale in pairs(edit, result, MUL):
        norm = _norm_writing(edit, normed, result)
        if norm is None or edit.uniform_value(norm.inputs[1]) != 1 or len(norm.inputs) > 2:
            continue
        for fitted in _fitted(edit, scale, _rows(norm), normed):
            edit.replace(result, edit.add(norm.schema, (norm.inputs[0], fitted), norm.attrs)[0])
            return


def _merge_bias(edit: Edit, result: Var) -> None:
    """Rewrites layer_norm(x, scale) + bias to layer_norm(x, scale, bias)."""
    for normed, bias in pairs(edit, result, ADD):
        norm = _norm_writing(edit, normed, result)
        if norm is None or norm.schema is not LAYER_NORM or len(norm.inputs) > 2:
            continue
        for fitted in _fitted(edit, bias, _rows(norm), normed):
            edit.replace(result, edit.add(norm.schema, (*norm.inputs, fitted), norm.attrs)[0])
            return


def _norm_writing(edit: Edit, normed: Var, result: Var) -> Operator | None:
    norm = edit.writer(normed)
    if norm is None or norm.schema not in (LAYER_NORM, RMS_NORM) or len(norm.outputs) > 1:
        return None
    if any(map(edit.is_overwritten_state, norm.inputs)):
        return None
    return norm if edit.sole_reader(normed) is not None and normed.spec == result.spec else None


def _rows(norm: Operator) -> int:
    """Returns the number of normalised axes."""
    ndim = norm.inputs[0].ndim
    return ndim - normalize_axis(norm.attrs["axis"], ndim)


def _fitted(edit: Edit, parameter: Var, rows: int, normed: Var) -> Iterator[Var]:
    """Yields a scale or bias in a shape of at most `rows` axes, if it broadcasts to the normalised ones."""
    lead, tail = parameter.shape[:-rows], parameter.shape[-rows:]
    if parameter is normed or parameter.dtype != normed.dtype or any(n != 1 for n in lead):
        return
    if any(n not in (1, m) for n, m in zip(reversed(tail), reversed(normed.shape), strict=False)):
        return
    if parameter.ndim <= rows:
        yield parameter
    elif parameter in edit.constants:
        yield edit.constant(edit.constants[parameter].reshape(tail), parameter.name)


@frozen(eq=False)
class _Expanded:
    """The formula of TensorFlow: x * s + (bias - mean * s) with s = scale / sqrt(variance + epsilon)."""

    x: Var
    s: Var
    bias: Var
    mean: Var


def _replace_expanded(edit: Edit, result: Var) -> None:
    for expanded in _expansions(edit, result):
        for scale, norm in _expanded_norms(edit, expanded):
            (x, bias), rows = (norm.x, expanded.bias), norm.x.ndim - norm.axis
            fits = [fitted for v in (scale, bias) for fitted in _fitted(edit, v, rows, x)]
            if len(fits) == 2 and x.spec == result.spec and is_replaceable(edit, result, (x, scale, bias)):
                edit.replace(result, ops.layer_norm(x, fits[0], fits[1], norm.axis, norm.epsilon))
                return


def _expansions(edit: Edit, result: Var) -> Iterator[_Expanded]:
    for scaled, shift in pairs(edit, result, ADD):
        for bias, centre in pairs(edit, shift, SUB):
            for mean, s in pairs(edit, centre, MUL):
                yield from (_Expanded(x, s, bias, mean) for x, again in pairs(edit, scaled, MUL) if again is s)


def _expanded_norms(edit: Edit, expanded: _Expanded) -> Iterator[tuple[Var, _Norm]]:
    """Yields the scale, and the normalisation without it."""
    for a, axes in means(edit, expanded.mean):
        for scale, below in root_quotients(edit, expanded.s) if a is expanded.x else ():
            for z, over, epsilon in _mean_squares(edit, below):
                if over == axes and any(x is a for x in centred(edit, z, axes)):
                    yield scale, _Norm(a, axes[0], epsilon, True)


LAYER_NORMS = RulePass("layer normalisation", recognise)
