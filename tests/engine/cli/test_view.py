"""`arenaplan view`: what it can show, and what it says when it cannot."""

from pathlib import Path
from typing import Any

import pytest

from engine.cli.main import main
from tests.helpers.cli.cli_checks import BUFFERS, PLACED, Capture, error, page_headers, save

MODEL = "zoo:squeezenet"


def _shown(arguments: list[str], tmp_path: Path, capsys: Capture) -> list[dict[str, Any]]:
    page = tmp_path / "view.html"
    assert main(["view", *arguments, "-o", str(page)]) == 0
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""
    return page_headers(page)


def test_view_shows_a_model(tmp_path: Path, capsys: Capture) -> None:
    (printed,) = _shown([MODEL], tmp_path, capsys)
    assert printed["facts"]["model"] == "squeezenet" and printed["facts"]["mode"] == "static"


@pytest.mark.parametrize(
    ("change", "facts", "ending"),
    [
        ("dynamic", {"mode": "dynamic", "heap": ""}, "reference counting"),
        ("heap=buddy", {"mode": "dynamic", "heap": "buddy"}, "buddy"),
        ("strategy=naive", {"mode": "static", "strategy": "naive"}, "naive"),
        ("order=memory", {"mode": "static"}, "order memory"),
        ("optimise=2", {"mode": "static"}, "optimise 2"),
        ("parallel=exact", {"mode": "static", "policy": "exact"}, "exact"),
    ],
)
def test_view_shows_a_model_beside_itself(
    change: str, facts: dict[str, str], ending: str, tmp_path: Path, capsys: Capture
) -> None:
    first, second = _shown([MODEL, "--beside", change], tmp_path, capsys)
    assert {key: second["facts"][key] for key in facts} == facts
    assert second["title"].endswith(ending)
    assert first["title"] != second["title"]


def test_view_shows_two_models(tmp_path: Path, capsys: Capture) -> None:
    shown_plans = _shown([MODEL, "zoo:squeezenet?image=64"], tmp_path, capsys)
    assert shown_plans[0]["facts"]["arena_bytes"] > shown_plans[1]["facts"]["arena_bytes"]


@pytest.mark.parametrize("suffix", ["json", "csv"])
def test_view_shows_a_saved_trace(suffix: str, tmp_path: Path, capsys: Capture) -> None:
    saved = tmp_path / f"saved.{suffix}"
    assert main(["trace", MODEL, "--format", suffix, "-o", str(saved)]) == 0
    first, second = _shown([MODEL, str(saved)], tmp_path, capsys)
    same = ("arena_bytes", "peak_bytes", "peak_tick", "ticks") if suffix == "json" else ("peak_bytes", "peak_tick")
    assert {key: first["facts"][key] for key in same} == {key: second["facts"][key] for key in same}
    assert first["count"] == second["count"]


@pytest.mark.parametrize("change", ["dynamic", "strategy=naive", "strategy=best", "order=given"])
def test_view_shows_a_saved_trace_beside_another_file(change: str, tmp_path: Path, capsys: Capture) -> None:
    saved = str(tmp_path / "saved.json")
    assert main(["trace", MODEL, "--json", "-o", saved]) == 0
    said = error(["view", saved, "--beside", change], 2, capsys)
    assert "saved.json is a saved trace, of one plan: name another file beside it, and leave out --beside" in said


def test_view_places_buffers(tmp_path: Path, capsys: Capture) -> None:
    first, second = _shown([save(tmp_path, BUFFERS), "--beside", "strategy=naive"], tmp_path, capsys)
    assert (first["facts"]["arena_bytes"], second["facts"]["arena_bytes"]) == (30, 40)
    assert first["facts"]["model"] == "buffers.csv"


def test_view_keeps_the_offsets_of_placed_buffers(tmp_path: Path, capsys: Capture) -> None:
    file = save(tmp_path, PLACED)
    (printed,) = _shown([file], tmp_path, capsys)
    assert printed["facts"]["strategy"] == "given" and printed["facts"]["arena_bytes"] == 30
    _, anew = _shown([file, "--beside", "strategy=best_fit"], tmp_path, capsys)
    assert anew["facts"]["strategy"] == "best_fit"


def test_buffers_without_places_and_without_bytes_are_placed(tmp_path: Path, capsys: Capture) -> None:
    (printed,) = _shown([save(tmp_path, "id,lower,upper,size\nz,0,3,0\n")], tmp_path, capsys)
    assert printed["count"] == 1 and printed["facts"]["arena_bytes"] == 0


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--alignment", "4096"], "--alignment"),
        (["--beside", "optimise=2"], "--beside optimise"),
        (["--beside", "parallel=levels"], "--beside parallel"),
        (["--order", "memory", "--no-reuse"], "--no-reuse, --order"),
        (["--real"], "--real"),
    ],
)
def test_options_that_buffers_cannot_have_are_refused(
    options: list[str], named: str, tmp_path: Path, capsys: Capture
) -> None:
    said = error(["view", save(tmp_path, BUFFERS), *options], 2, capsys)
    assert f"holds buffers, which are only placed: leave out {named}" in said


def test_without_a_file_the_page_goes_to_stdout(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["view", MODEL]) == 0
    assert capsysbinary.readouterr().out.startswith(b"<!doctype html>")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["nothing.csv"], 1, "nothing.csv: No such file or directory"),
        ([MODEL, "--beside", "colour=red"], 2, "'colour=red' is none of dynamic, strategy=NAME"),
        ([MODEL, "--beside", "strategy"], 2, "'strategy' is none of"),
        ([MODEL, "--beside", "order=none"], 2, "order 'none' is unknown; one of: given"),
        ([MODEL, MODEL, "--beside", "dynamic"], 2, "leave out one of them"),
        ([MODEL, "-o", "nowhere/view.html"], 1, "there is no such folder"),
    ],
)
def test_view_tells_faults_in_a_line(arguments: list[str], code: int, said: str, capsys: Capture) -> None:
    assert said in error(["view", *arguments], code, capsys)


def test_buffers_have_no_dynamic_run(tmp_path: Path, capsys: Capture) -> None:
    said = error(["view", save(tmp_path, BUFFERS), "--mode", "dynamic"], 2, capsys)
    assert "holds buffers, of which there is no dynamic run to show" in said


def test_places_that_share_bytes_are_refused(tmp_path: Path, capsys: Capture) -> None:
    file = save(tmp_path, PLACED.replace("b,1,3,20,0", "b,1,3,20,10"))
    page = tmp_path / "view.html"
    assert "overlap" in error(["view", file, "-o", str(page)], 5, capsys)
    assert not page.exists()
