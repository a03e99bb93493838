"""Plans, reports and traces in notebooks: the numbers are the report's, and no name is more than text."""

from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
from attrs import define, evolve, field
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
import ops
from engine import Graph, Report, Trace
from engine.notebook import cards
from engine.notebook.cards import card_of
from engine.text.names import printable
from engine.text.units import format_bytes
from engine.trace.trace import RunInfo
from tests.helpers.graphs.random_graphs import build, graphs, seeded
from tests.helpers.graphs.sample_report import sample_report
from tests.helpers.traces.copied_beside import copied_beside
from tests.helpers.traces.hostile_names import HOSTILE, synthetic_trace

TAGS = {"div", "table", "thead", "tbody", "tr", "th", "td", "details", "summary"}
PICTURE = {"svg", "desc", "style", "rect", "title", "path", "circle", "text"}
EMPTY = {"rect", "path", "circle"}
"""Tags that end themselves, as XML allows."""


@define
class Page(HTMLParser):
    """The content of a card in a browser: tags with their attributes, and texts. Fails where tags do not nest."""

    tags: list[tuple[str, dict[str, str]]] = field(factory=list)
    texts: list[str] = field(factory=list)
    within: list[str] = field(factory=list)

    def __attrs_pre_init__(self) -> None:
        super().__init__()

    @classmethod
    def of(cls, html: str) -> "Page":
        page = cls()
        page.feed(html)
        page.close()
        assert not page.within
        return page

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        self.within.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.within.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.within:
            self.texts.append(data.strip())

    @property
    def sizes(self) -> list[int]:
        """Returns the sizes of bars, in bytes."""
        titles = [a["title"] for tag, a in self.tags if tag == "div" and "title" in a]
        return [int(title.removesuffix(" B")) for title in titles]


@settings(max_examples=15)
@given(graphs())
def test_notebook_bars_and_table_equal_the_report(graph: Graph) -> None:
    plan = engine.make_plan(graph, optimise=0)
    report = plan.report()
    for shown in (plan, report):
        page = Page.of(card_of(shown))
        assert page.sizes == [report.naive_bytes, report.dynamic_peak_bytes, report.arena_bytes, report.lower_bound]
        assert {tag for tag, _ in page.tags} <= TAGS | PICTURE
        for tensor in report.peak_tensors[:10]:
            assert printable(tensor.name, 48) in page.texts
            assert f"{tensor.bytes:,}" in page.texts
        assert page.texts.count("lifetime") == 1


def test_a_notebook_card_of_a_report_has_every_number_in_its_place() -> None:
    texts = [text for text in Page.of(card_of(sample_report())).texts if text]
    assert texts == [
        "sample",
        "11 operators, 13.7 million operations a run; strategy first, feasible",
        *("naive", "23.44 KiB", "every tensor has bytes of its own"),
        *("dynamic peak", "7.00 KiB", "reference counting"),
        *("arena", "5.86 KiB", "25.0% of naive"),
        *("lower bound", "4.69 KiB", "the arena is 25.00% above it"),
        "outside of the arena: 3.00 MiB weights, 2.50 MiB prepacked; 3.50 MiB resident weights",
        "peak in tick 17 (conv_3 conv): 2 tensors, 5.72 KiB alive",
        *("tensor", "operator", "shape", "bytes", "share", "lifetime", "offset"),
        *("a", "op_1 relu", "2x3", "4,392", "75.0%", "[15, 19)", "128"),
        *("b", "op_2 add", "scalar", "1,464", "25.0%", "[16, 18)", "4,544"),
    ]


def test_notebook_bars_are_as_long_as_their_bytes() -> None:
    tags = Page.of(card_of(sample_report())).tags
    styles = [attributes.get("style", "") for _, attributes in tags]
    widths = [float(style.removeprefix("width:").partition("%")[0]) for style in styles if style.startswith("width:")]
    assert widths == [100.0, 29.87, 25.0, 20.0]


def test_a_notebook_card_of_a_trace_has_every_number_in_its_place() -> None:
    sizes: dict[str, Any] = {"weights_bytes": 3 << 20, "prepacked_bytes": 5 << 19, "resident_weights_bytes": 7 << 19}
    facts = RunInfo(
        *(
            "net",
            "static",
            "",
            "",
            "auto",
            "",
            "best",
            "feasible",
            64,
            6144,
            5120,
            "bytes alive in tick 17",
            0,
            7168,
            4096,
            17,
            "conv_3",
        ),
        ticks=30_000,
        **sizes,
    )
    assert [text for text in Page.of(card_of(Trace(facts, lambda: iter(())))).texts if text] == [
        "net",
        "trace of a run in one arena, 30,000 ticks",
        *("arena", "6.00 KiB"),
        *("peak", "4.00 KiB", "alive at once, in tick 17 (conv_3)"),
        *("lower bound", "5.00 KiB"),
        "outside of the arena: 3.00 MiB weights, 2.50 MiB prepacked; 3.50 MiB resident weights",
        "30,000 ticks are too many for a picture here; arenaplan view makes a page of them",
    ]


@settings(max_examples=15)
@given(graphs(), st.sampled_from([("static", ""), ("dynamic", ""), ("dynamic", "pytorch")]))
def test_a_notebook_card_of_a_trace_tells_its_run(graph: Graph, run: tuple[str, str]) -> None:
    trace = engine.make_plan(graph, optimise=0).trace(run[0], heap=run[1])
    page, facts = Page.of(card_of(trace)), trace.facts
    held = [facts.footprint_bytes] if run[1] else []
    bound = [facts.lower_bound] if run[0] == "static" else []
    assert page.sizes == [*held, facts.arena_bytes, facts.peak_bytes, *bound]


@pytest.mark.parametrize("name", HOSTILE)
def test_notebook_cards_show_names_as_text(name: str) -> None:
    for shown in (_renamed(name), synthetic_trace(20, name=lambda _: name)):
        html = card_of(shown)
        page = Page.of(html)
        assert {tag for tag, _ in page.tags} <= TAGS | PICTURE
        assert not [a for _, attributes in page.tags for a in attributes if a.startswith("on") or a in ("href", "src")]
        assert printable(name) in page.texts
        html.encode()
        assert len(html) < 100_000


def _renamed(name: str) -> Report:
    graph = Graph("net")
    graph.output(ops.relu(graph.input("x", (4, 4))), "y")
    report = engine.make_plan(graph, optimise=0).report()
    tensors = [evolve(t, name=name, operator=name, kind=name) for t in report.peak_tensors]
    return evolve(report, model=name, peak_operator=name, peak_kind=name, strategy=name, peak_tensors=tuple(tensors))


def test_where_operators_run_at_once_the_peak_is_what_may_be_alive() -> None:
    texts = " ".join(Page.of(card_of(engine.make_plan(build(seeded(3)), parallel="exact", optimise=0))).texts)
    assert "may be alive at once" in texts
    assert "safe for operators at once by exact" in texts


def test_a_trace_that_is_too_long_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cards, "MOST_TICKS", 5)
    page = Page.of(card_of(synthetic_trace(10)))
    assert "svg" not in {tag for tag, _ in page.tags}
    assert any("too many for a picture" in text for text in page.texts)


def test_a_notebook_picture_is_dark_where_its_notebook_is() -> None:
    html = card_of(synthetic_trace(10))
    assert 'body[data-jp-theme-light="false"]' in html
    assert "prefers-color-scheme" not in html


def test_the_text_of_a_plan_is_a_line() -> None:
    graph = Graph("net")
    graph.output(ops.relu(graph.input("x", (4, 4))), "y")
    assert str(engine.make_plan(graph, optimise=0)) == "<plan of 'net': 1 operators, arena 64 B, optimal>"


def test_an_empty_graph_has_a_card() -> None:
    graph = Graph("nothing")
    graph.output(graph.constant(np.zeros(3, np.float32)), "y")
    assert "nothing" in Page.of(card_of(engine.make_plan(graph, optimise=0))).texts


def test_a_trace_is_one_of_those_that_show_themselves() -> None:
    assert isinstance(synthetic_trace(3), Trace)
    assert Page.of(card_of(synthetic_trace(3))).texts


def test_cards_of_plans_in_several_memories_say_what_lies_in_each() -> None:
    plan = copied_beside()
    (transfers,) = plan.report().transfers
    for shown in (plan, plan.report()):
        texts = Page.of(card_of(shown)).texts
        at = texts.index("memory")
        rows = [texts[at + 6 * k : at + 6 * k + 6] for k in range(4)]
        assert [row[0] for row in rows[1:]] == [share.name for share in transfers.memories]
        assert [row[2] for row in rows] == ["used", *(format_bytes(share.used_bytes) for share in transfers.memories)]
    assert "memory" not in Page.of(card_of(sample_report())).texts
