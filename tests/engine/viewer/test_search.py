"""What is found and how it leaves the page: the language of the search, addresses that restore a view, and CSV."""

import csv
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import engine
from engine import zoo
from engine.execution_plan import ExecutionPlan
from engine.exporters import html
from engine.text.units import parse_bytes
from engine.trace.rectangles import Rectangles, rectangles_of
from tests.helpers.browser.browser_session import Session
from tests.helpers.browser.viewer_pages import Open, Page, state
from tests.helpers.traces.hostile_names import HOSTILE, synthetic_trace

Holds = Callable[[Rectangles, int], bool]


def _has(*words: str) -> Holds:
    """Returns the meaning of words without keys."""

    def holds(of: Rectangles, i: int) -> bool:
        texts = of.name[i], of.operator[i], of.schema[i]
        return all(any(re.search(word, text, re.IGNORECASE) for text in texts) for word in words)

    return holds


def _in(column: str, pattern: str) -> Holds:
    return lambda of, i: re.search(pattern, getattr(of, column)[i], re.IGNORECASE) is not None


SEARCHES: dict[str, Holds] = {
    "relu": _has("relu"),
    "^conv_1": _has("^conv_1"),
    "space$": _has("space$"),
    "conv_[13]$": _has("conv_[13]$"),
    "nowhere": _has("nowhere"),
    "kind:conv": _in("schema", "conv"),
    "kind:^relu$": _in("schema", "^relu$"),
    "role:workspace": _in("role", "workspace"),
    "shape:1x64x": _in("shape", "1x64x"),
    "dtype:float32": _in("dtype", "float32"),
    "NAME:conv_2": _in("name", "conv_2"),
    "operator:conv_2": _in("operator", "conv_2"),
    "size>1MiB": lambda of, i: of.size[i] > 2**20,
    "size <= 64 KiB": lambda of, i: of.size[i] <= 2**16,
    "size<100kB": lambda of, i: of.size[i] < 10**5,
    "kind:conv size>=256KiB relu": lambda of, i: (
        _in("schema", "conv")(of, i) and of.size[i] >= 2**18 and _has("relu")(of, i)
    ),
    '"conv_1"': _has("conv_1"),
    '"conv_."': lambda _, __: False,
    "Relu": lambda of, i: any("Relu" in text for text in (of.name[i], of.operator[i], of.schema[i])),
    "other:thing": lambda _, __: False,
}


def test_a_search_finds_what_its_words_say(shown: Open, plan: ExecutionPlan, of: Rectangles) -> None:
    with shown(plan.trace()) as page:
        matches = {
            text: page.evaluate("t => (arenaplan.find(t), arenaplan.state().matches)", text) for text in SEARCHES
        }
        assert page.get_attribute("#search", "aria-invalid") == "false"
    assert matches == {text: sum(holds(of, i) for i in range(len(of))) for text, holds in SEARCHES.items()}
    assert matches["kind:conv"] > 10
    assert matches["kind:conv size>=256KiB relu"] == 0 < matches["size>1MiB"] < matches["size <= 64 KiB"]


def test_kinds_are_found_where_names_do_not_say_them(shown: Open) -> None:
    """After passes, the convolutions of this network are called after what was fused into them."""
    plan = engine.make_plan(zoo.resnet18(image=32))
    of = rectangles_of(plan.trace())
    assert not any("conv" in name for name in of.name)
    with shown(plan.trace()) as page:
        page.fill("#search", "conv")
        assert state(page)["matches"] == sum("conv" in schema for schema in of.schema) > 10


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("(", "no regular expression: "),
        ("kind:[", "no regular expression: "),
        ("size>", "size needs a number of bytes, such as 1MiB"),
        ("size>much", "size: much is no number of bytes, such as 1MiB"),
        ("size>1M", "size: 1M is no number of bytes, such as 1MiB"),
    ],
)
def test_a_search_that_cannot_be_read_says_why(shown: Open, plan: ExecutionPlan, text: str, said: str) -> None:
    with shown(plan.trace()) as page:
        page.fill("#search", text)
        assert page.get_attribute("#search", "aria-invalid") == "true"
        assert said in page.inner_text("#search-count")
        assert state(page)["matches"] == 0
        page.fill("#search", "relu")
        assert page.get_attribute("#search", "aria-invalid") == "false"
        page.press("#search", "Enter")
        assert "relu" in state(page)["selected"]["name"]
        page.press("#search", "Escape")
        assert page.input_value("#search") == ""
        assert page.inner_text("#search-count") == ""


@pytest.mark.parametrize("size", ["1", "64B", "1.5 KiB", "3kb", "1 MiB", "2MB", "1GiB", "1 gb"])
def test_sizes_of_a_search_are_those_of_the_command(shown: Open, size: str) -> None:
    limit = parse_bytes(size)
    trace = synthetic_trace(3, name=str)
    with shown(trace) as page:
        sizes = rectangles_of(trace).size
        for sign, many in ((">", sum(sizes > limit)), ("<=", sum(sizes <= limit))):
            page.fill("#search", f"size{sign}{size}")
            assert state(page)["matches"] == many


_SEEN = ("axis", "view", "colour", "isolated", "matches", "selected", "tick")


def _seen(page: Page) -> dict[str, Any]:
    return {key: value for key, value in state(page).items() if key in _SEEN}


def test_the_address_of_the_page_restores_what_was_seen(
    browser: Session, tmp_path: Path, plan: ExecutionPlan, of: Rectangles
) -> None:
    file = tmp_path / "view.html"
    with file.open("wb") as out:
        html.write(plan.trace(), out)
    with browser.visit(file) as page:
        page.wait_for_selector("body[data-ready=true]")
        assert state(page)["link"] == ""
        first = _seen(page)
        page.select_option("#colour", "role")
        page.locator("#legend button").first.click()
        page.evaluate("arenaplan.find('kind:conv size>64KiB')")
        page.evaluate("arenaplan.select(7)")
        page.mouse.move(500, 300)
        page.mouse.wheel(0, -300)
        page.keyboard.press(",")
        before, link = _seen(page), state(page)["link"]
        page.wait_for_timeout(400)
        assert page.evaluate("location.hash") == f"#{link}"
        page.goto(f"{file.as_uri()}#")
        page.wait_for_timeout(50)
        assert _seen(page) == first
        assert page.input_value("#search") == ""
    with browser.visit(file, before=f"location.hash ||= {link!r}") as page:
        page.wait_for_selector("body[data-ready=true]")
        after = _seen(page)
        assert page.input_value("#search") == "kind:conv size>64KiB"
        assert of.name[7] in page.inner_text("#details")
        assert after.pop("view") == pytest.approx(before.pop("view"), rel=1e-5, abs=1e-3)
        assert after == before


def test_an_address_of_two_plans_says_which(shown: Open, plan: ExecutionPlan) -> None:
    with shown(
        plan.trace(), plan.trace("dynamic", heap="pytorch"), before="location.hash ||= 'tensor=B4&tick=B9'"
    ) as page:
        assert state(page)["selected"]["pane"] == 1
        assert state(page)["selected"]["chunk"] == 4
        assert page.inner_text("#table-title") == "Alive in tick 9"
        assert page.inner_text("#table-totals").startswith("B: ")


@pytest.mark.parametrize(
    "link",
    [
        "colour=nothing&only=99&time=never&view=1,2&tensor=Z9&tick=-4",
        "view=NaN,2,3,4&tensor=A999999999&tick=A1e9&only=x",
        "view=5,5,5,5&tensor=B0&colour=%22%5D&search=%28",
        "%E0%A4%A&&&==",
    ],
)
def test_an_address_that_says_nonsense_shows_everything(shown: Open, plan: ExecutionPlan, link: str) -> None:
    with shown(plan.trace(), before=f"location.hash ||= {link!r}") as page:
        seen = state(page)
        assert seen["view"] == seen["home"]
        assert (seen["colour"], seen["isolated"], seen["selected"]) == ("schema", -1, None)
        assert seen["tick"] == plan.report().peak_tick


def _saved(page: Page, to: Path) -> list[dict[str, str]]:
    with page.expect_download() as waiting:
        page.click("#save-csv")
    assert waiting.value.suggested_filename.endswith(".csv")
    waiting.value.save_as(to)
    with to.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, strict=True))


def test_the_table_is_saved_as_csv_as_it_is_sorted(
    shown: Open, plan: ExecutionPlan, of: Rectangles, tmp_path: Path
) -> None:
    with shown(plan.trace()) as page:
        rows = _saved(page, tmp_path / "peak.csv")
        page.keyboard.press(".")
        page.click("#peak-table th:first-child button")
        other = _saved(page, tmp_path / "tick.csv")
        tick = state(page)["tick"]
    largest_first = sorted(of.at_peak.tolist(), key=lambda i: (-of.size[i], i))
    assert [row["name"] for row in rows] == [of.name[i] for i in largest_first]
    for row, i in zip(rows, largest_first, strict=True):
        assert (row["operator"], row["kind"], row["shape"]) == (of.operator[i], of.schema[i], of.shape[i])
        assert (row["dtype"], row["role"]) == (of.dtype[i], of.role[i])
        numbers = of.size[i], of.padding[i], of.offset[i], of.begin[i], of.end[i] - 1
        assert tuple(int(row[name]) for name in ("bytes", "padding", "offset", "first", "last")) == numbers
    names = [row["name"] for row in other]
    assert names == sorted(names)
    assert all(int(row["first"]) <= tick <= int(row["last"]) for row in other)


def test_names_that_hold_anything_are_saved_as_csv(shown: Open, tmp_path: Path) -> None:
    trace = synthetic_trace(60, name=lambda i: HOSTILE[i % len(HOSTILE)])
    of = rectangles_of(trace)
    with shown(trace) as page:
        rows = _saved(page, tmp_path / "hostile.csv")
    alive = {of.name[i].encode("utf-8", "replace").decode() for i in of.at_peak.tolist()}
    assert {row["name"].replace("\ufffd", "?") for row in rows} == alive
