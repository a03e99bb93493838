"""The command that says why an arena is as large as it is."""

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import pytest

import engine
import ops
from engine import Graph, zoo
from engine.cli.main import NO_FIT, USAGE, main
from tests.helpers.cli.cli_checks import Capture, data, error
from tests.helpers.graphs.plan_facts import renamed
from tests.helpers.graphs.staged_graphs import staged_graph

SMALL = ("explain", "zoo:squeezenet?image=64")
AS_BUILT = (*SMALL, "--optimise", "0")


def said(arguments: Sequence[str], capsys: Capture) -> str:
    """Returns what a command prints, with nothing on stderr."""
    assert main(arguments) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    return shown.out


def in_file(monkeypatch: pytest.MonkeyPatch, graph: Graph) -> str:
    """Returns the path of a "file" that has this graph in it."""

    def load(_: object, *, shapes: Mapping[str, Sequence[Any]], constants: object, infer: object) -> Graph:
        assert not constants and not shapes and not infer
        return graph

    monkeypatch.setattr("engine.models.named.load_onnx", load)
    monkeypatch.setattr("engine.cli.plan.plan_in_file", lambda *_: None)
    return "model.onnx"


@pytest.mark.slow
def test_explain_text_and_json_equal_the_python_explanation(capsys: Capture) -> None:
    plan = engine.make_plan(zoo.squeezenet(image=64))
    assert said(SMALL, capsys) == str(plan.explain())
    printed = data(SMALL, capsys)
    assert printed == json.loads(json.dumps(plan.explain().to_json()))
    assert printed["arena_bytes"] == plan.report().arena_bytes
    tensor, operator = printed["alive"][0]["tensor"], printed["peak_operator"]
    assert said([*SMALL, "--tensor", tensor], capsys) == str(plan.explain(tensor=tensor))
    assert said([*SMALL, "--operator", operator], capsys) == str(plan.explain(operator=operator))
    assert data([*SMALL, "--operator", operator], capsys)["live_bytes"] == printed["peak_bytes"]
    assert data([*SMALL, "--tensor", tensor], capsys)["is_at_peak"]


def test_explain_top_shortens_the_list(capsys: Capture) -> None:
    text = said([*SMALL, "--top", "1"], capsys)
    assert "smaller ones (--top 3 shows all)" in text


@pytest.mark.parametrize(
    ("option", "name", "wanted"),
    [
        ("--tensor", "conv0", "squeezenet has no tensor 'conv0'; did you mean 'conv_0'"),
        ("--operator", "rellu_0", "squeezenet has no operator 'rellu_0'; did you mean 'relu_0'"),
        ("--operator", "", "squeezenet has no operator ''; `arenaplan trace` lists all"),
        ("--tensor", "a\nb", "squeezenet has no tensor 'a\\nb'"),
    ],
)
def test_explain_names_the_nearest_of_an_unknown_name(option: str, name: str, wanted: str, capsys: Capture) -> None:
    assert wanted in error([*AS_BUILT, option, name], USAGE, capsys)


def test_explain_takes_a_tensor_or_an_operator_not_both(capsys: Capture) -> None:
    assert "not allowed with" in error([*SMALL, "--tensor", "x", "--operator", "conv_0"], USAGE, capsys)


def test_explain_tries_half_of_a_length(capsys: Capture) -> None:
    printed = data([*SMALL, "--dim", "batch=6"], capsys)
    (half,) = [w for w in printed["advised"]["tried"] if w["how"] == "--dim batch=3"]
    assert half["arena_bytes"] == data(["plan", *SMALL[1:], "--dim", "batch=3"], capsys)["arena_bytes"]
    assert half["saves"] == printed["arena_bytes"] - half["arena_bytes"] > 0
    assert "batch=3 in place of 6" in said([*SMALL, "--dim", "batch=6"], capsys)


def test_a_budget_that_is_not_met_is_the_error_of_plan_where_a_part_is_explained(capsys: Capture) -> None:
    assert main([*SMALL, "--operator", "conv_0", "--budget", "1 KiB", "--no-recompute"]) == NO_FIT
    assert "bytes too much" in capsys.readouterr().err


@pytest.mark.parametrize("policy", ["exact", "levels", "colour:2", "edges"])
def test_where_operators_run_at_once_there_is_no_tick_of_the_peak(policy: str, capsys: Capture) -> None:
    text = said([*AS_BUILT, "--parallel", policy], capsys)
    assert "may be alive at once where operators run at once" in text
    assert "read now" not in text
    assert "In sequence, " in said([*AS_BUILT, "--parallel", policy, "--operator", "conv_0"], capsys)


def test_a_first_stage_says_that_it_is_one(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    model = in_file(monkeypatch, staged_graph((0, 1), (True,), "n"))
    text = said(["explain", model, "--dim", "n=9"], capsys)
    assert "this is stage 1 alone: the data of 'count_nonzero_0' decide what comes next" in text
    assert "Not tried: other ways to plan, which takes a whole network whose sizes are known." in text
    assert "needed by later stages, so it stays to the end" in text
    assert "an output" not in text
    first = ["explain", model, "--dim", "n=9"]
    names = [line.split(",")[0].split()[-1] for line, why in pairwise(text.splitlines()) if "by later stages" in why]
    assert "they are held for later stages" in said([*first, "--tensor", names[0]], capsys)
    assert "later stages take over" in said([*first, "--operator", "fetch"], capsys)
    printed = data(["explain", model, "--dim", "n=9"], capsys)
    assert (printed["stage"], printed["advised"]["tried"]) == (1, [])


def test_a_plan_for_many_lengths_is_explained_at_the_greatest(capsys: Capture) -> None:
    printed = data(["explain", "zoo:squeezenet?image=64", "--length-ranges", "batch=1:3"], capsys)
    assert printed["bounds"] == {"batch": [1, 3]}
    assert printed["alive"][0]["shape"][0] == 3


@pytest.mark.slow
def test_a_training_step_tells_of_parameters(capsys: Capture) -> None:
    text = said(["explain", "zoo:squeezenet?image=64&optimiser=sgd", "--top", "200"], capsys)
    assert "a parameter, kept from run to run" in text
    assert "/update/sgd_step_0 is written over it now" in text


@pytest.mark.parametrize("name", ['"', "<script>alert(1)</script>", "a\nb", "\ud800", "x" * 10_000, "\x1b[31m"])
def test_explain_keeps_names_of_any_kind_on_their_line(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    model = in_file(monkeypatch, renamed(name))
    for option in ((), ("--tensor", name), ("--operator", name)):
        text = said(["explain", model, "--optimise", "0", *option], capsys)
        assert all(c.isprintable() for line in text.split("\n") for c in line)
        assert data(["explain", model, "--optimise", "0", *option], capsys)


def test_explain_a_graph_without_bytes(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    graph = Graph("nothing")
    graph.output(ops.neg(graph.input("x", (0, 3))), "y")
    model = in_file(monkeypatch, graph)
    assert "nothing is computed that needs any" in said(["explain", model], capsys)
    assert "0 B are alive while it runs" in said(["explain", model, "--operator", "neg_0"], capsys)
    assert "No tensor is only kept for later." in said(["explain", model, "--operator", "fetch"], capsys)
    assert said(["explain", model, "--tensor", "x"], capsys)
