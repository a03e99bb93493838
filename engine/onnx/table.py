"""The table of operators by domain, name and operator set, and a check that a model needs no others."""

from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from engine.onnx.converters import (
    constant,
    control,
    elementwise,
    index,
    nn,
    quantised,
    recurrent,
    reduce,
    resize,
    shape,
)
from engine.onnx.converters.late import LateTable, Versions
from engine.onnx.converters.onnxruntime import attention, group_query, integer_products, layers, norms, rotary
from engine.onnx.converters.onnxruntime import quantised as quantised_layers
from engine.onnx.declarations import nodes_in
from engine.onnx.functions import Functions
from engine.onnx.library import all_nodes, domain_of
from engine.onnx.node import Converter
from engine.onnx.opaque import OpaqueRules, advice, key_of, shown
from engine.onnx.registered import registered
from engine.text.errors import UnsupportedError

FAMILIES = (constant, control, elementwise, index, nn, quantised, recurrent, reduce, resize, shape)
CONVERTERS: Mapping[str, Versions] = MappingProxyType({k: v for f in FAMILIES for k, v in f.CONVERTERS.items()})
"""The operators of the default domain by name, but for those that few models have."""
RARE = LateTable(
    {
        "engine.onnx.converters.random_numbers": (
            "Bernoulli Dropout Multinomial RandomNormal RandomNormalLike RandomUniform RandomUniformLike"
        ),
        "engine.onnx.converters.sequences": (
            "ConcatFromSequence Optional OptionalGetElement OptionalHasElement SequenceAt SequenceConstruct "
            "SequenceEmpty SequenceErase SequenceInsert SequenceLength SequenceMap SplitToSequence"
        ),
        "engine.onnx.converters.spectral": "DFT MelWeightMatrix STFT",
        "engine.onnx.converters.vision": "DeformConv MaxRoiPool MaxUnpool RoiAlign",
    }
)
"""The other operators of the default domain by name."""
ONNXRUNTIME_FAMILIES = (attention, group_query, integer_products, layers, norms, quantised_layers, rotary)
ONNXRUNTIME: Mapping[str, Versions] = MappingProxyType(
    {k: v for f in ONNXRUNTIME_FAMILIES for k, v in f.CONVERTERS.items()}
)
"""The operators of onnxruntime's own domain by name."""
ML = LateTable(
    {
        "engine.onnx.converters.ml.features": (
            "ArrayFeatureExtractor FeatureVectorizer LabelEncoder OneHotEncoder ZipMap"
        ),
        "engine.onnx.converters.ml.linear": "Binarizer Imputer LinearClassifier LinearRegressor Normalizer Scaler",
        "engine.onnx.converters.ml.trees": "TreeEnsemble TreeEnsembleClassifier TreeEnsembleRegressor",
    }
)
"""The operators of the domain ai.onnx.ml by name."""
_DOMAINS = MappingProxyType(
    {"": (CONVERTERS, RARE, norms.DEFAULT_DOMAIN), "com.microsoft": (ONNXRUNTIME,), "ai.onnx.ml": (ML,)}
)
"""The tables of a domain; the first one that has a converter for the version decides."""
_ONE_PROCESSOR = "com.microsoft.nchwc"
"""The domain of operators whose layout is that of a processor's vectors."""


def converter(domain: str, op_type: str, version: int) -> Converter | None:
    """Returns the converter of an operator in a version of its operator set, or None."""
    converters = (_newest(table.get(op_type, ()), version) for table in _DOMAINS.get(domain, ()))
    return next((convert for convert in converters if convert), None)


def _newest(versions: Versions, version: int) -> Converter | None:
    convert = None
    for since, candidate in versions:
        convert = candidate if since <= version else convert
    return convert


def check_operators(model: Any, opsets: Mapping[str, int], functions: Functions, rules: OpaqueRules) -> None:
    """Raises UnsupportedError that lists all operators of a ModelProto, branches included, that cannot be read.

    That are those that nobody implements and that nobody tells the outputs of. Raises OptionError for a rule for an
    operator that the model does not have, or that is implemented.
    """

    def is_known(proto: Any) -> bool:
        domain, version = domain_of(proto.domain), opsets.get(domain_of(proto.domain), 0)
        ours = registered(domain, proto.op_type) or functions.own(proto) or converter(domain, proto.op_type, version)
        return ours is not None or functions.is_defined(proto, version)

    nodes = [(proto, graph) for proto, graph in nodes_in(model.graph) if not is_known(proto)]
    for proto, _ in nodes:
        _check_layout(proto)
    inside = (proto for function in model.functions for proto in all_nodes(function.node))
    rules.check({key_of(proto) for proto in (*(proto for proto, _ in nodes), *inside)})
    unread = [proto for proto, graph in nodes if rules.missing(proto, graph)]
    if unread:
        counts = Counter(_shown(proto, opsets) for proto in unread)
        listed = ", ".join(f"{name} x{count}" if count > 1 else name for name, count in counts.items())
        raise UnsupportedError(f"the model uses operators that are not supported: {listed}; {advice(unread[0])}")


def _check_layout(proto: Any) -> None:
    """Raises UnsupportedError for an operator on tensors in the layout of one processor: no shape tells its bytes."""
    if domain_of(proto.domain) == _ONE_PROCESSOR:
        reason = "this file was optimised for one processor; save it at the extended level"
        raise UnsupportedError(f"operator {shown(proto)}: {reason}")


def _shown(proto: Any, opsets: Mapping[str, int]) -> str:
    domain = domain_of(proto.domain)
    opset = f"opset {opsets[domain]}" if domain in opsets else "of no imported operator set"
    return f"{shown(proto)} ({opset})"
