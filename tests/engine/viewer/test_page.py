"""The file: one page that asks for nothing, and in which no name means anything."""

import base64
import gzip
import hashlib
import io
import json
import re
from html.parser import HTMLParser

import pytest

from engine.exporters import html
from engine.text.palette import KINDS, OTHER, PAINTS
from engine.trace.rectangles import rectangles_of
from engine.trace.trace import RunInfo, Trace
from engine.viewer.page import modules, write_page
from engine.viewer.payload import pack
from tests.helpers.traces.hostile_names import HOSTILE, synthetic_trace


class _Parsed(HTMLParser):
    """The elements of a page, with their attributes and the text in scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        tag, attributes = self.elements[-1] if self.elements else ("", {})
        if tag in ("script", "style", "title") and data.strip():
            self.texts.append((f"{tag}.{attributes.get('class', '')}".rstrip("."), data))

    def text(self, of: str) -> list[str]:
        return [text for tag, text in self.texts if tag == of]


def _page(trace: Trace) -> tuple[str, _Parsed]:
    out = io.BytesIO()
    html.write(trace, out)
    text = out.getvalue().decode()
    return text, _Parsed(text)


def test_the_viewer_page_has_its_parts_in_it_and_asks_for_nothing() -> None:
    text, page = _page(synthetic_trace(30))
    assert not re.search(r"\{\{\w+\}\}", text)
    for tag, attributes in page.elements:
        assert "src" not in attributes
        assert attributes.get("href") in (None, "data:,")
        assert not any(name.startswith("on") for name in attributes), tag
        assert "style" not in attributes


def test_the_policy_of_the_viewer_page_allows_its_own_script_and_style_alone() -> None:
    _, page = _page(synthetic_trace(30))
    policy = next(str(a["content"]) for _, a in page.elements if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'; ")
    for kind in ("script", "style"):
        source = "".join(page.text(kind))
        digest = base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
    assert "unsafe" not in policy and "http" not in policy


def test_the_script_of_the_viewer_page_fits_a_script_element() -> None:
    for name, source in modules().items():
        assert not re.search(r"</script|<!--", source, re.IGNORECASE), name
        assert "innerHTML" not in source and "eval(" not in source


@pytest.mark.parametrize("name", HOSTILE)
def test_names_on_the_viewer_page_are_text(name: str) -> None:
    plain = [tag for tag, _ in _page(synthetic_trace(5))[1].elements]
    _, page = _page(Trace(RunInfo(model=name, mode="static"), lambda: iter(synthetic_trace(5, name=lambda _: name))))
    assert [tag for tag, _ in page.elements] == plain


def test_the_title_is_the_model_and_how_it_was_planned() -> None:
    _, page = _page(synthetic_trace(5, name="a & b {}".format))
    assert "".join(page.text("title")).endswith(" · slots · arenaplan")


def test_two_plans_are_two_payloads() -> None:
    out = io.BytesIO()
    payloads = [pack(rectangles_of(synthetic_trace(count)), f"plan {count}") for count in (3, 300)]
    write_page("two", payloads, out)
    texts = _Parsed(out.getvalue().decode()).text("script.payload")
    assert [base64.b64decode(text) for text in texts] == payloads
    headers = [gzip.decompress(payload) for payload in payloads]
    counts = [json.loads(raw[4 : 4 + int.from_bytes(raw[:4], "little")])["count"] for raw in headers]
    assert counts == [3, 300]


@pytest.mark.parametrize(
    ("variable", "paint"),
    [
        ("live", "live_line"),
        ("footprint", "footprint"),
        ("bound", "bound"),
        ("budget", "budget"),
        ("peak", "peak"),
        ("gap", "gap"),
    ],
)
def test_the_page_has_the_colours_of_pictures(variable: str, paint: str) -> None:
    out = io.BytesIO()
    write_page("colours", [pack(rectangles_of(synthetic_trace(3)), "plan")], out)
    colours = re.findall(rf"--{variable}: (#\w+);", out.getvalue().decode())
    assert [colour.upper() for colour in colours] == [PAINTS[paint].light, PAINTS[paint].dark]


def test_kinds_of_operators_have_the_colours_of_pictures() -> None:
    colours = re.findall(r"#\w{6}", modules()["palette"])
    assert [colour.upper() for colour in colours] == [PAINTS[name].light for name in (*KINDS, OTHER)]
    assert "const KINDS" not in modules()["colours"]
