"""The judge of places: right plans pass under all options; what was asked for and is not kept is seen."""

from typing import Any

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
import ops
from allocator.derive import chunks
from engine import ExecutionPlan, Graph
from engine.check import Asked, check_placement
from engine.planning import solving
from engine.planning.placed import Place
from engine.text.errors import PlacementError
from tests.helpers.graphs.random_graphs import graphs

ASKED = st.fixed_dictionaries(
    {"alignment": st.sampled_from([1, 2, 64, 256]), "padding": st.sampled_from([0, 1, 64])},
    optional={name: st.booleans() for name in ("views", "overwrite", "reuse", "nest")},
)


def asked(plan: ExecutionPlan) -> Asked:
    """Returns what the options of a plan ask for."""
    return Asked(plan.options.alignment, plan.options.padding)


def moved(plan: ExecutionPlan, name: str, offset: int) -> ExecutionPlan:
    """Returns the plan with a value at another byte, and room for it."""
    places = list(plan.places)
    (value,) = (v.id for v in plan.lowered.values if v.name == name)
    places[value] = evolve(places[value], layout=places[value].layout.starting_at(offset))
    return evolve(plan, places=tuple(places), plan=evolve(plan.plan, arena_bytes=plan.arena_bytes + offset + 4096))


def place(plan: ExecutionPlan, name: str) -> Place:
    """Returns the place of a value."""
    return next(p for p, v in zip(plan.places, plan.lowered.values, strict=True) if v.name == name)


def chain() -> Graph:
    """Returns a graph of three matrix products, of which none overwrites an input."""
    graph = Graph("chain")
    x = graph.input("x", (8, 8))
    for _ in range(3):
        x = x @ x
    graph.output(x, "y")
    return graph


@settings(max_examples=40, deadline=None)
@given(graphs(), ASKED, st.sampled_from(["", "exact", "levels"]))
def test_what_was_asked_for_is_kept(graph: Graph, options: dict[str, Any], parallel: str) -> None:
    plan = engine.make_plan(graph, parallel=parallel, optimise=0, **options)
    check_placement(plan, asked(plan))


@pytest.mark.parametrize("alignment", [64, 4096])
def test_an_alignment_that_is_ignored_is_seen(monkeypatch: pytest.MonkeyPatch, alignment: int) -> None:
    with monkeypatch.context() as patch:
        right = chunks.to_problem
        patch.setattr(solving, "to_problem", lambda own, _, padding: right(own, 4, padding))
        with pytest.raises(PlacementError, match=rf"lies at byte \d+; the alignment is {alignment}"):
            engine.make_plan(uneven(), alignment=alignment, optimise=0)
    assert engine.make_plan(uneven(), alignment=alignment, optimise=0).arena_bytes


def uneven() -> Graph:
    """Returns a graph whose tensors have 4 bytes more than a multiple of 64."""
    graph = Graph("uneven")
    x = graph.input("x", (17,))
    graph.output(ops.cum_sum(x, 0) + ops.cum_sum(ops.cum_sum(x, 0), 0), "y")
    return graph


def test_elements_and_temporaries_are_aligned_whatever_was_asked_for() -> None:
    plan = engine.make_plan(uneven(), alignment=1, optimise=0)
    with pytest.raises(PlacementError, match="'x' lies at byte 2; its elements have 4 bytes"):
        check_placement(moved(plan, "x", 2), asked(plan))
    graph = Graph("products")
    graph.output(ops.softmax(graph.input("x", (4, 8)), axis=0), "y")
    plan = engine.make_plan(graph, alignment=1, optimise=0, backend="numpy")
    workspace = next(v.name for v in plan.lowered.values if v.name.endswith("/workspace"))
    with pytest.raises(PlacementError, match="the alignment is 64"):
        check_placement(moved(plan, workspace, plan.arena_bytes // 64 * 64 + 32), asked(plan))


@pytest.mark.parametrize("padding", [1, 64])
def test_padding_that_is_missing_is_seen(monkeypatch: pytest.MonkeyPatch, padding: int) -> None:
    right = chunks.to_problem
    monkeypatch.setattr(solving, "to_problem", lambda own, alignment, _: right(own, alignment, 0))
    with pytest.raises(PlacementError, match=f"there are no {padding} bytes of padding between them"):
        engine.make_plan(chain(), padding=padding, optimise=0)


def test_a_value_that_is_written_into_padding_behind_it_or_before_it_is_seen() -> None:
    plan = engine.make_plan(chain(), padding=64, optimise=0)
    check_placement(plan, asked(plan))
    low, high = place(plan, "matmul_0").layout.extent
    for offset in (high, low - 256):
        with pytest.raises(PlacementError, match="padding"):
            check_placement(moved(moved(plan, "matmul_0", low), "matmul_1", max(offset, 0)), asked(plan))


def test_a_pinned_value_and_reserved_bytes_are_watched() -> None:
    plan = engine.make_plan(chain(), optimise=0)
    (value,) = (v.id for v in plan.lowered.values if v.name == "x")
    low, high = place(plan, "x").layout.extent
    check_placement(plan, Asked(64, 0, {value: low}))
    with pytest.raises(PlacementError, match=f"'x' lies at byte {low}, and is pinned to {low + 64}"):
        check_placement(plan, Asked(64, 0, {value: low + 64}))
    end = plan.arena_bytes
    check_placement(plan, Asked(64, reserved=((end, end + 64),)))
    with pytest.raises(PlacementError, match="are reserved"):
        check_placement(plan, Asked(64, reserved=((high - 1, high + 63),)))
