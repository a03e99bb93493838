"""Why a call has its kernel: each kernel that was asked before it has a reason, and the reason is the kernel's own."""

import numpy as np
from hypothesis import given, settings

import engine
import ops
from engine import Graph
from engine.lower.kernel_choice import passed_over, why_not_text
from engine.lower.lowering import lower
from engine.report.kernels import kernel_table
from ops.schema.backends import NUMBA, NUMPY, PLAIN
from tests.helpers.graphs.random_graphs import graphs


@settings(max_examples=20)
@given(graphs())
def test_every_kernel_that_was_passed_over_has_a_reason(graph: Graph) -> None:
    lowered = lower(graph)
    for call in lowered.calls:
        if not call.operators:
            assert passed_over(lowered, call) == ()
            continue
        kernels = call.operators[0].schema.kernels
        asked = [k for backend in PLAIN for k in kernels if k.backend == backend]
        refused = passed_over(lowered, call)
        assert [(p.backend, p.kernel) for p in refused] == [
            (k.backend, k.name) for k in asked[: asked.index(call.kernel)]
        ]
        assert all(p.reason for p in refused)


def _double_graph() -> Graph:
    graph = Graph()
    x = graph.input("x", (3, 4), "float64")
    graph.output(ops.gelu(x, approximate="tanh"), "y")
    return graph


def test_the_table_of_kernels_and_the_story_of_an_operator_say_why() -> None:
    plan = engine.make_plan(_double_graph(), optimise=0)
    (call,) = plan.lowered.calls
    assert call.kernel.backend == NUMPY
    assert (
        why_not_text(plan.lowered, call)
        == f"not {NUMBA}: not float32; not {NUMBA}: not float64, or the approximation through tanh"
    )
    assert "not float32" in kernel_table(plan)
    assert f"  not {NUMBA} (vector): not float32" in str(plan.explain(operator=call.name)).splitlines()


def test_the_first_kernel_needs_no_reason() -> None:
    graph = Graph()
    graph.output(ops.relu(graph.input("x", (3, 4), np.float32)), "y")
    lowered = lower(graph)
    assert why_not_text(lowered, lowered.calls[0]) == ""
