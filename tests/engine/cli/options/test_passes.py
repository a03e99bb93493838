"""The command line: --optimise, and compare --passes."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import engine
from engine.cli import passes
from engine.cli.main import main
from engine.planning.options import PlanOptions
from tests.helpers.cli.cli_checks import Capture, data, error
from tests.helpers.onnx.saved_models import save_positive
from tests.helpers.onnx.small_models import model as small_model
from tests.helpers.onnx.small_models import node, value

ROW = {"by", "before", "operators", "arena_bytes", "weights_bytes", "seconds", "seconds_as_given", "difference"}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Returns a model's path: x [n, 4], doubled, through two operators that do nothing, and Swish in pieces."""
    nodes = [
        helper.make_node("Transpose", ["x"], ["same"], perm=[0, 1]),
        helper.make_node("Mul", ["same", "two"], ["double"]),
        helper.make_node("Reshape", ["double", "shape"], ["kept"]),
        helper.make_node("Sigmoid", ["kept"], ["gate"]),
        helper.make_node("Mul", ["kept", "gate"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "wasteful",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 4])],
        [
            numpy_helper.from_array(np.asarray(2, np.float32), "two"),
            numpy_helper.from_array(np.asarray([-1, 4]), "shape"),
        ],
    )
    path = tmp_path_factory.mktemp("models") / "wasteful.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return str(path)


def test_plan_counts_the_operators_that_are_left(model: str, capsys: Capture) -> None:
    printed = [
        data(["plan", model, "--dim", "n=3", "--optimise", level], capsys)["operators"] for level in ("0", "1", "2")
    ]
    assert printed[0] == 5 and printed[1] == 3 and printed[2] < 3
    assert data(["plan", model, "--dim", "n=3"], capsys)["operators"] == printed[2]


def test_run_gives_the_same_behind_passes(model: str, capsys: Capture, tmp_path: Path) -> None:
    for level in ("0", "1", "2"):
        assert main(["run", model, "--dim", "n=3", "--optimise", level, "-o", str(tmp_path / f"{level}.npz")]) == 0
    capsys.readouterr()
    plain, exact, near = (np.load(tmp_path / f"{level}.npz")["y"] for level in ("0", "1", "2"))
    assert plain.tobytes() == exact.tobytes()
    np.testing.assert_allclose(near, plain, rtol=1e-5)


def test_compare_runs_what_the_passes_left(model: str, capsys: Capture) -> None:
    printed = data(
        ["compare", model, "--dim", "n=3", "--optimise", "1", "--oracle", "onnxruntime", "--runs", "1"], capsys
    )
    assert printed["operators"] == 3
    assert printed["outputs_equal"] and printed["oracle_difference"] < 1e-5


def test_compare_passes_prints_a_table(model: str, capsys: Capture) -> None:
    assert main(["compare", model, "--dim", "n=3", "--passes", "--runs", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("wasteful: passes of level 3")
    assert [line.split("  ")[0] for line in lines[2:4]] == ["as given", "no-ops"]
    assert "5 -> 3" in lines[3]


def test_compare_passes_as_json(model: str, capsys: Capture) -> None:
    printed = data(["compare", model, "--dim", "n=3", "--passes", "--optimise", "1", "--runs", "1"], capsys)
    assert set(printed) == {"model", "level", "store", "runs", "rows", "outputs_equal"}
    assert printed["level"] == 1 and printed["outputs_equal"]
    assert all(set(row) == ROW for row in printed["rows"])
    assert [(row["by"], row["before"], row["operators"]) for row in printed["rows"]] == [
        ("as given", 5, 5),
        ("no-ops", 5, 3),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("store", [pytest.param("float16", marks=pytest.mark.slow), "bfloat16"])
def test_compare_passes_stores_the_network_as_given_too(store: str, capsys: Capture) -> None:
    printed = data(["compare", "zoo:resnet18?image=32", "--passes", "--store", store, "--runs", "1"], capsys)
    first, last = printed["rows"][0], printed["rows"][-1]
    assert printed["outputs_equal"] and (first["by"], first["operators"]) == ("as given", 69)
    assert last["operators"] < 30 and first["arena_bytes"] > last["arena_bytes"]
    assert 0 < last["difference"] < 0.1, "other tensors are rounded"
    plain = data(["plan", "zoo:resnet18?image=32", "--store", store, "--optimise", "0"], capsys)
    assert first["arena_bytes"] == plain["arena_bytes"]
    assert main(["compare", "zoo:resnet18?image=32", "--passes", "--store", store, "--runs", "1"]) == 0
    assert capsys.readouterr().out.startswith(f"resnet18: passes of level 3, tensors stored as {store}, least of 1")


@pytest.mark.slow
@pytest.mark.parametrize("command", ["plan", "heaps", "explain"])
def test_store_halves_the_arena_of_the_network_after_passes(command: str, capsys: Capture) -> None:
    small = [command, "zoo:resnet18?image=64"]
    plain, stored = (data([*small, *more], capsys) for more in ([], ["--store", "float16"]))
    assert stored["arena_bytes"] < 0.7 * plain["arena_bytes"]
    if command == "plan":
        (done,) = stored["optimisation"]
        assert (done["before"], done["after"]) == (69, stored["operators"])
        names = {name for name, _ in done["changes"]}
        assert {"batch normalization folded", "convolutions fused", "stored as float16"} <= names


def test_store_is_refused_where_lengths_are_open(model: str, capsys: Capture) -> None:
    asked = ["plan", model, "--length-ranges", "n=1:4", "--store", "float16"]
    assert "store='float16' needs sizes that are known" in error(asked, 2, capsys)


def test_a_network_of_the_zoo_has_passes_too(capsys: Capture) -> None:
    printed = data(["plan", "zoo:mobilenet_v1", "--shape", "x=1,3,32,32", "--optimise", "2"], capsys)
    plain = data(["plan", "zoo:mobilenet_v1", "--shape", "x=1,3,32,32", "--optimise", "0"], capsys)
    assert printed["operators"] < plain["operators"]


def test_compare_passes_ends_with_5_where_outputs_move_too_far(
    model: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passes, "TOLERANCE", -1.0)
    assert main(["compare", model, "--dim", "n=3", "--passes", "--runs", "1"]) == 5
    assert "DIFFER" in capsys.readouterr().out


def test_optimise_options_that_do_not_fit_are_refused(model: str, capsys: Capture, tmp_path: Path) -> None:
    assert "leave out" in error(["compare", model, "--dim", "n=3", "--passes", "--measure"], 2, capsys)
    nothing = ["compare", model, "--dim", "n=3", "--passes", "--optimise", "0"]
    assert "--optimise 0 has none" in error(nothing, 2, capsys)
    staged = str(save_positive(tmp_path / "positive.onnx"))
    assert "data decide" in error(["compare", staged, "--dim", "n=3", "--passes"], 1, capsys)


def test_compare_passes_level_1_must_keep_every_bit() -> None:
    graph = engine.Graph("g")
    graph.output(graph.input("x", (2,)) + 1.0, "y")
    comparison = passes.compare_passes(graph, {"x": np.ones(2, np.float32)}, 1, runs=1, options=PlanOptions())
    assert comparison.outputs_equal and len(comparison.rows) == 1
    moved = passes.PassComparison("g", 1, "", 1, (passes.PassCosts("faulty", 1, 1, 8, 4, 1e-6, 1e-6, 1e-9),))
    assert not moved.outputs_equal


@pytest.fixture(scope="module")
def sieve(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Returns a model's path: a product and its bias, a count that data decide, and another product behind it."""
    rng = np.random.default_rng(0)
    weights = {name: rng.standard_normal((4, 4)).astype(np.float32) for name in ("w", "v")}
    nodes = [
        node("MatMul", ["x", "w"], ["product"], name="product"),
        node("Relu", ["product"], ["h"], name="relu"),
        node("Identity", ["h"], ["same"], name="same"),
        node("NonZero", ["same"], ["places"], name="count"),
        node("Transpose", ["places"], ["turned"], name="turn", perm=[1, 0]),
        node("GatherND", ["h", "turned"], ["kept"], name="gather"),
        node("Mul", ["kept", "kept"], ["square"], name="square"),
        node("Exp", ["square"], ["y"], name="exp"),
    ]
    path = tmp_path_factory.mktemp("models") / "sieve.onnx"
    onnx.save(small_model(nodes, [value("x", ("n", 4))], initializers=weights), path)
    return str(path)


def test_a_network_in_stages_says_what_passes_did(sieve: str, capsys: Capture) -> None:
    asked = [sieve, "--dim", "n=3"]
    (done,) = data(["plan", *asked], capsys)["optimisation"]
    assert done["level"] == 3 and done["after"] < done["before"]
    for command in ("run", "compare"):
        assert data([command, *asked, "--runs", "1"], capsys)["story"]["optimisation"] == [done]
        assert data([command, *asked, "--runs", "1", "--optimise", "0"], capsys)["story"]["optimisation"] == []
    assert main(["plan", *asked]) == main(["run", *asked]) == 0
    assert capsys.readouterr().out.count("\noptimised at level 3: ") == 1
    facts = data(["trace", *asked], capsys)["facts"]
    assert (facts["optimise"], facts["left_out"], facts["stages"]) == ("auto", "", 2)


def test_names_that_passes_took_away_are_found_in_stages(sieve: str, capsys: Capture) -> None:
    asked = ["explain", sieve, "--dim", "n=3"]
    assert "is computed within operator relu" in data([*asked, "--operator", "product"], capsys)["fate"]
    assert data([*asked, "--tensor", "same"], capsys)["tensor"] == "h"
    later = error([*asked, "--operator", "square"], 2, capsys)
    assert later.endswith("g:1: 'square' is computed within operator exp. That is not in this stage.")
    assert "g:1, this stage alone, has no tensor 'y'" in error([*asked, "--tensor", "y"], 2, capsys)


def test_a_plan_for_all_lengths_says_what_passes_did(model: str, capsys: Capture) -> None:
    asked = [model, "--length-ranges", "n=1:4"]
    (done,) = data(["plan", *asked], capsys)["optimisation"]
    assert (done["level"], done["before"]) == (3, 5) and done["after"] < 5
    assert main(["plan", *asked]) == 0
    assert "  optimised at level 3: 5 -> " in capsys.readouterr().out
    assert "the same elements" in data(["explain", *asked, "--tensor", "same"], capsys)["fate"]


def test_a_trace_says_which_passes_ran(model: str, capsys: Capture) -> None:
    for words, level in ([], "auto"), (["--optimise", "2"], "2"), (["--optimise", "0"], "0"):
        facts = data(["trace", model, "--dim", "n=3", *words], capsys)["facts"]
        assert (facts["optimise"], facts["left_out"]) == (level, "")
