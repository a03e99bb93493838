"""Kernels of every back-end, run on arrays beside pages without access, and inside wider arrays.

They give the bits that they give elsewhere.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

import numpy as np
from attrs import evolve

import engine
from engine import Graph, Operator, Var
from ops.schema.schema import Binding, Kernel, Signature
from ops.tensor.errors import OpError
from ops.tensor.layout import Layout
from ops.tensor.spec import FLOATS, Array, new_arrays
from tests.fuzz.base import GUARDED, Kind, Tried, WrongError, seed_text
from tests.fuzz.guarded_arrays import IS_THERE, guarded
from tests.fuzz.modes import same_bits
from tests.fuzz.program_steps import random_program
from tests.helpers.graphs.random_graphs import Choose, build, seeded
from tests.helpers.graphs.unplanned_run import random_feeds
from tests.helpers.ops.gradient_cases import FAMILIES
from tests.helpers.ops.kernel_checks import nested_copy


def attempt(path: Path) -> Tried:
    """Runs all operators of a small graph, and of its gradients, by all kernels that take them."""
    if not IS_THERE:
        return Tried("no such pages here")
    choose = seeded(int(path.read_text()))
    graph, feeds = _SOURCES[choose(len(_SOURCES))](choose, path)
    arrays: dict[Var, Array] = dict(graph.constants)
    arrays |= {var: feeds[name] for name, var in graph.inputs.items()}
    for operator in graph.operators:
        inputs = [arrays[v] for v in operator.inputs]
        outputs = _checked(operator, inputs, choose(4), at_end=choose(3) > 0)
        arrays |= dict(zip(operator.outputs, outputs, strict=True))
    return Tried("run")


def _checked(operator: Operator, inputs: Sequence[Array], axis: int, *, at_end: bool) -> Sequence[Array]:
    """Returns the outputs of the first kernel.

    Raises WrongError where a bit of some kernel's changes between guards, or with inputs inside arrays that are longer
    along an axis. Constants are packed by kernels that do so; with guards before an array, they are inputs like the
    others.
    """
    signature = operator.signature if at_end else evolve(operator.signature, constants=frozenset())
    kernels = [k for k in operator.schema.kernels if k.supports(signature)]
    outputs: Sequence[Array] = ()
    for kernel in kernels:
        with ExitStack() as stack:
            plain = _run(kernel, signature, inputs)
            beside = _run(kernel, signature, inputs, lambda a: stack.enter_context(guarded(a, at_end=at_end)))
        inside = _run(kernel, signature, [nested_copy(a, axis) for a in inputs])
        what = f"{operator.schema.name} by {kernel.name} of {kernel.backend}"
        for arrays, where in ((beside, "beside a guard"), (inside, "inside wider arrays")):
            same_bits(*({str(i): a for i, a in enumerate(outs)} for outs in (plain, arrays)), what=f"{what} {where}")
        outputs = outputs or plain
    if not outputs and operator.outputs:
        raise WrongError(f"no kernel of {operator.schema.name} takes {signature.inputs}")
    return outputs


def _run(
    kernel: Kernel, signature: Signature, inputs: Sequence[Array], place: Callable[[Array], Array] = np.asarray
) -> Sequence[Array]:
    """Returns the outputs of a kernel, which are copies; `place` may move each array that it uses."""
    dense = {i for i, a in enumerate(inputs) if not kernel.accepts(signature, i, Layout.of(a))}
    operands = [place(np.array(a, order="C") if i in dense else a) for i, a in enumerate(inputs)]
    outputs, temporaries = (
        [place(a) for a in new_arrays(specs)] for specs in (signature.outputs, kernel.temporaries(signature))
    )
    packed = kernel.pack(signature, {i: operands[i] for i in signature.constants}) if signature.constants else ()
    with np.errstate(all="ignore"):
        kernel.bind(Binding(signature, tuple(operands), tuple(outputs), tuple(temporaries), packed))()
    return [array.copy() for array in outputs]


def _of_family(choose: Choose, _: Path) -> tuple[Graph, dict[str, Array]]:
    """Returns a use of some operator in float32, with its gradients where it has them."""
    case = FAMILIES[choose(len(FAMILIES))](choose)
    feeds = {f"x{i}": np.asarray(a, np.float32 if a.dtype in FLOATS else a.dtype) for i, a in enumerate(case.arrays)}
    graph = Graph("case")
    inputs = [graph.input(name, a.shape, a.dtype.name) for name, a in feeds.items()]
    built = case.build(*inputs)
    y = built[0] if isinstance(built, tuple) else built
    with suppress(engine.EngineError, OpError):
        engine.gradients(y, [v for v in inputs if v.dtype in FLOATS], seed=graph.constant(np.ones(y.shape, y.dtype)))
    return graph, feeds


def _of_graph(choose: Choose, _: Path) -> tuple[Graph, dict[str, Array]]:
    graph = build(choose)
    return graph, random_feeds(graph)


def _of_program(choose: Choose, path: Path) -> tuple[Graph, dict[str, Array]]:
    """Returns a network of convolutions, products and norms, half of the time with channels last."""
    program = random_program(np.random.default_rng(choose(1 << 30)), "float32")
    path.write_bytes(program.model(program.steps[-1].outputs[:1]).SerializeToString())
    graph = engine.load_onnx(path)
    feeds = {name: array.astype(np.float32) for name, array in program.inputs.items()}
    return engine.optimise(graph, choose(4)), feeds


_SOURCES: tuple[Callable[[Choose, Path], tuple[Graph, dict[str, Array]]], ...] = (_of_family, _of_graph, _of_program)

PAGES = Kind("pages", GUARDED, "seed", seed_text, attempt)
