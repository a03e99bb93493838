"""`arenaplan plan` with workers that share its searches."""

from typing import Any

import pytest

from tests.helpers.cli.cli_checks import Capture, data, error

MODEL = "zoo:random_wired?nodes=48"


def test_a_single_strategy_has_nothing_to_share(capsys: Capture) -> None:
    assert "leave out --strategy" in error(["plan", MODEL, "--workers", "2", "--strategy", "exact"], 2, capsys)


@pytest.mark.slow
def test_workers_share_orders_and_addresses_and_change_no_plan(capsys: Capture) -> None:
    words = ["plan", MODEL, "--order", "memory", "--nodes", "15000", "--optimise", "0"]
    one, two = (told(data([*words, "--workers", number], capsys)) for number in ("1", "2"))
    assert one == two
    (order,) = one["orderings"]
    assert order["chosen_bytes"] < order["given_bytes"]


def told(plan: dict[str, Any]) -> dict[str, Any]:
    """Returns what does not depend on the machine's speed."""
    return {name: plan[name] for name in ("arena_bytes", "lower_bound", "orderings", "strategy")}
