"""Kernels are chosen that write where what they compute is put together with others."""

import numpy as np
import pytest

from engine import Graph
from engine.lower.lowering import lower
from engine.lower.output_layouts import output_layouts, writing_kernel
from ops.common.thunks import nothing
from ops.movement.concat import CONCAT
from ops.schema.backends import NUMBA, NUMPY, ONEDNN
from ops.schema.schema import Binding, Kernel, OpSchema, Thunk, any_strides, dense_only
from ops.tensor.layout import Layout
from ops.tensor.spec import TensorSpec

SPEC = TensorSpec((1, 4, 4, 8), np.dtype("float32"))
INSIDE = Layout(32, SPEC.shape, (1024, 256, 64, 4), 4)


def _bind(_: Binding) -> Thunk:
    return nothing


def _schema(*kernels: Kernel) -> OpSchema:
    return OpSchema("thing", lambda inputs, _: inputs, kernels)


def _kernel(backend: str, *, wide: bool) -> Kernel:
    return Kernel(backend, _bind, writes=any_strides if wide else dense_only, backend=backend)


@pytest.mark.parametrize(
    ("wide", "places", "chosen"),
    [
        ((), [INSIDE], ONEDNN),
        ((NUMBA,), [], ONEDNN),
        ((NUMBA,), [Layout.dense(SPEC)], ONEDNN),
        ((NUMBA,), [INSIDE], NUMBA),
        ((NUMBA, ONEDNN), [INSIDE], ONEDNN),
        ((NUMPY,), [INSIDE], ONEDNN),
    ],
)
def test_the_next_compiled_kernel_is_taken_where_it_alone_writes_there(
    wide: tuple[str, ...], places: list[Layout], chosen: str
) -> None:
    order = (ONEDNN, NUMBA, NUMPY)
    schema = _schema(*(_kernel(b, wide=b in wide) for b in reversed(order)))
    assert writing_kernel(schema, schema.sign([SPEC], {}), order, places).backend == chosen


def test_parts_of_concatenations_choose_by_where_they_will_lie() -> None:
    schema = _schema(_kernel(ONEDNN, wide=False), _kernel(NUMBA, wide=True), _kernel(NUMPY, wide=True))
    graph = Graph()
    x = graph.input("x", SPEC.shape)
    one, two, alone = (graph.add(schema, [x], {})[0] for _ in range(3))
    graph.output(graph.add(CONCAT, [one, two], {"axis": -1})[0], "y")
    graph.output(alone, "z")
    places = output_layouts(graph)
    assert list(map(id, places)) == [id(one), id(two)]
    assert [p.offset for v in (one, two) for p in places[v]] == [0, 32]
    calls = [c for c in lower(graph, backends=(ONEDNN, NUMBA, NUMPY)).calls if c.kernel in schema.kernels]
    assert [c.kernel.backend for c in calls] == [NUMBA, NUMBA, ONEDNN]
