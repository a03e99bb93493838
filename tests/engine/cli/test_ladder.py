"""`arenaplan explain --budget`: the cheapest way to a budget and the command line that takes it."""

import json
import shlex
from pathlib import Path

import pytest

from engine.cli.ladder import _resized
from engine.cli.main import NO_FIT, main
from engine.models.named import NamedModel
from tests.helpers.cli.cli_checks import Capture, data, error
from tests.helpers.onnx.convolutions import convolutions


def _asked(file: str, capsys: Capture, *more: str) -> int:
    size: int = data(["plan", file, *more], capsys)["arena_bytes"]
    return size


@pytest.mark.slow
def test_the_command_that_is_printed_fits(tmp_path: Path, capsys: Capture) -> None:
    file = convolutions(tmp_path)
    asked = _asked(file, capsys, "--dim", "batch=2")
    budget = asked * 9 // 10
    printed = data(["explain", file, "--dim", "batch=2", "--top", "3", "--budget", str(budget)], capsys)
    assert printed["fits"] and printed["best"]["arena_bytes"] <= budget == printed["budget_bytes"]
    assert printed["ladder"][0]["steps"] == [] and printed["ladder"][0]["arena_bytes"] == asked
    assert printed["ladder"][-1]["arena_bytes"] == printed["best"]["arena_bytes"]
    words = shlex.split(printed["command"])
    assert words[:3] == ["arenaplan", "plan", file] and "--top" not in words
    assert data(words[1:], capsys)["arena_bytes"] == printed["best"]["arena_bytes"]
    assert all({"steps", "saves", "bits", "seconds", "difference"} <= way.keys() for way in printed["alone"])
    (smaller,) = printed["smaller"]
    assert smaller["how"] == "--dim batch=1" and smaller["arena_bytes"] == _asked(file, capsys, "--dim", "batch=1")


@pytest.mark.slow
def test_images_in_stripes_keep_within_a_budget_that_16_bits_do_not(tmp_path: Path, capsys: Capture) -> None:
    file = convolutions(tmp_path, batch=1)
    budget = _asked(file, capsys) * 4 // 10
    printed = data(["explain", file, "--budget", str(budget)], capsys)
    assert printed["fits"] and "cascade" in printed["best"]["options"] and "--cascade" in printed["command"]
    planned = data(shlex.split(printed["command"])[1:], capsys)
    assert planned["arena_bytes"] == printed["best"]["arena_bytes"] <= budget
    assert planned["optimisation"][0]["cascades"]
    (alone,) = (way for way in printed["alone"] if way["steps"] == ["--cascade 25"])
    assert alone["saves"] > 0


@pytest.mark.slow
def test_where_nothing_fits_the_command_ends_with_3_and_says_what_holds_it(tmp_path: Path, capsys: Capture) -> None:
    file = convolutions(tmp_path, size=8)
    asked = ["explain", file, "--dim", "batch=1", "--budget", "2 KiB", "--no-recompute"]
    assert main(asked) == NO_FIT
    shown = capsys.readouterr()
    assert shown.err == "" and "no combination of steps was found that fits in 2.00 KiB" in shown.out
    assert "what holds it: alive at the peak" in shown.out and "each step alone:" in shown.out
    assert main([*asked, "--json"]) == NO_FIT
    printed = json.loads(capsys.readouterr().out)
    assert (
        not printed["fits"] and printed["excess_bytes"] == printed["best"]["arena_bytes"] - 2048 and printed["held_by"]
    )
    assert printed["command"].endswith(f"--budget {printed['best']['arena_bytes']}")
    assert main(shlex.split(printed["command"])[1:]) == 0


def test_a_budget_below_what_every_way_needs_is_refused_at_once(tmp_path: Path, capsys: Capture) -> None:
    file = convolutions(tmp_path, batch=1)
    nbytes = 8 * 48 * 48 * 4
    line = error(["explain", file, "--budget", str(nbytes - 1)], NO_FIT, capsys)
    assert f"all need at least {nbytes} bytes (72.00 KiB), as its inputs are whole when a run begins; as asked" in line
    refused = ["explain", "zoo:resnet50", "--budget", "500 KiB", "--json"]
    assert "all need at least 602112 bytes" in error(refused, NO_FIT, capsys)


def test_a_budget_that_is_met_is_said_in_a_line(tmp_path: Path, capsys: Capture) -> None:
    file = convolutions(tmp_path, batch=1)
    asked = _asked(file, capsys)
    assert main(["explain", file, "--budget=64 MiB", "-q"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("g fits in 64.00 MiB as asked: its arena has " + str(asked))
    assert second == f"  arenaplan plan {file} --budget '64 MiB'"


@pytest.mark.slow
def test_what_was_switched_off_is_left_out_of_the_command(tmp_path: Path, capsys: Capture) -> None:
    file = convolutions(tmp_path, size=16, batch=1)
    budget = _asked(file, capsys)
    printed = data(["explain", file, "--no-reuse", "--budget", str(budget)], capsys)
    assert printed["fits"] and "without --no-reuse" in printed["ladder"][-1]["steps"] + printed["best"]["steps"]
    assert "--no-reuse" not in printed["command"]
    assert data(shlex.split(printed["command"])[1:], capsys)["arena_bytes"] <= budget


def test_networks_of_the_zoo_are_tried_at_half_their_sizes() -> None:
    tried = [(r.name, r.length, r.how) for r in _resized(NamedModel(model=Path("zoo:squeezenet?image=100&batch=2")))]
    assert tried[0] == ("batch", 1, "zoo:squeezenet?image=100&batch=1")
    assert tried[1:3] == [
        ("image", 50, "zoo:squeezenet?batch=2&image=50"),
        ("image", 25, "zoo:squeezenet?batch=2&image=25"),
    ]


@pytest.mark.parametrize("budget", ["lots", "-1"])
def test_a_budget_that_is_no_size_is_refused(budget: str, capsys: Capture) -> None:
    assert "--budget" in error(["explain", "zoo:squeezenet", f"--budget={budget}"], 2, capsys)
