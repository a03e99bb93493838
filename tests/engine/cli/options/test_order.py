"""`--order` where a command plans."""

import pytest

from engine.cli.main import USAGE, main
from tests.helpers.cli.cli_checks import Capture, data, error

WIRED = ("zoo:random_wired", "--shape", "x=1,3,64,64")


@pytest.mark.slow
def test_plan_tells_the_cost_of_an_order(capsys: Capture) -> None:
    assert data(["plan", *WIRED], capsys)["orderings"] == []
    printed = data(["plan", *WIRED, "--order", "memory", "--nodes", "1000"], capsys)
    (ordering,) = printed["orderings"]
    assert ordering["order"] in ("memory", "given")
    assert ordering["bound"] <= ordering["chosen_bytes"] <= ordering["given_bytes"]
    assert main(["plan", *WIRED, "--order", "depth_first", "--top", "0"]) == 0
    assert "in the order 'depth_first'" in capsys.readouterr().out


def test_plan_refuses_an_unknown_order(capsys: Capture) -> None:
    assert "invalid choice: 'best'" in error(["plan", *WIRED, "--order", "best"], USAGE, capsys)
