"""Headless Chromium, driven by Playwright.

Playwright comes from PyPI and brings a driver of its own, so that no Node.js is needed; its own browsers are not
downloaded: the system's is used.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any

_QUIET = (
    "--no-sandbox",  # CI and containers run as root
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",  # else Chromium itself asks the network for this and that
    "--disable-component-update",
    "--disable-sync",
)


def what_is_missing() -> str:
    """Returns what must be installed, in words; empty if all is there."""
    if not _path():
        return "Chromium is not installed: apt-get install chromium"
    return "" if find_spec("playwright") else "playwright is not installed: pip install playwright"


@contextmanager
def chromium() -> Iterator[Any]:
    """Runs a browser, as Playwright's `Browser`, inside the block. Raises RuntimeError where something is missing."""
    if why := what_is_missing():
        raise RuntimeError(why)
    with import_module("playwright.sync_api").sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=_path(), args=_QUIET)
        try:
            yield browser
        finally:
            browser.close()


def _path() -> str:
    return shutil.which("chromium") or shutil.which("chromium-browser") or ""
