"""Graphs in stripes compute what whole images do, to the bit."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import pytest
from attrs import evolve
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import engine
import ops
from engine.graph.graph import Graph
from engine.graph.operator import Operator
from engine.graph.var import Var
from engine.passes.cascade import choose, rows
from engine.passes.cascade.choices import Choice
from engine.passes.cascade.rewrite import _StripeWriter, _Writer, with_cascades
from engine.passes.cascade.rows import Part, Span, part_of
from engine.planning.placed import Cascade
from engine.text.errors import PassError
from ops.common.tiling import COLUMNS, ROWS
from ops.tensor.spec import Array
from tests.engine.passes.cascade.random_chains import (
    cascade_to,
    large_images,
    longest_cascade,
    random_chain,
    random_codes,
)

MODES: tuple[dict[str, Any], ...] = (
    {},
    {"mode": "dynamic"},
    {"debug": "poison"},
    {"threads": 1},
    {"parallel": "levels"},
    {"parallel": "edges", "threads": 2},
    {"order": "memory"},
)
NETWORKS: tuple[Callable[[int, int], Graph], ...] = (
    lambda seed, images: engine.optimise(random_chain(seed, images=images)),
    lambda seed, images: engine.optimise(random_chain(seed, images=images, wide=True)),
    lambda seed, images: engine.optimise(random_codes(seed, images=images)),
    lambda seed, images: engine.cast_storage(
        engine.optimise(random_chain(seed, images=images)), ("float16", "bfloat16")[seed % 2]
    ),
)
FEW_STEPS = 100
"""Steps of the search for addresses, which is not what is tested."""


def _random_cascades(graph: Graph, rng: np.random.Generator) -> Sequence[Cascade]:
    """Returns cascades of random lengths and heights, one behind the other, of rows or of columns.

    Some keep rows of some tensors or all; some take the image that they read in pieces.
    """
    cascades: list[Cascade] = []
    end = len(graph.operators)
    while end > 0:
        axis = int(rng.choice([ROWS, COLUMNS]))
        first, last = cascade_to(graph, end, int(rng.integers(2, 8)), axis)
        if first < last:
            share = rng.choice([0.0, 0.5, 1.0])
            rolling = tuple(position for position in range(first, last - 1) if rng.random() < share)
            in_pieces = bool(rng.integers(2)) and _reads_rows(graph.operators[first], axis)
            cascades.insert(0, Cascade(first, last, int(rng.integers(1, 9)), rolling, in_pieces, axis))
        end = min(first, end - 1)
    return cascades


def _reads_rows(operator: Operator, axis: int) -> bool:
    """Returns whether rows of what an operator reads first lie along an axis: a transposition reads other axes."""
    part = part_of(operator, 0, operator.outputs[0].shape[axis], axis)
    return part is not None and part.read[0] is not None and part.axes[0] == axis


def _feeds(graph: Graph) -> dict[str, Array]:
    rng = np.random.default_rng(5)
    return {name: _values(rng, v.shape, v.dtype) for name, v in graph.inputs.items()}


def _values(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> Array:
    return rng.integers(0, 256, shape, dtype) if dtype == np.uint8 else rng.standard_normal(shape, dtype)


def _run(graph: Graph, **options: Any) -> Array:
    return engine.compile(graph, optimise=0, nodes=FEW_STEPS, **options).run(_feeds(graph))["y"]


@pytest.mark.slow
@settings(max_examples=25)
@given(st.sampled_from(NETWORKS), st.integers(0, 2**32 - 1), st.integers(1, 3), st.sampled_from(MODES))
def test_stripes_compute_every_bit_of_whole_images(
    network: Callable[[int, int], Graph], seed: int, images: int, options: dict[str, Any]
) -> None:
    graph = network(seed, images)
    cascades = _random_cascades(graph, np.random.default_rng(seed))
    try:
        cut = with_cascades(graph, cascades)
    except PassError:  # a stripe reads nothing but pads
        return
    threads = {
        name: options[name] for name in ("threads", "parallel") if name in options
    }  # libraries may sum otherwise
    np.testing.assert_array_equal(_run(cut, **options), _run(graph, **threads))


def _short(part_of: Callable[..., Part | None], operator: Operator, first: int, last: int, axis: int) -> Part | None:
    """Returns a part whose windows read one row too few below, as if pads began there."""
    part = part_of(operator, first, last, axis)
    if (
        part is None
        or "pads" not in part.attrs
        or part.read[0] is None
        or part.read[0][1] == operator.inputs[0].shape[axis]
    ):
        return part
    pads = list(part.attrs["pads"])
    pads[len(pads) // 2 + axis - ROWS] += 1
    attrs = {**part.attrs, "pads": tuple(pads)}
    return evolve(part, read=((part.read[0][0], part.read[0][1] - 1), *part.read[1:]), attrs=attrs)


def _cut_by_hand(monkeypatch: pytest.MonkeyPatch, graph: Graph, *, keeps_rows: bool, axis: int = ROWS) -> None:
    """Lets the search find one cascade alone: of as many operators as it can have, in stripes of 4 rows or columns."""
    graph = engine.optimise(graph)
    first, end = longest_cascade(graph, axis)
    alone = Cascade(first, end, 4, tuple(range(first, end - 1)) if keeps_rows else (), axis=axis)
    monkeypatch.setattr(choose, "search_cascades", lambda *_: [Choice(0, 0.0, 0.0, (alone,))])


@pytest.mark.parametrize(("keeps_rows", "axis"), [(False, ROWS), (True, ROWS), (False, COLUMNS), (True, COLUMNS)])
def test_windows_that_read_a_row_too_few_are_caught_by_the_judge_of_values(
    monkeypatch: pytest.MonkeyPatch, keeps_rows: bool, axis: int
) -> None:
    graph = large_images()
    _cut_by_hand(monkeypatch, graph, keeps_rows=keeps_rows, axis=axis)
    cut = engine.compile(graph, cascade=True, debug="poison", nodes=FEW_STEPS)
    assert cut.plan.optimisation[0].cascades
    monkeypatch.setattr(rows, "part_of", partial(_short, rows.part_of))
    with pytest.raises(PassError, match="'cascades' moves 'y'"):
        engine.compile(graph, cascade=True, debug="poison", nodes=FEW_STEPS)
    engine.compile(graph, debug="poison", nodes=FEW_STEPS)


@pytest.mark.parametrize("axis", [ROWS, COLUMNS])
def test_a_stale_line_among_the_kept_rows_is_caught_by_the_judge_of_values(
    monkeypatch: pytest.MonkeyPatch, axis: int
) -> None:
    graph = large_images()
    _cut_by_hand(monkeypatch, graph, keeps_rows=True, axis=axis)
    slice_of = _StripeWriter._slice

    def one_line_late(writer: _StripeWriter, held: Any, span: Span, var: Var, axis: int) -> Var:
        back = 1 if held.first < span[0] and var in writer.stripes.first else 0
        return slice_of(writer, held, (span[0] - back, span[1] - back), var, axis)

    monkeypatch.setattr(_StripeWriter, "_slice", one_line_late)
    with pytest.raises(PassError, match="'cascades' moves 'y'"):
        engine.compile(graph, cascade=True, debug="poison", nodes=FEW_STEPS)


def test_kept_rows_that_are_one_line_short_are_no_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = large_images()
    _cut_by_hand(monkeypatch, graph, keeps_rows=True)
    first = rows._first
    monkeypatch.setattr(rows, "_first", lambda *args: [row + 1 for row in first(*args)])
    with pytest.raises((PassError, ops.OpError)):
        engine.compile(graph, cascade=True, debug="poison", nodes=FEW_STEPS)


def test_names_of_what_is_cut_stay_known() -> None:
    graph = engine.optimise(large_images())
    last = len(graph.operators)
    first, end = next(run for run in (cascade_to(graph, n, 3) for n in range(last, 0, -1)) if run[1] - run[0] > 1)
    cut = with_cascades(graph, [Cascade(first, end, 4)])
    names = [operator.name for operator in graph.operators[first:end]]
    assert {cut.vanished.operators[name].place for name in names} == {f"{names[-1]}/joined"}
    assert graph.operators[end - 1].outputs[0].name in cut.vars


def test_operators_that_are_no_cascade_are_refused() -> None:
    graph = engine.optimise(large_images())
    with pytest.raises(PassError, match="cannot be computed in stripes"):
        with_cascades(graph, [Cascade(0, len(graph.operators), 4)])


def _in_pieces(graph: Graph) -> Graph:
    """Returns the optimised graph of `large_images` in 16 stripes, which take the transposed input in pieces."""
    return with_cascades(graph, [Cascade(1, 5, 4, (1, 2, 3), in_pieces=True)])


def test_an_image_in_pieces_is_read_before_the_first_stripe() -> None:
    graph = engine.optimise(large_images())
    cut = _in_pieces(graph)
    names = [operator.schema.name for operator in cut.operators]
    first = names.index("nhwc_conv")
    assert sorted(names[:first]) == ["copy"] * 16 + ["slice"] * 16 + ["transpose"]
    views = {v for operator in cut.operators[:first] if operator.schema.name != "copy" for v in operator.outputs}
    assert not views & {v for operator in cut.operators[first:] for v in operator.inputs}
    np.testing.assert_array_equal(_run(cut), _run(graph))


def test_a_piece_that_is_one_row_late_is_caught_by_the_judge_of_values(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = large_images()
    alone = Cascade(1, 5, 4, (1, 2, 3), in_pieces=True)
    monkeypatch.setattr(choose, "search_cascades", lambda *_: [Choice(0, 0.0, 0.0, (alone,))])
    slice_of = _Writer.slice

    def one_row_late(writer: _Writer, var: Var, span: Span, axis: int, name: str) -> Var:
        late = 1 if var.name == "transpose_0" and span[1] < var.shape[axis] else 0
        return slice_of(writer, var, (span[0] + late, span[1] + late), axis, name)

    monkeypatch.setattr(_Writer, "slice", one_row_late)
    with pytest.raises(PassError, match="'cascades' moves 'y'"):
        engine.compile(graph, cascade=True, debug="poison", nodes=FEW_STEPS)


@pytest.mark.parametrize(
    "cascade",
    [
        Cascade(0, 2, 4, (0,)),  # the result does not depend on the first output
        Cascade(1, 3, 4),  # the last operator has two outputs
        Cascade(2, 4, 4, (2,)),  # the first one has
        Cascade(3, 5, 4),  # another operator reads the first output, too
        Cascade(3, 7, 4, (3, 4, 5)),  # rows are summed
    ],
)
def test_what_no_stripe_can_compute_is_refused(cascade: Cascade) -> None:
    graph = engine.Graph("apart")
    x = graph.input("x", (1, 12, 8, 4))
    used, other = x * 2.0, x * 3.0
    joined: Var = ops.concat(ops.split(used, 2, axis=3), axis=3)
    total = ops.reduce_sum(joined * 0.5 + joined, axes=(1,), keepdims=False)
    for name, var in {"total": total, "other": other}.items():
        graph.output(var, name)
    with pytest.raises(PassError, match="cannot be computed in stripes"):
        with_cascades(graph, [cascade])


@given(st.integers(0, 2**32 - 1), st.data())
def test_any_run_of_operators_is_cut_or_refused(seed: int, data: st.DataObject) -> None:
    graph = engine.optimise(random_chain(seed, layers=3))
    assume(graph.operators)
    first = data.draw(st.integers(0, len(graph.operators) - 1))
    last = data.draw(st.integers(first + 1, len(graph.operators)))
    rolling = data.draw(st.sets(st.integers(first, last - 1)))
    height, in_pieces, axis = data.draw(st.tuples(st.integers(1, 50), st.booleans(), st.sampled_from([ROWS, COLUMNS])))
    cascade = Cascade(first, last, height, tuple(sorted(rolling)), in_pieces, axis)
    with suppress(PassError):
        assert with_cascades(graph, [cascade]).outputs.keys() == graph.outputs.keys()
