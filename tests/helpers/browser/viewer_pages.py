"""Pages that show plans, opened in a browser."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from engine import Trace
from engine.exporters import html
from engine.trace.rectangles import rectangles_of
from engine.viewer.page import write_page
from engine.viewer.payload import pack
from tests.helpers.browser.browser_session import Session

Page = Any
Open = Callable[..., Any]


@contextmanager
def opened(browser: Session, folder: Path, *traces: Trace, **how: Any) -> Iterator[Page]:
    """Opens the page of a trace, or of two, and yields it once it is ready; `how` is what `Session.visit` takes."""
    file = folder / "view.html"
    with file.open("wb") as out:
        if len(traces) == 1:
            html.write(traces[0], out)
        else:
            write_page("two", [pack(rectangles_of(t), f"plan {i}") for i, t in enumerate(traces)], out)
    with browser.visit(file, **how) as page:
        page.wait_for_selector("body[data-ready]")
        assert page.get_attribute("body", "data-ready") == "true", page.inner_text("#failure")
        yield page


def state(page: Page) -> dict[str, Any]:
    """Returns the state of the page, as it tells scripts."""
    shown: dict[str, Any] = page.evaluate("arenaplan.state()")
    return shown
