"""SVG and PNG of runs: what is drawn is what the plan says, whatever names are."""

import re
import xml.etree.ElementTree as ET
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
import ops
from engine.exporters import png, svg
from engine.graph.graph import Graph
from engine.pictures import matplotlib
from engine.pictures.options import PictureOptions
from engine.pictures.plot_data import NAMELESS
from engine.text.errors import EngineError
from engine.text.names import printable
from engine.text.units import format_bytes
from engine.trace.rectangles import Rectangles, rectangles_of
from tests.helpers.graphs.random_graphs import build, graphs, seeded
from tests.helpers.graphs.staged_graphs import rows, staged_graph
from tests.helpers.traces.exported_files import exported, written
from tests.helpers.traces.hostile_names import HOSTILE, synthetic_trace

SVG = "{http://www.w3.org/2000/svg}"
LARGEST = 2_000_000
"""Bytes of a picture of 100,000 tensors."""


def _boxes(text: str) -> list[tuple[ET.Element, list[str]]]:
    """Returns boxes of chunks, and the lines of their titles."""
    boxes = [(rect, rect.findtext(f"{SVG}title")) for rect in ET.fromstring(text).iter(f"{SVG}rect")]
    return [(rect, title.split("\n")) for rect, title in boxes if title is not None]


def _texts(text: str) -> list[str]:
    return [element.text or "" for element in ET.fromstring(text).iter(f"{SVG}text")]


@settings(max_examples=20)
@given(graphs())
def test_each_chunk_is_a_box_as_high_as_its_bytes_at_its_address(graph: Graph) -> None:
    of = rectangles_of(engine.make_plan(graph, optimise=0).trace())
    boxes = _boxes(svg.svg(of))
    assert Counter(title[0] for _, title in boxes) == Counter(map(printable, of.name))
    ground = next(e for e in ET.fromstring(svg.svg(of)).iter(f"{SVG}rect") if e.get("class") == "f-plot")
    pixel = (of.facts.arena_bytes or 1) / float(ground.attrib["height"])
    bottom = float(ground.attrib["y"]) + float(ground.attrib["height"])
    for row, (rect, title) in enumerate(boxes):
        assert f" at {of.offset[row]:,}" in title[2]
        height, low = float(rect.attrib["height"]), bottom - float(rect.attrib["y"]) - float(rect.attrib["height"])
        assert height * pixel == pytest.approx(of.size[row], abs=pixel)
        assert low * pixel == pytest.approx(of.offset[row], abs=pixel)


@settings(max_examples=20)
@given(graphs(), st.sampled_from([("static", ""), ("dynamic", ""), ("dynamic", "pytorch")]), st.booleans())
def test_pictures_have_the_words_and_numbers_of_the_trace(graph: Graph, run: tuple[str, str], compact: bool) -> None:
    trace = engine.make_plan(graph, optimise=0).trace(run[0], heap=run[1])
    text = svg.svg(rectangles_of(trace), PictureOptions(compact=compact))
    assert text == svg.svg(rectangles_of(trace), PictureOptions(compact=compact))
    root, facts = ET.fromstring(text), trace.facts
    assert root.get("role") == "img"
    assert f"{format_bytes(facts.peak_bytes)} are alive" in (root.findtext(f"{SVG}desc") or "")
    assert any(f"peak {format_bytes(facts.peak_bytes)}" in line for line in _texts(text)) != compact
    assert bool(_boxes(text)) == (len(rectangles_of(trace)) > 0 and run != ("dynamic", ""))


@settings(max_examples=20)
@given(graphs(), st.integers(120, 400), st.integers(40, 400), st.tuples(*[st.booleans()] * 5))
def test_pictures_of_any_size_and_parts_stay_within_their_frame(
    graph: Graph, width: int, height: int, parts: tuple[bool, bool, bool, bool, bool]
) -> None:
    look = PictureOptions(width, height, *parts)
    root = ET.fromstring(svg.svg(rectangles_of(engine.make_plan(graph, optimise=0).trace()), look))
    assert root.attrib["width"] == str(width)
    for rect in root.iter(f"{SVG}rect"):
        x, y, wide, high = (float(rect.attrib[name]) for name in ("x", "y", "width", "height"))
        assert min(x, y, wide, high) >= 0
        assert x + wide <= width + 0.5
        assert y + high <= float(root.attrib["height"]) + 0.5


def test_a_picture_too_small_to_see_is_refused() -> None:
    with pytest.raises(ValueError, match="width"):
        PictureOptions(width=50)


def test_names_that_hold_anything_break_no_picture() -> None:
    of = rectangles_of(synthetic_trace(len(HOSTILE), name=lambda i: HOSTILE[i % len(HOSTILE)]))
    text = svg.svg(of)
    tags = {element.tag.removeprefix(SVG) for element in ET.fromstring(text).iter()}
    assert tags <= {"svg", "desc", "style", "rect", "title", "path", "circle", "text"}
    assert re.search(r"\son\w+=", re.sub(r">[^<]*<|\"[^\"]*\"", "", text)) is None
    assert sorted(title[0] for _, title in _boxes(text)) == sorted(printable(name) or NAMELESS for name in HOSTILE)
    assert png.png(of).startswith(b"\x89PNG")


@pytest.mark.slow
@pytest.mark.parametrize("count", [20_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_a_picture_of_very_many_tensors_is_small_and_says_what_it_merged(count: int) -> None:
    text = svg.svg(rectangles_of(synthetic_trace(count)))
    assert len(text.encode()) < LARGEST
    alone = len(_boxes(text))
    assert 0 < alone <= 3_000
    assert any(f"{count - alone:,} of {count:,} tensors are smaller than a pixel" in line for line in _texts(text))


def test_pictures_draw_few_tensors_one_by_one_however_small() -> None:
    assert len(_boxes(svg.svg(rectangles_of(synthetic_trace(2_999))))) == 2_999


def test_pictures_mark_overwriters_which_hide_what_they_take() -> None:
    of = _small()
    text = svg.svg(of)
    assert of.overwrites.tolist() == [-1, 0, 1]
    right = [float(rect.attrib["x"]) + float(rect.attrib["width"]) for rect, _ in _boxes(text)]
    assert right == sorted(set(right))
    assert "overwrites another" in _texts(text)
    assert [title[-1] for _, title in _boxes(text)][1:] == ["takes the bytes of x", "takes the bytes of tanh_0"]


def test_pictures_mark_the_beginning_of_stages_in_both_plots() -> None:
    exe = engine.compile(staged_graph([0, 1]), optimise=0)
    exe.run({"x": rows(9, 2)})
    of = rectangles_of(exe.trace())
    text = svg.svg(of)
    lines = [
        p for p in ET.fromstring(text).iter(f"{SVG}path") if p.get("class") == "s-quiet" and p.get("stroke-dasharray")
    ]
    assert len(of.stages) > 1
    assert len(lines) == 2 * (len(of.stages) - 1) + 1  # and one in the legend
    assert "a stage begins" in _texts(text)


def test_a_picture_without_a_legend_is_lower_and_a_compact_one_has_no_words_beside_boxes() -> None:
    of = _small()
    whole, plain = ET.fromstring(svg.svg(of)), ET.fromstring(svg.svg(of, PictureOptions(legend=False, width=500)))
    assert float(plain.attrib["height"]) < float(whole.attrib["height"])
    assert plain.attrib["width"] == "500"
    assert set(_texts(svg.svg(of, PictureOptions(compact=True)))) <= {
        *of.name,
        *(format_bytes(size) for size in of.size.tolist()),
    }


def test_a_png_has_two_dots_a_pixel_and_is_dark_on_demand() -> None:
    of = _small()
    light, dark = png.png(of), png.png(of, dark=True)
    assert light[:8] == b"\x89PNG\r\n\x1a\n"
    assert int.from_bytes(light[16:20]) == 1800
    assert light != dark
    assert light == png.png(of)


def test_exporters_write_what_the_functions_give() -> None:
    trace = engine.make_plan(build(seeded(7)), optimise=0).trace()
    assert written("svg", trace) == svg.svg(rectangles_of(trace))
    assert exported("png", trace) == png.png(rectangles_of(trace))


def test_pictures_without_matplotlib_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(matplotlib, "import_module", missing)
    with pytest.raises(EngineError, match=r"pip install -e '\.\[charts\]'"):
        png.png(_small())


def _small() -> Rectangles:
    graph = Graph()
    x = graph.input("x", (64, 64))
    graph.output(ops.relu(ops.tanh(x)), "y")
    return rectangles_of(engine.make_plan(graph, optimise=0).trace())
