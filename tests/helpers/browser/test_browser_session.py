"""The judge of pages is judged: what a page may not do is seen. And the viewer's JavaScript keeps to its rules."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.helpers.browser.browser_session import Session, node_module
from tests.helpers.paths import ROOT

_STRICT = "<meta http-equiv='Content-Security-Policy' content=\"script-src 'none'\">"
FAULTS = {
    "console": "<script>console.log('here')</script>",
    "error": "<script>null.field</script>",
    "dialog": "<script>alert(1)</script>",
    "request: http": "<img src='http://127.0.0.1:9/x.png'>",
    "request: file": "<script src='beside.js'></script>",
    "console: .*Content Security Policy": f"{_STRICT}<script>1</script>",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_browser_session_fails_on_what_a_page_may_not_do(browser: Session, tmp_path: Path, fault: str) -> None:
    (tmp_path / "page.html").write_text(f"<!doctype html><title>t</title>{FAULTS[fault]}", "utf-8")
    with pytest.raises(AssertionError, match=fault), browser.visit(tmp_path / "page.html") as page:
        page.wait_for_load_state("networkidle")


def test_a_browser_session_passes_a_quiet_page(browser: Session, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("<!doctype html><title>t</title><p>quiet", "utf-8")
    with browser.visit(tmp_path / "page.html") as page:
        assert page.inner_text("p") == "quiet"


@pytest.mark.slow
def test_the_script_of_the_viewer_keeps_to_its_rules_and_types() -> None:
    if not shutil.which("node"):
        pytest.skip("node is not installed")
    node_module(".bin/eslint")
    node_module(".bin/tsc")
    lint = subprocess.run(["make", "lint-js"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert lint.returncode == 0, lint.stdout
