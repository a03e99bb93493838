"""`arenaplan trace` and `view` with a budget that the plan misses: it is drawn all the same, with the budget."""

import json
from pathlib import Path

import pytest

from engine.cli.main import NO_FIT, main
from tests.helpers.cli.cli_checks import Capture, page_headers

NETWORK = "zoo:squeezenet?image=32"
BUDGET = "20 KiB"


def _warning(capsys: Capture) -> str:
    (line,) = capsys.readouterr().err.splitlines()
    return str(line)


def test_a_trace_that_misses_its_budget_has_it_among_its_facts(tmp_path: Path, capsys: Capture) -> None:
    saved = tmp_path / "t.json"
    assert main(["trace", NETWORK, "--budget", BUDGET, "--json", "-o", str(saved)]) == 0
    warning = _warning(capsys)
    assert warning.startswith(f"arenaplan: {NETWORK} misses the budget, and is shown all the same: the plan needs ")
    facts = json.loads(saved.read_text())["facts"]
    assert facts["budget_bytes"] == 20_480 < facts["arena_bytes"]
    assert main(["trace", str(saved)]) == 0
    assert "budget 20.00 KiB (20,480 bytes), missed by " in capsys.readouterr().out


def test_the_plan_that_is_drawn_is_the_one_without_a_budget(tmp_path: Path, capsys: Capture) -> None:
    with_budget, without = tmp_path / "a.csv", tmp_path / "b.csv"
    assert main(["trace", NETWORK, "--budget", BUDGET, "-o", str(with_budget)]) == 0
    assert main(["trace", NETWORK, "-o", str(without)]) == 0
    assert with_budget.read_text() == without.read_text()
    assert "misses the budget" in capsys.readouterr().err


@pytest.mark.parametrize(("budget", "is_missed"), [(BUDGET, True), ("1 GiB", False)])
def test_a_picture_has_the_budget_as_a_line_where_it_is_not_far_above(
    budget: str, is_missed: bool, tmp_path: Path, capsys: Capture
) -> None:
    picture = tmp_path / "arena.svg"
    assert main(["trace", NETWORK, "--budget", budget, "-o", str(picture)]) == 0
    text, said = picture.read_text(), capsys.readouterr().err
    assert (">budget</text>" in text) == ("misses the budget" in said) == is_missed
    assert ("missed by" in text) == is_missed


def test_a_page_has_the_budget_of_the_plan_that_misses_it(tmp_path: Path, capsys: Capture) -> None:
    page = tmp_path / "view.html"
    assert main(["view", NETWORK, "--budget", BUDGET, "-o", str(page)]) == 0
    (header,) = page_headers(page)
    assert header["facts"]["budget_bytes"] == 20_480 < header["facts"]["arena_bytes"]
    assert "misses the budget" in _warning(capsys)


def test_what_runs_within_a_budget_is_refused_still(tmp_path: Path, capsys: Capture) -> None:
    picture = tmp_path / "arena.svg"
    assert main(["trace", NETWORK, "--budget", BUDGET, "--real", "-o", str(picture)]) == NO_FIT
    assert capsys.readouterr().err.startswith("arenaplan: error: the plan needs ") and not picture.exists()
