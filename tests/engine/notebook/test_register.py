"""Cards in a real IPython shell: plans, reports and traces are formatted as HTML there, and as plain text elsewhere."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

import engine
from engine import ExecutionPlan, zoo
from engine.notebook.cards import card_of
from engine.notebook.register import register_cards


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Yields a running shell that keeps no history."""
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    running = InteractiveShell.instance(config=Config(HistoryManager={"enabled": False}))
    yield running
    InteractiveShell.clear_instance()


@pytest.fixture
def plan() -> ExecutionPlan:
    return engine.make_plan(zoo.squeezenet(image=32), optimise=0)


def test_ipython_formats_a_plan_a_report_and_a_trace_as_html(shell: Any, plan: ExecutionPlan) -> None:
    register_cards()
    for shown in (plan, plan.report(), plan.trace()):
        formats, _ = shell.display_formatter.format(shown)
        assert formats["text/html"] == card_of(shown)
        assert formats["text/plain"]


def test_ipython_formats_other_values_as_plain_text(shell: Any, plan: ExecutionPlan) -> None:
    register_cards()
    assert "text/html" not in shell.display_formatter.format(plan.arena_bytes)[0]


def test_a_cell_that_ends_with_a_plan_shows_its_card(
    shell: Any, plan: ExecutionPlan, capsys: pytest.CaptureFixture[str]
) -> None:
    """Plans define no HTML of their own: the card comes from the formatter alone."""
    register_cards()
    shell.user_ns["plan"] = plan
    assert shell.run_cell("plan").success
    assert repr(plan) in capsys.readouterr().out
    assert not hasattr(plan, "_repr_html_")


def test_register_cards_does_nothing_without_a_running_shell(plan: ExecutionPlan) -> None:
    register_cards()
    assert repr(plan).startswith("<plan of ")
