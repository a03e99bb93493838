"""The command line: --optimise, and compare --passes."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import engine
from engine.api import PlanOptions
from engine.cli import passes
from engine.cli.main import main
from tests.helpers.cli.cli_checks import Capture, data, error
from tests.helpers.onnx.saved_models import save_positive

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
    assert set(printed) == {"model", "level", "runs", "rows", "outputs_equal"}
    assert printed["level"] == 1 and printed["outputs_equal"]
    assert all(set(row) == ROW for row in printed["rows"])
    assert [(row["by"], row["before"], row["operators"]) for row in printed["rows"]] == [
        ("as given", 5, 5),
        ("no-ops", 5, 3),
    ]


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
    moved = passes.PassComparison("g", 1, 1, (passes.PassCosts("faulty", 1, 1, 8, 4, 1e-6, 1e-6, 1e-9),))
    assert not moved.outputs_equal
