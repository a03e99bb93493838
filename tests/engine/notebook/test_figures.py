"""The bokeh figure: its columns are the plan's, and no name is read as anything else."""

import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import engine
from engine import Graph
from engine.notebook import figure
from engine.text.errors import EngineError, OptionError
from engine.text.names import printable
from engine.trace.rectangles import rectangles_of
from tests.helpers.graphs.random_graphs import build, graphs, seeded
from tests.helpers.traces.copied_beside import copied_beside
from tests.helpers.traces.hostile_names import HOSTILE, synthetic_trace

MODELS = pytest.importorskip("bokeh.models")
EMBED = pytest.importorskip("bokeh.embed")
RESOURCES = pytest.importorskip("bokeh.resources")


def _columns(plot: Any) -> dict[str, np.ndarray[Any, Any]]:
    """Returns the columns of all rectangles, in the order of their addresses and ticks."""
    sources = [s.data for s in plot.select({"type": MODELS.ColumnDataSource}) if s.name == "chunks"]
    if not sources:
        return {}
    joined = {key: np.concatenate([source[key] for source in sources]) for key in sources[0]}
    order = np.lexsort((joined["name"], joined["bottom"], joined["begin"]))
    return {key: column[order] for key, column in joined.items()}


@pytest.mark.slow
@settings(max_examples=10)
@given(graphs())
def test_bokeh_rectangles_are_the_chunks_of_the_plan(graph: Graph) -> None:
    plan = engine.make_plan(graph, optimise=0)
    columns, chunks = _columns(figure(plan)), plan.chunks
    if not columns:
        assert not len(chunks.size)
        return
    wanted = sorted(zip(chunks.begin, chunks.end, plan.plan.offset, plan.plan.offset + plan.problem.size, strict=True))
    keys = ("begin", "until", "bottom", "top")
    assert sorted(zip(*(columns[key].tolist() for key in keys), strict=True)) == wanted
    assert int(columns["top"].max()) == plan.arena_bytes


@pytest.mark.slow
@settings(max_examples=10)
@given(graphs())
def test_curves_reach_the_peak_of_the_report(graph: Graph) -> None:
    plan = engine.make_plan(graph, optimise=0)
    (source,) = (s.data for s in figure(plan).select({"type": MODELS.ColumnDataSource}) if s.name == "curves")
    assert max(source["live"], default=0) == plan.trace().facts.peak_bytes == plan.report().peak_bytes
    of = rectangles_of(plan.trace())
    assert set(zip(source["time"], source["live"], strict=True)) <= set(zip(of.tick, of.live, strict=True))


def test_several_memories_stand_upon_each_other_with_their_weights() -> None:
    plan = copied_beside()
    shown, of = figure(plan), rectangles_of(plan.trace())
    columns = _columns(shown)
    parts = {part.name: part for part in of.facts.memories}
    floors, floor = dict[str, int](), 0
    for name, part in parts.items():
        floors[name], floor = floor, floor + part.used_bytes
    rows = zip(*(columns[key].tolist() for key in ("name", "memory", "address", "bottom", "top")), strict=True)
    places = {(name, memory, address): (bottom, top) for name, memory, address, bottom, top in rows}
    wanted = {
        (name, memory := of.facts.memory_name(at), at - parts[memory].start): size
        for name, at, size in zip(of.name, of.offset.tolist(), of.size.tolist(), strict=True)
    } | {(w.name, of.facts.memories[w.memory].name, w.offset): w.bytes for w in of.weights}
    assert {k: bottom for k, (bottom, _) in places.items()} == {k: floors[k[1]] + k[2] for k in wanted}
    assert {k: top - bottom for k, (bottom, top) in places.items()} == wanted
    titles = {label.text.split(":")[0]: label.y for label in shown.select({"type": MODELS.Label})}
    assert titles == floors


def test_the_plots_move_together_and_can_be_pointed_at() -> None:
    drawn = figure(engine.make_plan(build(seeded(1)), optimise=0))
    above, below = drawn.select({"type": MODELS.Plot})
    assert above.x_range is below.x_range
    assert len(list(drawn.select({"type": MODELS.HoverTool}))) == 2


def test_a_run_without_addresses_has_curves_alone() -> None:
    drawn = figure(engine.make_plan(build(seeded(1)), optimise=0).trace("dynamic"))
    assert len(list(drawn.select({"type": MODELS.Plot}))) == 1


def test_bokeh_figures_show_names_as_text() -> None:
    drawn = figure(synthetic_trace(len(HOSTILE), name=lambda i: HOSTILE[i % len(HOSTILE)]))
    assert sorted(_columns(drawn)["name"]) == sorted(printable(name) for name in HOSTILE)
    page = EMBED.file_html(drawn, RESOURCES.INLINE, title="x")
    page.encode()
    assert "<script>alert(1)" not in page
    assert 'src=x onerror="' not in page


def test_a_title_is_no_mathematics() -> None:
    for name in ("$$x$$", "$$$$", r"\(x\)", r"\[x\]"):
        (above, _) = figure(synthetic_trace(3, name=lambda _, name=name: name)).select({"type": MODELS.Plot})  # type: ignore[misc]
        assert not any(mark in above.title.text for mark in ("$$", r"\(", r"\["))


def test_bokeh_figures_refuse_what_has_no_trace() -> None:
    with pytest.raises(OptionError, match="int has no trace; give a plan"):
        figure(3)  # type: ignore[arg-type]


def test_figures_without_bokeh_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bokeh.models", None)
    with pytest.raises(EngineError, match=r"bokeh is not installed: pip install -e '\.\[bokeh\]'"):
        figure(synthetic_trace(3))
