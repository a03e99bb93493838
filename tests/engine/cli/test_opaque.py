"""Models with operators that nobody implements, through the command: planned, reported, and never run."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from engine.cli.main import main
from tests.helpers.cli.cli_checks import Capture, data, error, planned
from tests.helpers.onnx.own_operators import foreign_model, save
from tests.helpers.onnx.small_models import node, value

X = [value("x", (4, 8))]
LIKE = ["--infer", "acme.Mix=like:0"]


def mixed(infos: Sequence[Any] = (), inputs: Sequence[Any] = X, **attrs: Any) -> Any:
    """Returns relu(Mix(relu(x)))."""
    nodes = [
        node("Relu", ["x"], ["a"]),
        node("Mix", ["a"], ["m"], domain="acme", name="mixer", **attrs),
        node("Relu", ["m"]),
    ]
    return foreign_model(nodes, inputs, infos)


def opaque(printed: dict[str, Any]) -> list[tuple[str, str]]:
    return [(each["operator"], each["kind"]) for each in printed["opaque"]]


def test_a_declared_shape_is_enough_to_plan(tmp_path: Path, capsys: Capture) -> None:
    path = save(mixed([value("m", (4, 16), np.float64)]), tmp_path)
    printed = planned([path], capsys)
    assert opaque(printed) == [("mixer", "acme.Mix")]
    assert printed["arena_bytes"] == 4 * 8 * 4 + 4 * 16 * 8  # relu overwrites x and m; Mix overwrites nothing
    assert {each["operator"]: each["backend"] for each in printed["kernels"]}["mixer"] == "nobody"
    assert main(["plan", path]) == 0
    assert "cannot run: nobody implements acme.Mix ('mixer')" in capsys.readouterr().out


def test_a_rule_tells_shape_and_type_above_what_the_file_declares(tmp_path: Path, capsys: Capture) -> None:
    for infos in ([], [value("m", (4, 16), np.float64)]):
        printed = planned([save(mixed(infos), tmp_path), *LIKE], capsys)
        assert opaque(printed) == [("mixer", "acme.Mix")]
        assert printed["arena_bytes"] == 2 * 4 * 8 * 4


@pytest.mark.parametrize("command", ["trace", "explain", "heaps", "view"])
def test_commands_that_run_nothing_take_the_model(command: str, tmp_path: Path, capsys: Capture) -> None:
    path = save(mixed([value("m", (4, 8))]), tmp_path)
    more = ["-o", str(tmp_path / "page.html")] if command == "view" else []
    assert main([command, path, *more]) == 0
    assert command in ("heaps", "view") or "mixer" in capsys.readouterr().out


def test_a_trace_is_exported_with_the_kind_of_the_operator(tmp_path: Path, capsys: Capture) -> None:
    path = save(mixed([value("m", (4, 8))]), tmp_path)
    assert main(["trace", path, "--format", "json"]) == 0
    events = json.loads(capsys.readouterr().out)["events"]
    assert "mixer" in {event.get("operator") for event in events}


def test_the_operator_is_explained(tmp_path: Path, capsys: Capture) -> None:
    path = save(mixed([value("m", (4, 8))]), tmp_path)
    assert main(["explain", path, "--operator", "mixer"]) == 0
    assert "nobody implements it" in capsys.readouterr().out
    printed = data(["explain", path, "--operator", "mixer"], capsys)
    assert printed["backend"] == "nobody" and printed["kind"] == "acme.Mix"


@pytest.mark.parametrize(
    "command",
    [
        ["run"],
        ["run", "--mode", "dynamic"],
        ["run", "--mode", "poison"],
        ["run", "--weights", "random"],
        ["compare"],
        ["compare", "--oracle", "onnxruntime"],
        ["compare", "--measure"],
        ["compare", "--passes"],
        ["compare", "--parallel"],
        ["trace", "--real"],
    ],
    ids=" ".join,
)
def test_what_runs_the_model_is_refused_with_the_name_of_the_operator(
    command: list[str], tmp_path: Path, capsys: Capture
) -> None:
    path = save(mixed([value("m", (4, 8))]), tmp_path)
    printed = error([command[0], path, *command[1:]], 1, capsys)
    assert "nobody implements acme.Mix ('mixer')" in printed and "--ops" in printed


@pytest.mark.parametrize("command", ["plan", "run", "compare", "trace", "explain"])
def test_a_file_for_one_processor_is_one_line_with_what_to_do(command: str, tmp_path: Path, capsys: Capture) -> None:
    path = save(foreign_model([node("Conv", ["x"], domain="com.microsoft.nchwc")], X), tmp_path)
    printed = error([command, path], 1, capsys)
    assert "com.microsoft.nchwc.Conv: this file was optimised for one processor; save it at the extended lev" in printed


def test_shapes_that_nobody_tells_are_one_error_with_all_operators(tmp_path: Path, capsys: Capture) -> None:
    nodes = [
        node("Mix", ["x"], ["a"], domain="acme"),
        node("Mix", ["a"], ["b"], domain="acme"),
        node("Warp", ["b"], domain="com.example.gpu"),
    ]
    path = save(foreign_model(nodes, X), tmp_path)
    printed = error(["plan", path], 1, capsys)
    assert "acme.Mix (opset 1) x2, com.example.gpu.Warp (opset 1); " in printed and "--infer acme.Mix=like:0" in printed
    printed = error(["plan", path, *LIKE], 1, capsys)
    assert "acme.Mix" not in printed and "--infer com.example.gpu.Warp=like:0" in printed
    both = planned([path, *LIKE, "--infer", "com.example.gpu.Warp=like:0"], capsys)
    assert [kind for _, kind in opaque(both)] == ["acme.Mix", "acme.Mix", "com.example.gpu.Warp"]


def test_several_outputs_are_like_one_input_or_like_one_each(tmp_path: Path, capsys: Capture) -> None:
    nodes = [node("Part", ["x", "k"], ["p", "q"], domain="acme"), node("Identity", ["q"], ["y"])]
    path = save(foreign_model(nodes, [*X, value("k", (3,), np.int64)], (), ("p", "y")), tmp_path)
    for rule, sizes in (("like:0", {"p": 128, "q": 128}), ("like:0,like:1", {"p": 128, "q": 24})):
        printed = planned([path, "--infer", f"acme.Part={rule}", "--optimise", "0"], capsys)
        assert {each["name"]: each["bytes"] for each in printed["peak_tensors"] if each["name"] in sizes} == sizes


def test_outputs_that_nobody_reads_need_no_shape(tmp_path: Path, capsys: Capture) -> None:
    nodes = [
        node("Part", ["x"], ["p", "unread", ""], domain="acme", name="part"),
        node("Part", ["x"], ["lost"], domain="acme", name="unused"),
        node("Relu", ["p"]),
    ]
    printed = planned([save(foreign_model(nodes, X, [value("p", (4, 8))]), tmp_path), "--optimise", "0"], capsys)
    assert opaque(printed) == [("part", "acme.Part")]
    declared = foreign_model(nodes, X, [value("p", (4, 8)), value("lost", (4, 8))])
    assert len(planned([save(declared, tmp_path), "--optimise", "0"], capsys)["opaque"]) == 2
    assert opaque(planned([save(declared, tmp_path)], capsys)) == [("part", "acme.Part")]


def test_equal_operators_are_not_merged_and_constant_ones_not_computed(tmp_path: Path, capsys: Capture) -> None:
    nodes = [
        *(node("Mix", ["w"], [name], domain="acme", turns=i) for i, name in enumerate("ab")),
        node("Add", ["a", "b"], ["c"]),
        node("Add", ["c", "x"]),
    ]
    proto = foreign_model(nodes, X, initializers={"w": np.ones((4, 8), np.float32)})
    assert len(planned([save(proto, tmp_path), *LIKE], capsys)["opaque"]) == 2


def test_an_operator_inside_a_branch_is_planned_and_told(tmp_path: Path, capsys: Capture) -> None:
    then = helper.make_graph(
        [node("Mix", ["x"], ["t"], domain="acme", name="inside")], "then", [], [value("t", (4, 8))]
    )
    other = helper.make_graph([node("Relu", ["x"], ["e"])], "else", [], [value("e", (4, 8))])
    branch = node("If", ["c"], then_branch=then, else_branch=other)
    path = save(foreign_model([branch], [value("c", (), bool), *X]), tmp_path)
    (only,) = opaque(planned([path], capsys))
    assert only[1] == "acme.Mix" and "inside" in only[0]
    assert "nobody implements acme.Mix" in error(["run", path], 1, capsys)


def test_what_a_graph_inside_an_operator_reads_is_kept_alive(tmp_path: Path, capsys: Capture) -> None:
    inner = helper.make_graph([node("Relu", ["a"], ["r"])], "inner", [], [value("r", (4, 8))])
    nodes = [node("Relu", ["x"], ["a"]), node("Repeat", ["x"], domain="acme", body=inner)]
    printed = planned([save(foreign_model(nodes, X), tmp_path), "--infer", "acme.Repeat=like:0"], capsys)
    assert printed["arena_bytes"] == 3 * 4 * 8 * 4


def test_open_lengths_are_those_of_the_inputs(tmp_path: Path, capsys: Capture) -> None:
    inputs = [value("x", ("n", 8))]
    path = save(mixed([value("m", ("n", 16))], inputs), tmp_path)
    for rows in (4, 100):
        assert planned([path, "--dim", f"n={rows}"], capsys)["arena_bytes"] == -(rows * 8 * 4 // -64) * 64 + rows * 64
        assert (
            planned([path, "--shape", f"x={rows},8"], capsys)["arena_bytes"] == -(rows * 8 * 4 // -64) * 64 + rows * 64
        )
    assert opaque(planned([path, "--length-ranges", "n=1:4"], capsys)) == [("mixer", "acme.Mix")]
    strange = save(mixed([value("m", ("k", 16))], inputs), tmp_path, "strange.onnx")
    assert "length of axis 0 ('k') of its output 'm'; " in error(["plan", strange, "--dim", "n=4"], 1, capsys)


def test_where_data_decide_sizes_the_first_stage_is_planned(tmp_path: Path, capsys: Capture) -> None:
    nodes = [node("NonZero", ["x"], ["i"]), node("Mix", ["i"], domain="acme")]
    path = save(foreign_model(nodes, X), tmp_path)
    assert data(["plan", path, *LIKE], capsys)["decides"]
    assert "nobody implements acme.Mix" in error(["run", path, *LIKE], 1, capsys)


def test_a_saved_plan_is_followed(tmp_path: Path, capsys: Capture) -> None:
    path, kept = save(mixed([value("m", (4, 8))]), tmp_path), str(tmp_path / "planned.onnx")
    assert main(["plan", path, "-o", kept]) == 0
    capsys.readouterr()
    assert planned([kept, "--plan-from-file", "required"], capsys)["origin"] == "from the file"


@pytest.mark.parametrize(
    ("rule", "code", "message"),
    [
        ("acme.Mix", 2, "write for example acme.MyOp=like:0"),
        ("acme.Mix=as:0", 2, "rule 'as:0' for acme.Mix"),
        ("acme.Mix=like:-1", 2, "rule 'like:-1'"),
        ("acme.Max=like:0", 2, "no operator acme.Max that nobody implements"),
        ("Relu=like:0", 2, "no operator ai.onnx.Relu that nobody implements"),
        ("acme.Mix=like:1", 1, "is to be like its input 1, and has none there"),
    ],
)
def test_a_wrong_rule_is_one_line(rule: str, code: int, message: str, tmp_path: Path, capsys: Capture) -> None:
    path = save(mixed([value("m", (4, 8))]), tmp_path)
    assert message in error(["plan", path, "--infer", rule], code, capsys)


def test_a_network_of_the_zoo_takes_no_rule(capsys: Capture) -> None:
    assert "leave out --infer" in error(["plan", "zoo:mobilenet", *LIKE], 1, capsys)


def test_an_operator_that_the_onnx_package_knows_and_nobody_implements_can_be_planned(
    tmp_path: Path, capsys: Capture
) -> None:
    counted: dict[str, Any] = {"mode": "TF", "ngram_counts": [0], "ngram_indexes": [0, 1], "pool_int64s": [3, 5]}
    lengths: dict[str, Any] = {"min_gram_length": 1, "max_gram_length": 1, "max_skip_count": 0}
    words = node("TfIdfVectorizer", ["x"], **counted, **lengths)
    proto = onnx.shape_inference.infer_shapes(foreign_model([words], [value("x", (5,), np.int64)]))
    assert opaque(planned([save(proto, tmp_path)], capsys))[0][1] == "ai.onnx.TfIdfVectorizer"
