"""Graphs in stripes compute what whole images do, to the bit."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
from engine.graph.graph import Graph
from engine.graph.operator import Operator
from engine.passes.cascade import rows
from engine.passes.cascade.rewrite import with_cascades
from engine.passes.cascade.rows import Part, Stripe, is_image
from engine.planning.placed import Cascade
from engine.text.errors import PassError
from ops.common.tiling import ROWS
from ops.tensor.spec import Array
from tests.engine.passes.cascade.random_chains import large_images, random_chain, random_codes

MODES: tuple[dict[str, Any], ...] = (
    {},
    {"mode": "dynamic"},
    {"debug": "poison"},
    {"threads": 1},
    {"parallel": "levels"},
    {"order": "memory"},
)
FEW_STEPS = 100
"""Steps of the search for addresses, which is not what is tested."""


def _cascade_to(graph: Graph, end: int, most: int) -> tuple[int, int]:
    """Returns the longest run of at most `most` operators in front of a position that can be cut into stripes."""
    (result,) = graph.operators[end - 1].outputs
    read_later = {v for operator in graph.operators[end:] for v in operator.inputs} | set(graph.outputs.values())
    first = end
    stripe = Stripe({result: (0, result.shape[ROWS])} if is_image(result) else {})
    while first > max(end - most, 0) and (first == end or graph.operators[first - 1].outputs[0] not in read_later):
        if not stripe.take(graph.operators[first - 1]):
            break
        first -= 1
    return first, end


def _random_cascades(graph: Graph, rng: np.random.Generator) -> Sequence[Cascade]:
    """Returns cascades of random lengths and heights, one behind the other."""
    cascades: list[Cascade] = []
    end = len(graph.operators)
    while end > 0:
        first, last = _cascade_to(graph, end, int(rng.integers(2, 8)))
        if first < last:
            cascades.insert(0, Cascade(first, last, int(rng.integers(1, 9))))
        end = min(first, end - 1)
    return cascades


def _feeds(graph: Graph) -> dict[str, Array]:
    rng = np.random.default_rng(5)
    return {name: _values(rng, v.shape, v.dtype) for name, v in graph.inputs.items()}


def _values(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> Array:
    return rng.integers(0, 256, shape, dtype) if dtype == np.uint8 else rng.standard_normal(shape, dtype)


def _run(graph: Graph, **options: Any) -> Array:
    return engine.compile(graph, optimise=0, nodes=FEW_STEPS, **options).run(_feeds(graph))["y"]


@pytest.mark.slow
@settings(max_examples=25)
@given(st.sampled_from([random_chain, random_chain, random_codes]), st.integers(0, 2**32 - 1), st.sampled_from(MODES))
def test_stripes_compute_every_bit_of_whole_images(
    network: Callable[[int], Graph], seed: int, options: dict[str, Any]
) -> None:
    graph = engine.optimise(network(seed))
    cascades = _random_cascades(graph, np.random.default_rng(seed))
    try:
        cut = with_cascades(graph, cascades)
    except PassError:  # a stripe reads nothing but pads
        return
    threads = {name: options[name] for name in ("threads",) if name in options}  # libraries may sum otherwise
    np.testing.assert_array_equal(_run(cut, **options), _run(graph, **threads))


def _short(part_of: Callable[..., Part | None], operator: Operator, first: int, last: int) -> Part | None:
    """Returns a part whose windows read one row too few below, as if pads began there."""
    part = part_of(operator, first, last)
    if (
        part is None
        or "pads" not in part.attrs
        or part.read[0] is None
        or part.read[0][1] == operator.inputs[0].shape[1]
    ):
        return part
    before, right, after, left = part.attrs["pads"]
    attrs = {**part.attrs, "pads": (before, right, after + 1, left)}
    return evolve(part, read=((part.read[0][0], part.read[0][1] - 1), *part.read[1:]), attrs=attrs)


def test_a_halo_that_is_one_row_short_is_caught_by_the_judge_of_values(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = large_images()
    engine.compile(graph, cascade=True, debug="poison", nodes=FEW_STEPS)
    monkeypatch.setattr(rows, "part_of", partial(_short, rows.part_of))
    with pytest.raises(PassError, match="'cascades' moves 'y'"):
        engine.compile(graph, cascade=True, debug="poison", nodes=FEW_STEPS)
    engine.compile(graph, debug="poison", nodes=FEW_STEPS)


def test_names_of_what_is_cut_stay_known() -> None:
    graph = engine.optimise(large_images())
    last = len(graph.operators)
    first, end = next(run for run in (_cascade_to(graph, n, 3) for n in range(last, 0, -1)) if run[1] - run[0] > 1)
    cut = with_cascades(graph, [Cascade(first, end, 4)])
    names = [operator.name for operator in graph.operators[first:end]]
    assert {cut.vanished.operators[name].place for name in names} == {f"{names[-1]}/joined"}
    assert graph.operators[end - 1].outputs[0].name in cut.vars


def test_operators_that_are_no_cascade_are_refused() -> None:
    graph = engine.optimise(large_images())
    with pytest.raises(PassError, match="cannot be computed in stripes"):
        with_cascades(graph, [Cascade(0, len(graph.operators), 4)])
