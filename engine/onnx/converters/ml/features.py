"""Converters of what picks, joins and encodes features."""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from engine.onnx.converters.late import Versions
from engine.onnx.converters.ml.attributes import SINGLE, as_type, integers, named, reals, same_length, tensor_of
from engine.onnx.model_names import Value
from engine.onnx.node import Node
from engine.text.errors import ModelError
from ops.tensor.dims import dims_in
from ops.tensor.spec import Array

_INT64 = np.dtype("int64")
_DEFAULTS: Mapping[str, tuple[str, Any]] = MappingProxyType({"int64s": ("int64", -1), "floats": ("float", -0.0)})
"""For the values of a LabelEncoder: the end of the name of the default, and the default of that."""


def _array_feature_extractor(node: Node) -> tuple[Value, ...]:
    x, places = node.value(0), node.value(1)
    if len(x.shape) == 1:
        x = node.step("reshape", x, shape=(1, x.shape[0]))
    if len(places.shape) != 1:
        places = node.step("reshape", places, shape=(math.prod(places.shape),))
    return node.last("gather", x, places, axis=len(x.shape) - 1)


def _feature_vectorizer(node: Node) -> tuple[Value, ...]:
    parts, widths = [], integers(node, "inputdimensions")
    for i, part in enumerate(node.operands()):
        whole = node.step("reshape", part, shape=(1, part.shape[0])) if len(part.shape) == 1 else part
        width = whole.shape[-1]
        if i < len(widths) and not dims_in(width) and width != widths[i]:
            raise ModelError(f"inputdimensions says that input {i} has {widths[i]} columns; it has {width}")
        parts.append(as_type(node, whole, SINGLE))
    return node.last("concat", *parts, axis=1)


def _matches(node: Node, x: Value, keys: Array) -> Value:
    """Returns for each element and each key, along a new last axis, whether they are equal; NaN equals NaN."""
    apart = node.step("reshape", x, shape=(*x.shape, 1))
    equal = node.step("equal", apart, keys)
    is_nan = np.isnan(keys) if keys.dtype.kind == "f" else np.zeros(0, bool)
    if is_nan.any():
        equal = node.step("or", equal, node.step("and", node.step("is_nan", apart), is_nan))
    return node.step("cast", equal, to=np.dtype(np.uint8))


def _position(node: Node, matches: Value, missing: int) -> Value:
    """Returns the key that each element equals, or `missing`."""
    is_key = node.step("cast", node.step("reduce_max", matches, axes=(-1,), keepdims=0), to=np.dtype(bool))
    return node.step("where", is_key, node.step("arg_max", matches, axis=-1, keepdims=0), np.array(missing))


def _one_hot_encoder(node: Node) -> tuple[Value, ...]:
    """Converts OneHotEncoder. Without `zeros`, an element that is no category is refused in the run."""
    categories, x = integers(node, "cats_int64s"), as_type(node, node.value(0), _INT64)
    if not len(categories):
        raise node.refuse("categories that are texts are not supported; encode them before the model")
    matches = _matches(node, x, categories)
    if node.attr("zeros", 1):
        return node.last("cast", matches, to=SINGLE)
    count = len(categories)
    places = node.step("gather", np.arange(count), _position(node, matches, count), axis=0)
    return node.last("one_hot", places, np.array([0, 1], SINGLE), depth=count, axis=-1)


def _label_encoder(node: Node) -> tuple[Value, ...]:
    """Converts LabelEncoder between numbers. The last one of equal keys counts."""
    keys, (values, default) = _keys(node), _values(node)
    same_length(keys=keys, values=values)
    if not len(keys):
        raise ModelError("there are no keys")
    last = {None if np.isnan(key) else key: i for i, key in enumerate(keys.tolist())}
    kept = np.array(sorted(last.values()))
    x = as_type(node, node.value(0), keys.dtype)
    table = np.r_[values[kept], default].astype(values.dtype)
    return node.last("gather", table, _position(node, _matches(node, x, keys[kept]), len(kept)), axis=0)


def _keys(node: Node) -> Array:
    if "keys_tensor" in node.attrs:
        return tensor_of(node.attrs["keys_tensor"], "keys_tensor")
    if "keys_int64s" in node.attrs or "keys_floats" in node.attrs:
        return integers(node, "keys_int64s") if "keys_int64s" in node.attrs else reals(node, "keys_floats")
    raise _of_texts(node)


def _values(node: Node) -> tuple[Array, Any]:
    """Returns the values of a LabelEncoder, and the one for elements that are no key."""
    if "values_tensor" in node.attrs:
        values = tensor_of(node.attrs["values_tensor"], "values_tensor")
        other = node.attrs.get("default_tensor")
        default = (-1 if values.dtype.kind == "i" else -0.0) if other is None else tensor_of(other, "default_tensor")
        return values, default
    for kind, (name, default) in _DEFAULTS.items():
        if f"values_{kind}" in node.attrs:
            values = (integers if kind == "int64s" else reals)(node, f"values_{kind}")
            return values, node.attr(f"default_{name}", default)
    raise _of_texts(node)


def _of_texts(node: Node) -> Exception:
    return node.refuse("labels that are texts are not supported; encode them outside of the model")


def _zip_map(node: Node) -> tuple[Value, ...]:
    """Converts ZipMap, which only names the columns of its input: the input is handed on."""
    return (named(node, 0, node.value(0)),)


CONVERTERS: Mapping[str, Versions] = MappingProxyType(
    {
        "ArrayFeatureExtractor": ((1, _array_feature_extractor),),
        "FeatureVectorizer": ((1, _feature_vectorizer),),
        "LabelEncoder": ((2, _label_encoder),),
        "OneHotEncoder": ((1, _one_hot_encoder),),
        "ZipMap": ((1, _zip_map),),
    }
)
