"""Commands and models whose shapes are not known beforehand: lengths by name, stages, and what is refused."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import engine
import ops
from engine import Graph
from engine.cli.main import ERROR, NO_FIT, USAGE, build_parser, main
from engine.cli.measure.processes import MeasureTask, read_task
from engine.cli.options.models import load_subject, random_feeds
from engine.trace.trace import STAGE
from ops.registry import find
from tests.helpers.cli.cli_checks import Capture, data, error, planned
from tests.helpers.graphs.staged_graphs import WIDTH, rows, staged_graph
from tests.helpers.onnx.saved_models import save_positive

OPEN = ("zoo:mobilenet_v2", "--shape", "x=images,3,32,32")
SMALL = ("zoo:mobilenet_v2", "--shape", "x=2,3,32,32")
Build = Callable[[Mapping[str, Sequence[Any]]], Graph]


def model(monkeypatch: pytest.MonkeyPatch, build: Build) -> str:
    """Returns the path of a "file" in which the command finds the graph that `build` makes of the given shapes."""

    def load(_: object, *, shapes: Mapping[str, Sequence[Any]], constants: object, infer: object) -> Graph:
        assert not constants and not infer
        return build(shapes)

    monkeypatch.setattr("engine.models.named.load_onnx", load)
    monkeypatch.setattr("engine.cli.options.embedded.load_plan", lambda _, required: None)  # noqa: ARG005 - by keyword
    return "model.onnx"


@pytest.fixture
def sieve(monkeypatch: pytest.MonkeyPatch) -> str:
    """Returns a network whose data decide sizes, twice."""
    return model(monkeypatch, lambda shapes: staged_graph((0, 1), (True,), shapes.get("x", ("n",))[0]))


@pytest.fixture
def pair(monkeypatch: pytest.MonkeyPatch) -> str:
    """Returns two inputs with two names."""

    def build(_: object) -> Graph:
        graph = Graph("pair")
        x, mask = graph.input("x", ("batch", "seq", 8)), graph.input("mask", ("batch", "seq"))
        graph.output(ops.softmax(x * ops.reshape(mask, (x.shape[0], x.shape[1], 1))), "y")
        return graph

    return model(monkeypatch, build)


@pytest.fixture
def chosen(monkeypatch: pytest.MonkeyPatch) -> str:
    """Returns a graph of x and rows; an element of the second decides how many rows of the first are kept."""

    def build(_: object) -> Graph:
        graph = Graph("chosen")
        x, count = graph.input("x", (8, 2)), graph.input("rows", (), np.int64)
        some = graph.data_dim(count, 0, (7, 6, 5, 4, 3, 2, 1))
        (kept,) = graph.add(find("slice"), [x], {"starts": (0,), "ends": (some,), "axes": (0,)})
        graph.output(ops.exp(kept), "y")
        return graph

    return model(monkeypatch, build)


def test_a_length_for_a_name_plans_what_the_number_plans(capsys: Capture) -> None:
    assert planned([*OPEN, "--dim", "images=2"], capsys) == planned(SMALL, capsys)


def test_the_batch_of_the_zoo_has_a_name(capsys: Capture) -> None:
    wanted = engine.make_plan(engine.zoo.mobilenet_v2(3)).arena_bytes
    assert data(["plan", "zoo:mobilenet_v2", "--dim", "batch=3"], capsys)["arena_bytes"] == wanted


@pytest.mark.parametrize("dims", [["--dim", "batch=2,seq=3"], ["--dim", "seq=3", "--dim", "batch=2"]])
def test_lengths_come_one_by_one_or_together(dims: list[str], pair: str, capsys: Capture) -> None:
    printed = data(["run", pair, *dims], capsys)
    assert printed["outputs"][0]["shape"] == [2, 3, 8] and "story" not in printed
    assert data(["compare", pair, *dims, "--runs", "1"], capsys)["outputs_equal"] is True


@pytest.mark.parametrize("command", [("run",), ("heaps",), ("trace",), ("trace", "--real"), ("compare", "--parallel")])
def test_every_command_that_takes_a_model_takes_lengths(command: tuple[str, ...], pair: str, capsys: Capture) -> None:
    assert main([*command, pair, "--dim", "batch=2,seq=3", *(["--runs", "1"] if "compare" in command else [])]) == 0
    shown = capsys.readouterr()
    assert shown.out and not shown.err


def test_processes_that_measure_are_told_the_lengths(pair: str) -> None:
    arguments = build_parser().parse_args(["compare", pair, "--dim", "batch=2", "--dim", "seq=3", "--measure"])
    arguments_read = read_task(json.loads(MeasureTask("bytes", "static", 1, arguments).to_json())).arguments
    assert load_subject(arguments_read).graph.inputs["x"].shape == (2, 3, 8)


@pytest.mark.parametrize("command", ["plan", "run", "compare", "heaps", "trace"])
def test_names_without_a_length_are_told_with_their_places_and_an_example(
    command: str, pair: str, capsys: Capture
) -> None:
    message = error([command, pair], ERROR, capsys)
    assert "batch (axis 0 of 'x', axis 0 of 'mask'), seq (axis 1 of 'x', axis 1 of 'mask')" in message
    assert message.endswith("for example --dim batch=1,seq=1")
    message = error([command, pair, "--dim", "seq=4"], ERROR, capsys)
    assert message.endswith("for example --dim batch=1")


def test_a_name_that_there_is_not_is_told_with_those_that_there_are(pair: str, capsys: Capture) -> None:
    assert "no dimension 'width' open; names that are open: batch, seq" in error(
        ["plan", pair, "--dim", "width=3"], ERROR, capsys
    )


def test_names_of_models_without_open_dimensions_are_told(model: str, capsys: Capture) -> None:
    assert "'batch' open; all dimensions have numbers" in error(["plan", model, "--dim", "batch=2"], ERROR, capsys)
    assert "open; names that are open: batch" in error(["plan", *SMALL, "--dim", "batch=2"], ERROR, capsys)
    message = error(["plan", "zoo:minilm", "--dim", "width=3"], ERROR, capsys)
    assert message.endswith("names that are open: batch, sequence")


@pytest.mark.parametrize(
    "dims", ["batch", "=4", "batch=", "batch=x", "batch=-1", "batch=9999999999", "batch=1,seq", "batch=1,,seq=2"]
)
def test_lengths_that_are_none_end_with_2(dims: str, capsys: Capture) -> None:
    error(["plan", "m.onnx", "--dim", dims], USAGE, capsys)


def test_the_first_stage_is_planned_and_what_decides_the_next_is_told(sieve: str, capsys: Capture) -> None:
    graph = staged_graph((0, 1), (True,))
    for level, after in ((0, graph), (3, engine.optimise(graph))):
        exe = engine.compile(graph, optimise=level)
        exe.run({"x": rows(9, 0)})
        printed = data(["plan", sieve, "--dim", "n=9", "--optimise", str(level)], capsys)
        assert (printed["stage"], printed["decides"]) == (1, ["count_nonzero_0"])
        assert printed["operators"] + printed["operators_left"] == len(after.operators)
        assert printed["arena_bytes"] == exe.stages[0].plan.arena_bytes
    assert main(["plan", sieve, "--dim", "n=9"]) == 0
    assert "stage 1 alone: the data of 'count_nonzero_0' decide" in capsys.readouterr().out


def test_a_run_in_stages_shows_its_outputs_and_its_story(sieve: str, capsys: Capture) -> None:
    assert main(["run", sieve, "--dim", "n=9"]) == 0
    shown = capsys.readouterr().out
    assert shown.index("\ny ") < shown.index("sieve with n=9: 3 stage(s)")
    assert "0 asked for were there, 3 were made" in shown
    assert main(["run", sieve, "--dim", "n=9", "--runs", "2"]) == 0
    assert "6 asked for were there, 3 were made" in capsys.readouterr().out


def test_all_modes_run_in_stages_and_json_has_the_story(sieve: str, capsys: Capture) -> None:
    printed = [data(["run", sieve, "--dim", "n=9", "--mode", mode], capsys) for mode in ("static", "dynamic", "poison")]
    assert printed[0]["outputs"] == printed[1]["outputs"] == printed[2]["outputs"]
    story = printed[0]["story"]
    assert [s["decides"] for s in story["stages"]] == [["count_nonzero_0"], ["count_nonzero_1"], []]
    assert story["lengths"] == {"n": 9} and story["cache"]["hits"] == 3


def test_a_file_whose_data_decide_sizes_runs_in_stages(tmp_path: Path, capsys: Capture) -> None:
    path, x = str(save_positive(tmp_path / "positive.onnx")), rows(6, 1)
    np.save(tmp_path / "x.npy", x)
    printed = data(["run", path, "--input", f"x={tmp_path / 'x.npy'}"], capsys)
    assert printed["outputs"][0]["shape"] == [int((x > 0).sum())]
    assert printed["outputs"][0]["max"] == float(x.max()) and len(printed["story"]["stages"]) == 2
    assert "n (axis 0 of 'x')" in error(["run", path], ERROR, capsys)
    assert "--weights random" in error(["run", path, "--dim", "n=3", "--weights", "random"], USAGE, capsys)


def test_an_array_tells_lengths_and_outputs_are_written(sieve: str, tmp_path: Path, capsys: Capture) -> None:
    x = rows(7, 3)
    np.save(tmp_path / "x.npy", x)
    target = tmp_path / "y.npz"
    assert main(["run", sieve, "--input", f"x={tmp_path / 'x.npy'}", "-o", str(target)]) == 0
    assert capsys.readouterr().out == ""
    wanted = engine.compile(staged_graph((0, 1), (True,)))(x=x)
    with np.load(target) as archive:
        assert archive.files == list(wanted) and all(np.array_equal(archive[n], wanted[n]) for n in wanted)


def test_a_late_stage_over_budget_ends_with_3_and_writes_nothing(sieve: str, tmp_path: Path, capsys: Capture) -> None:
    first = data(["plan", sieve, "--dim", "n=9"], capsys)["arena_bytes"]
    target = tmp_path / "y.npz"
    assert main(["run", sieve, "--dim", "n=9", "--budget", str(first), "-o", str(target)]) == NO_FIT
    shown = capsys.readouterr()
    assert shown.out == "" and not list(tmp_path.iterdir())
    assert shown.err.startswith("arenaplan: error: stage 2 of 'sieve', before 'slice_0' runs: the plan needs ")
    assert main(["run", sieve, "--dim", "n=9", "--budget", "8KiB"]) == 0
    assert main(["plan", sieve, "--dim", "n=9", "--budget", str(first - 1)]) == NO_FIT


@pytest.mark.parametrize("mode", ["static", "dynamic"])
@pytest.mark.parametrize("real", [(), ("--real",)])
def test_a_trace_tells_of_all_stages(mode: str, real: tuple[str, ...], sieve: str, capsys: Capture) -> None:
    events = data(["trace", sieve, "--dim", "n=9", "--mode", mode, *real], capsys)["events"]
    assert [e["operator"] for e in events if e["kind"] == STAGE] == ["stage 1", "stage 2", "stage 3"]
    assert events[-1]["live_bytes"] == 0
    assert any(e["seconds"] > 0 for e in events) is bool(real)


def test_compare_runs_stages_in_three_ways_and_tells_the_story(sieve: str, capsys: Capture) -> None:
    printed = data(["compare", sieve, "--dim", "n=9", "--runs", "2"], capsys)
    assert printed["outputs_equal"] is True and printed["runs"] == 2
    cache = printed["story"]["cache"]
    assert (cache["plans"], cache["hits"], cache["misses"]) == (3, 6, 3)
    assert printed["dynamic_peak_bytes"] == data(["heaps", sieve, "--dim", "n=9"], capsys)["heaps"][0]["peak_requested"]
    assert main(["compare", sieve, "--dim", "n=9", "--runs", "1"]) == 0
    shown = capsys.readouterr().out
    assert "equal to the bit" in shown and "sieve with n=9: 3 stage(s)" in shown


def test_heaps_serve_what_all_stages_ask_for(sieve: str, capsys: Capture) -> None:
    exe = engine.compile(staged_graph((0, 1), (True,)))
    exe.run(random_feeds(exe.graph, 0, {}, {"n": 9}))
    printed = data(["heaps", sieve, "--dim", "n=9"], capsys)
    assert printed["arena_bytes"] == exe.stage_report().arena_bytes
    events = exe.trace("dynamic")
    assert printed["heaps"][0]["peak_requested"] == max(e.live_bytes for e in events)
    assert {h["allocs"] for h in printed["heaps"]} == {h["frees"] for h in printed["heaps"]}
    assert printed["heaps"][0]["allocs"] == sum(e.kind == "alloc" for e in events)


@pytest.mark.parametrize("option", ["--parallel", "--measure"])
def test_commands_that_need_all_sizes_refuse_a_network_whose_data_decide_them(
    option: str, sieve: str, capsys: Capture
) -> None:
    message = error(["compare", sieve, "--dim", "n=9", option], ERROR, capsys)
    assert "'count_nonzero_0', 'count_nonzero_1'" in message


def test_stages_are_not_for_operators_at_once(sieve: str, capsys: Capture) -> None:
    for command in ("plan", "run"):
        assert "parallel='exact'" in error([command, sieve, "--dim", "n=9", "--parallel", "exact"], USAGE, capsys)


def test_an_input_that_decides_sizes_must_be_given(chosen: str, tmp_path: Path, capsys: Capture) -> None:
    for command in ("plan", "run", "trace"):
        assert "--constant rows=rows.npy" in error([command, chosen], ERROR, capsys)
    np.save(tmp_path / "rows.npy", np.int64(5))
    printed = data(["run", chosen, "--input", f"rows={tmp_path / 'rows.npy'}"], capsys)
    assert printed["outputs"][0]["shape"] == [5, 2]


def test_shapes_take_names_where_the_zoo_has_a_batch(capsys: Capture) -> None:
    assert "axis 0 of 'x'" in error(["plan", *OPEN], ERROR, capsys)
    assert "square images" in error(["plan", "zoo:vgg16", "--shape", "x=1,3,h,h"], ERROR, capsys)


def test_the_stage_cost_report_is_plain_json(sieve: str, capsys: Capture) -> None:
    story = data(["run", sieve, "--dim", "n=0"], capsys)["story"]
    assert json.loads(json.dumps(story)) == story
    assert WIDTH * 4 >= 0 == story["lengths"]["n"]


def test_one_plan_for_all_lengths_is_told_beside_exact_ones(pair: str, capsys: Capture) -> None:
    printed = data(["plan", pair, "--length-ranges", "batch=1:8,seq=2:32"], capsys)
    assert printed["arena_bytes"] == data(["plan", pair, "--dim", "batch=8,seq=32"], capsys)["arena_bytes"]
    assert printed["bounds"] == {"batch": [1, 8], "seq": [2, 32]}
    costs = printed["bound_costs"]
    assert costs[0]["lengths"] == {"batch": 1, "seq": 2} and costs[-1]["lengths"] == {"batch": 8, "seq": 32}
    assert costs[-1]["factor"] == 1
    for cost in costs:
        exact = data(["plan", pair, "--dim", "batch={batch},seq={seq}".format(**cost["lengths"])], capsys)
        assert cost["exact_bytes"] == exact["arena_bytes"] == printed["arena_bytes"] / cost["factor"]
    assert main(["plan", pair, "--length-ranges", "batch=1:8", "--length-ranges", "seq=2:32"]) == 0
    shown = capsys.readouterr().out
    assert f"one plan for batch from 1 to 8, seq from 2 to 32: {printed['arena_bytes']} B" in shown
    assert shown.endswith("1.00 x\n")


def test_lengths_that_the_graph_does_not_allow_are_left_out_of_the_costs(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def build(_: object) -> Graph:
        graph = Graph("halves")
        x = graph.input("x", ("n", 4))
        graph.output(ops.exp(ops.reshape(x, (x.shape[0] // 2, 8))), "y")
        return graph

    halves = model(monkeypatch, build)
    printed = data(["plan", halves, "--length-ranges", "n=3:16"], capsys)
    assert [c["lengths"]["n"] for c in printed["bound_costs"]] == [6, 16] and printed["left_out_choices"] == 1
    assert main(["plan", halves, "--length-ranges", "n=3:16"]) == 0
    assert "left out, as the graph does not allow them: 1 choice(s)" in capsys.readouterr().out
    assert main(["plan", halves, "--length-ranges", "n=4:16"]) == 0
    assert "left out" not in capsys.readouterr().out


def test_a_length_beside_bounds_has_no_range(pair: str, capsys: Capture) -> None:
    printed = data(["plan", pair, "--length-ranges", "batch=1:8", "--dim", "seq=4"], capsys)
    assert printed["bounds"] == {"seq": [4, 4], "batch": [1, 8]}


def test_length_ranges_over_budget_end_with_3(pair: str, capsys: Capture) -> None:
    assert main(["plan", pair, "--length-ranges", "batch=1:8,seq=1:8", "--budget", "100"]) == NO_FIT
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        ("batch=1:8", "'seq' has none"),
        ("batch=1:8,seq=4:2", "a least and a greatest"),
        ("batch=1:8,seq=1:2,width=1:3", "'width'"),
        ("batch=8", "no least and greatest length; write for example batch=1:8"),
        ("batch=1:x", "no integer"),
        ("batch=1:-8", "no integer"),
        ("batch", "no NAME=VALUE"),
    ],
)
def test_length_ranges_that_make_no_sense_end_with_2(bounds: str, words: str, pair: str, capsys: Capture) -> None:
    assert words in error(["plan", pair, "--length-ranges", bounds], USAGE, capsys)


def test_length_ranges_are_not_for_sizes_that_data_decide_nor_for_known_ones(sieve: str, capsys: Capture) -> None:
    assert "'count_nonzero_0'" in error(["plan", sieve, "--length-ranges", "n=1:8"], USAGE, capsys)
    assert "no lengths to give ranges of" in error(["plan", *SMALL, "--length-ranges", "batch=1:8"], USAGE, capsys)
