"""Faults of passes, each pass in turn: graphs that can be run, and compute something else."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from attrs import evolve

import engine
import ops
from engine import Graph, Operator
from engine.passes import writing
from engine.passes.cleanup import common, constants, redundant
from engine.passes.edit import Edit
from engine.passes.fold import affine as affine_rule
from engine.passes.fold import batch_norm
from engine.passes.fuse import conv, elementwise, matmul, quantised
from engine.passes.layout import nhwc_form, split_convs
from engine.passes.quantised import quantise
from engine.passes.recognise import transposes
from engine.planning.options import Options
from engine.stages.pass_values import judge_passes
from tests.helpers.faults.base import FORM, VALUES, Fault, Plant, Work, after, constant, patched
from tests.helpers.faults.work import weights
from tests.helpers.graphs.formula_graphs import layer_norm, softmax


def judged(build: Callable[[Graph], Any], *, level: int = 3) -> Work:
    """Returns what runs all passes over a graph, and compares what it computes before and after each."""

    def work() -> None:
        graph = Graph("judged")
        graph.output(build(graph), "y")
        judge_passes(graph, Options(optimise=level))

    return work


def with_attrs(target: Any, name: str, **attrs: Any) -> Plant:
    """Returns what makes a function of `ops` forget or change arguments that are given by name."""
    return patched(target, name, lambda right: lambda *args, **kwargs: right(*args, **{**kwargs, **attrs}))


def turned(graph: Graph) -> Any:
    return ops.transpose(ops.transpose(graph.input("x", (4, 4, 4)), (1, 2, 0)), (0, 2, 1))


def square(graph: Graph) -> Any:
    return ops.cum_sum(ops.transpose(graph.input("x", (4, 4))), 0)


def nothing(graph: Graph) -> Any:
    return ops.cum_sum(graph.input("x", (4, 4)) * 0.0, 0)


def folded(graph: Graph) -> Any:
    c = graph.constant(weights(4, 4))
    return ops.cum_sum(graph.input("x", (4, 4)), 0) + ops.tanh(c)


def slopes(graph: Graph) -> Any:
    x = ops.cum_sum(graph.input("x", (4, 4)), 0)
    return ops.reduce_sum(ops.leaky_relu(x, alpha=0.1), (0,)) + ops.reduce_sum(ops.leaky_relu(x, alpha=0.3), (0,))


def normed(graph: Graph) -> Any:
    return ops.neg(layer_norm(graph.input("x", (4, 16)) * 0.01))


def exponents(graph: Graph) -> Any:
    return ops.cum_sum(softmax(graph.input("x", (4, 4))), 0)


def gelu(graph: Graph) -> Any:
    x = graph.input("x", (4, 16))
    return ops.cum_sum((ops.erf(x / 2.0**0.5) + 1.0) * (x * 0.5), 0)


def region(graph: Graph) -> Any:
    x = ops.transpose(graph.input("x", (4, 4, 4)), (1, 2, 0))
    return ops.cum_sum(ops.transpose(ops.tanh(x) + weights(4), (2, 0, 1)), 0)


def flags(graph: Graph) -> Any:
    a, b = graph.input("a", (4, 4)), graph.input("b", (4, 4))
    return ops.gemm(ops.transpose(a), b, alpha=2.0)


def layer(graph: Graph) -> Any:
    y = ops.conv(graph.input("x", (1, 3, 8, 8)), weights(4, 3, 3, 3), pads=1)
    rows = [weights(4, seed=n) ** 2 + 0.5 for n in range(4)]
    return ops.cum_sum(ops.batch_norm(y, *rows), 0)


def product(graph: Graph) -> Any:
    x = graph.input("x", (8, 8))
    return ops.cum_sum(ops.relu((x @ weights(8, 8)) * 0.5 + weights(8)), 0)


def scaled(graph: Graph) -> Any:
    return ops.cum_sum((graph.input("x", (8, 8)) @ graph.input("z", (8, 8))) * 0.5, 0)


def guarded(graph: Graph) -> Any:
    x, z = graph.input("x", ("n", 4)), graph.input("z", ("m", 4))
    assert x.shape[0] != z.shape[0]
    return ops.reduce_sum(ops.relu(ops.identity(x)), (0,)) + ops.reduce_sum(ops.neg(z), (0,))


def chain(graph: Graph) -> Any:
    x: Any = graph.input("x", (8, 8))
    z: Any = graph.input("z", (8, 8))
    return ops.cum_sum(ops.exp(x - z) - ops.tanh(z) / (x * x + 1.0), 0)


def images(graph: Graph) -> Any:
    x = graph.input("x", (1, 4, 9, 9))
    y = ops.relu(ops.conv(x, weights(4, 4, 3, 3), pads=1))
    z: Any = ops.conv(ops.concat([y, ops.tanh(y)], axis=1), weights(4, 8, 3, 3), pads=1)
    return ops.cum_sum(ops.max_pool(z, (2, 2)), 0)


def halves(graph: Graph) -> Any:
    """Returns a convolution of a concatenation that is too large to be computed in place."""
    x = graph.input("x", (1, 4, 72, 72))
    y, z = (ops.conv(x, weights(4, 4, 3, 3, seed=n), pads=1) for n in range(2))
    return ops.conv(ops.concat([ops.tanh(y), ops.tanh(z)], axis=1), weights(4, 8, 3, 3), pads=1)


def codes(graph: Graph, *, add: bool = False) -> Any:
    """Returns a convolution between quantisations, as exporters write it, and an addition of codes."""
    zero = np.uint8(120)

    def rounded(x: Any, scale: float = 0.05) -> Any:
        step = np.float32(scale)
        return ops.dequantize_linear(ops.quantize_linear(x, step, zero), step, zero)

    def convolved(x: Any, seed: int, scale: float = 0.05) -> Any:
        codes_of = (weights(4, 4, 3, 3, seed=seed) * 40).clip(-127, 127).astype(np.int8)
        w = ops.dequantize_linear(graph.constant(codes_of), np.float32(0.004), np.int8(0))
        bias = ops.dequantize_linear(
            graph.constant(np.arange(4, dtype=np.int32) * 900), np.float32(0.0002), np.int32(0)
        )
        return rounded(ops.conv(x, w, bias, pads=1), scale)

    x = rounded(graph.input("x", (1, 4, 8, 8)))
    y = convolved(x, 0)
    return ops.reduce_sum(convolved(rounded(y + convolved(y, 1, 0.02)), 2) if add else y, (2, 3))


def inside(graph: Graph) -> Any:
    x = graph.input("x", (4, 4))
    return engine.fori_loop(3, lambda _, v: ops.tanh(v * 1.0) + v * 0.0, x)


def _product_by_one(right: Any) -> Callable[[Operator, float], bool]:
    return lambda operator, number: right(operator, number) or number == 0


def _one_more(outputs: tuple[Any, ...], *_: object) -> tuple[Any, ...]:
    return tuple(o + o.dtype.type(1) for o in outputs)


def _no_shift(function: Any, *_: object) -> Any:
    return function and evolve(function, shift=0 * function.shift)


def _no_addend(right: Any) -> Any:
    def with_addend(edit: Edit, inputs: Any, addend: Any, y: Any) -> Any:
        zero = edit.constant(np.zeros(addend.shape, addend.dtype))
        yield from right(edit, inputs, zero, y)

    return with_addend


def _operands_exchanged(result: tuple[Any, Any], *_: object) -> tuple[Any, Any]:
    inputs, program = result
    return inputs, tuple(evolve(s, operands=s.operands[::-1]) for s in program)


def _as_it_is(right: Any) -> Any:
    return lambda change, var: var if var in change.edit.constants else right(change, var)


def _unknown_constants(right: Any) -> Any:
    def signer(*args: Any) -> Any:
        signed = right(*args)
        return lambda *more: evolve(signed(*more), constants=frozenset())

    return signer


def _without_guards(graph: Any, *_: object) -> Any:
    graph._early_guards = ()
    return graph


_REDUNDANT = "engine/passes/cleanup/redundant.py"
_WRITING = "engine/passes/writing.py"
PASSES = (
    Fault(
        "the graph of a pass does not know its constants",
        _WRITING,
        FORM,
        patched(writing, "_signer", _unknown_constants),
        judged(region),
    ),
    Fault(
        "the graph of a pass has lost its guards",
        _WRITING,
        FORM,
        patched(writing, "_emptied", after(_without_guards)),
        judged(guarded),
    ),
    Fault(
        "movement: two permutations are merged in the wrong order",
        _REDUNDANT,
        VALUES,
        patched(redundant, "composed", lambda right: lambda one, other: right(other, one)),
        judged(turned),
    ),
    Fault(
        "no-ops: a transpose of a square is one",
        _REDUNDANT,
        VALUES,
        patched(redundant, "_covers", lambda _: lambda layout: layout is not None),
        judged(square),
    ),
    Fault(
        "neutral numbers: a product with 0 is one",
        _REDUNDANT,
        VALUES,
        patched(redundant, "_is_neutral", _product_by_one),
        judged(nothing),
    ),
    Fault(
        "constant folding: the result is one more",
        "engine/passes/cleanup/constants.py",
        VALUES,
        patched(constants, "_run", after(_one_more)),
        judged(folded),
    ),
    Fault(
        "common subexpressions: attributes are not compared",
        "engine/passes/cleanup/common.py",
        VALUES,
        patched(common, "attribute_key", constant(0)),
        judged(slopes),
    ),
    Fault(
        "layer normalisation: epsilon is that of nobody",
        "engine/passes/recognise/layer_norms.py",
        VALUES,
        patched(
            ops,
            "layer_norm",
            lambda right: lambda x, scale, bias=None, axis=-1, epsilon=0.0: right(x, scale, bias, axis, 10 * epsilon),
        ),
        judged(normed),
    ),
    Fault(
        "softmax: along the first axis",
        "engine/passes/recognise/softmaxes.py",
        VALUES,
        with_attrs(ops, "softmax", axis=0),
        judged(exponents),
    ),
    Fault(
        "activations: gelu by tanh in place of erf",
        "engine/passes/recognise/activations.py",
        VALUES,
        with_attrs(ops, "gelu", approximate="tanh"),
        judged(gelu),
    ),
    Fault(
        "transposes: constants keep their axes",
        "engine/passes/recognise/transposes.py",
        VALUES,
        patched(transposes._OrderChange, "_permuted", _as_it_is),
        judged(region),
    ),
    Fault(
        "gemm flags: a transpose vanishes without a flag",
        "engine/passes/recognise/transposes.py",
        VALUES,
        patched(
            transposes, "permutation", lambda right: lambda op: (0, 1) if op.inputs[0].shape == (4, 4) else right(op)
        ),
        judged(flags),
    ),
    Fault(
        "batch normalization folded: the shift is dropped",
        "engine/passes/fold/batch_norm.py",
        VALUES,
        patched(batch_norm, "affine", after(_no_shift)),
        judged(layer),
    ),
    Fault(
        "batch normalization folded: the variance is taken for its root",
        "engine/passes/fold/affine.py",
        VALUES,
        patched(affine_rule, "_normalization", after(lambda f, *_: f and evolve(f, factor=f.factor**2))),
        judged(layer),
    ),
    Fault(
        "convolutions fused: relu begins at 0.5",
        "engine/passes/fuse/conv.py",
        VALUES,
        patched(
            conv, "activation_attributes", after(lambda attrs, *_: {**attrs, "low": 0.5} if "low" in attrs else attrs)
        ),
        judged(images),
    ),
    Fault(
        "products fused: the bias is dropped",
        "engine/passes/fuse/matmul.py",
        VALUES,
        patched(matmul, "_with_addend", _no_addend),
        judged(product),
    ),
    Fault(
        "products fused: a scale is taken twice",
        "engine/passes/fuse/matmul.py",
        VALUES,
        patched(matmul, "_multiples", lambda right: lambda edit, op: ((v, n * n) for v, n in right(edit, op))),
        judged(scaled),
    ),
    Fault(
        "elementwise chains fused: operands are exchanged",
        "engine/passes/fuse/elementwise.py",
        VALUES,
        patched(elementwise, "_program", after(_operands_exchanged)),
        judged(chain),
    ),
    Fault(
        "channels last: what leaves a region has height and width exchanged",
        "engine/passes/layout/nhwc_form.py",
        VALUES,
        patched(
            nhwc_form, "inverse", after(lambda perm, *_: (*perm[:2], perm[3], perm[2]) if len(perm) == 4 else perm)
        ),
        judged(images),
    ),
    Fault(
        "convolutions in parts: each part has the weights of the first",
        "engine/passes/layout/split_convs.py",
        VALUES,
        patched(split_convs, "_part", lambda right: lambda weights_of, first, last: right(weights_of, 0, last - first)),
        judged(halves),
    ),
    Fault(
        "quantised operators: the bias is dropped",
        "engine/passes/quantised/quantise.py",
        VALUES,
        patched(quantise, "quantised_bias", after(lambda bias, *_: 0 * bias if bias is not None else bias)),
        judged(codes),
    ),
    Fault(
        "quantised additions fused: the two operands have each other's names",
        "engine/passes/fuse/quantised.py",
        VALUES,
        patched(
            quantised,
            "_fused",
            lambda right: lambda edit, op, producer, name: right(edit, op, producer, "ba"["ab".index(name)]),
        ),
        judged(partial(codes, add=True)),
    ),
    Fault(
        "bodies: what is inside a loop is taken for what is outside",
        _REDUNDANT,
        VALUES,
        patched(redundant, "_is_neutral", _product_by_one),
        judged(inside),
    ),
)
