"""Converters of linear models and of scalings."""

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from engine.onnx.converters.late import Versions
from engine.onnx.converters.ml.attributes import integers, named, reals, rows
from engine.onnx.converters.ml.scores import Classes, classify, classify_by_one, transform_of, transformed
from engine.onnx.model_names import Value
from engine.onnx.node import Node
from engine.text.errors import ModelError
from ops.tensor.dims import dims_in
from ops.tensor.spec import Array


def _products(node: Node, targets: int) -> Value:
    """Adds a score for each row and target: a sum of the row's elements, weighted, and an intercept."""
    coefficients, intercepts = reals(node, "coefficients"), reals(node, "intercepts")
    if targets < 1 or not len(coefficients) or len(coefficients) % targets:
        raise ModelError(f"{len(coefficients)} coefficients are not as many for each of {targets} targets")
    x = rows(node)
    scores = node.step("matmul", x, np.ascontiguousarray(coefficients.reshape(targets, -1).T))
    if not len(intercepts):
        return scores
    if len(intercepts) != targets:
        raise ModelError(f"{len(intercepts)} intercepts for {targets} targets")
    return node.step("add", scores, intercepts)


def _regressor(node: Node) -> tuple[Value, ...]:
    scores = _products(node, node.attr("targets", 1))
    return (named(node, 0, transformed(node, scores, transform_of(node))),)


def _classifier(node: Node) -> tuple[Value, ...]:
    classes, transform = Classes.of(node, "classlabels_ints"), transform_of(node)
    targets = len(reals(node, "intercepts")) or classes.count
    scores = _products(node, targets)
    if (targets, classes.count) == (1, 2):
        return classify_by_one(node, classes, scores, transform, least=0.0, of_one=True)
    if targets != classes.count:
        raise ModelError(f"{targets} intercepts for {classes.count} classes")
    return classify(node, classes, scores, transform)


def _scaler(node: Node) -> tuple[Value, ...]:
    x = _single(node)
    for schema, name in (("sub", "offset"), ("mul", "scale")):
        numbers = _for_each_feature(reals(node, name), x, name)
        x = node.step(schema, x, numbers) if len(numbers) else x
    return (named(node, 0, x),)


def _single(node: Node) -> Value:
    x = node.value(0)
    return x if x.dtype == np.float32 else node.step("cast", x, to=np.dtype(np.float32))


def _for_each_feature(numbers: Array, x: Value, name: str) -> Array:
    """Returns numbers of which there is one, or one for each element of the last axis. Raises ModelError."""
    length = x.shape[-1] if x.shape else 1
    if len(numbers) not in (0, 1) and not dims_in(length) and length != len(numbers):
        raise ModelError(f"{name} has {len(numbers)} numbers; x has {length} features")
    return numbers


def _normalizer(node: Node) -> tuple[Value, ...]:
    """Converts Normalizer: each row is divided by its norm, unless that is 0."""
    x, norm = _single(node), node.attr("norm", "MAX")
    if norm not in _NORMS:
        raise ModelError(f"norm is {norm!r}; it is one of {', '.join(_NORMS)}")
    if len(x.shape) not in (1, 2):
        raise ModelError(f"input 0 must have one or two dimensions; its shape is {x.shape}")
    norms = node.step(_NORMS[norm], x, axes=(len(x.shape) - 1,), keepdims=1)
    is_zero = node.step("equal", norms, node.like(0, norms))
    return node.last("div", x, node.step("where", is_zero, node.like(1, norms), norms))


def _imputer(node: Node) -> tuple[Value, ...]:
    """Converts Imputer: elements that equal a number become another one."""
    x = node.value(0)
    is_real = x.dtype.kind == "f"
    name = "imputed_value_floats" if is_real else "imputed_value_int64s"
    values = _for_each_feature((reals if is_real else integers)(node, name), x, name)
    if not len(values):
        raise ModelError(f"attribute {name!r} is missing; x has elements of type {x.dtype}")
    replaced = node.attr("replaced_value_float" if is_real else "replaced_value_int64", 0)
    is_replaced = node.step("is_nan", x) if np.isnan(replaced) else node.step("equal", x, node.like(replaced, x))
    with_type = values.astype(x.dtype)
    if not is_real and (with_type != values).any():
        raise ModelError(f"attribute {name!r} has numbers that {x.dtype} cannot hold")
    return node.last("where", is_replaced, with_type, x)


def _binarizer(node: Node) -> tuple[Value, ...]:
    x = node.value(0)
    is_above = node.step("greater", x, node.like(node.attr("threshold", 0.0), x))
    return node.last("cast", is_above, to=x.dtype)


_NORMS = MappingProxyType({"MAX": "reduce_max", "L1": "reduce_l1", "L2": "reduce_l2"})
CONVERTERS: Mapping[str, Versions] = MappingProxyType(
    {
        "Binarizer": ((1, _binarizer),),
        "Imputer": ((1, _imputer),),
        "LinearClassifier": ((1, _classifier),),
        "LinearRegressor": ((1, _regressor),),
        "Normalizer": ((1, _normalizer),),
        "Scaler": ((1, _scaler),),
    }
)
