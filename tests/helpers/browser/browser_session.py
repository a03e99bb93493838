"""Pages in a browser. A page that says, loads or throws anything fails its test; without a browser, tests skip."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen

from tests.helpers.paths import TESTS
from tools.chromium import chromium, what_is_missing

MODULES = TESTS / "browser" / "node_modules"
"""What `npm ci` installs in tests/browser."""
_SECONDS = 20


@frozen(eq=False)
class Session:
    """A running browser."""

    browser: Any

    @contextmanager
    def visit(
        self, path: Path, *, allowed: tuple[str, ...] = (), is_ours: bool = True, before: str = "", **how: Any
    ) -> Iterator[Any]:
        """Opens a file's page, as a Playwright `Page`; `how` is what Playwright's `new_context` takes.

        The script `before` runs before those of the page. Afterwards it must have said nothing, and loaded nothing but
        itself and addresses that begin with one of `allowed`; a page that is not ours may say what it likes.
        """
        context = self.browser.new_context(**{"viewport": {"width": 1440, "height": 900}, **how})
        context.set_default_timeout(_SECONDS * 1000)
        try:
            page = context.new_page()
            page.add_init_script(before)
            complaints = listened(page, path.as_uri(), allowed, is_ours)
            page.goto(path.as_uri())
            yield page
            assert complaints == [], "\n".join(complaints)
        finally:
            context.close()


def listened(page: Any, address: str, allowed: tuple[str, ...], is_ours: bool) -> list[str]:
    """Returns a list that collects, from now on, the messages and requests of a page that should not be."""
    complaints = list[str]()

    def dismiss(dialog: Any) -> None:
        complaints.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def judge(request: Any) -> None:
        if request.url.split("#")[0].split("?")[0] != address and not request.url.startswith(
            (*allowed, "data:", "blob:")
        ):
            complaints.append(f"request: {request.url[:200]}")

    if is_ours:
        page.on("console", lambda message: complaints.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
    page.on("dialog", dismiss)
    page.on("request", judge)
    return complaints


@contextmanager
def session() -> Iterator[Session]:
    """Starts a browser of its own; skips the test where there is none."""
    if why := what_is_missing():
        pytest.skip(why)
    with chromium() as browser:
        yield Session(browser)


def node_module(path: str) -> Path:
    """Returns the path of a file that npm installed; skips the test where it is missing."""
    if not (MODULES / path).exists():
        pytest.skip("packages of npm are not installed: npm ci --prefix tests/browser")
    return MODULES / path


def aria(page: Any) -> Mapping[str, Any]:
    """Returns Chromium's accessibility tree by node id, as its developer tools tell it."""
    tree = page.context.new_cdp_session(page).send("Accessibility.getFullAXTree")
    return {node["nodeId"]: node for node in tree["nodes"]}
