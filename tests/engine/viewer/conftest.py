"""The plan that pages show, and pages in a browser."""

from functools import partial
from pathlib import Path

import pytest

import engine
from engine import zoo
from engine.execution_plan import ExecutionPlan
from engine.trace.rectangles import Rectangles, rectangles_of
from tests.helpers.browser.browser_session import Session
from tests.helpers.browser.viewer_pages import Open, opened


@pytest.fixture(scope="session")
def plan() -> ExecutionPlan:
    return engine.make_plan(zoo.squeezenet(), optimise=0)


@pytest.fixture(scope="module")
def of(plan: ExecutionPlan) -> Rectangles:
    return rectangles_of(plan.trace())


@pytest.fixture
def shown(browser: Session, tmp_path: Path) -> Open:
    """Opens the page of a trace, or of two, as soon as it is ready."""
    return partial(opened, browser, tmp_path)
