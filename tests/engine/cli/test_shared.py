"""`arenaplan plan --share` on real files: the table, JSON, files, and mistakes in one line."""

import json
import subprocess
from pathlib import Path
from typing import Any

import onnx
import pytest

import engine
import ops
from allocator.problem import align_up
from engine import SGD
from engine.cli.main import main
from engine.sharing.parts import split
from engine.sharing.within import bytes_in_two_parts, states_of_others
from tests.helpers.cli.cli_checks import Capture, data, error
from tests.helpers.graphs.branching import branching_graph
from tests.helpers.graphs.perceptrons import perceptron
from tests.helpers.onnx.onnx_writer import to_onnx
from tests.helpers.onnx.saved_models import save_positive


@pytest.fixture
def models(tmp_path: Path) -> list[str]:
    paths = [tmp_path / f"{name}.onnx" for name in ("a", "b", "c")]
    for seed, path in enumerate(paths):
        onnx.save(to_onnx(branching_graph(1 + 2 * seed, 12 + 12 * seed)), path)
    return [str(path) for path in paths]


def test_json_tells_what_python_does(models: list[str], tmp_path: Path, capsys: Capture) -> None:
    out = tmp_path / "shared.json"
    words = ["plan", *models, "--share", "--concurrent", "a,c.onnx", "-o", str(out)]
    printed: dict[str, Any] = data(words, capsys)
    plans = [engine.make_plan(engine.load_onnx(path)) for path in models]
    wanted = engine.share(*plans, concurrent=[(plans[0], plans[2])]).to_json()
    assert [row["model"] for row in printed["models"]] == ["a", "b", "c"]
    assert [row["concurrent"] for row in printed["models"]] == [["c"], [], ["a"]]
    for row in (*printed["models"], *wanted["models"]):
        assert row["same_state"] == []
        del row["model"], row["concurrent"]
    assert printed == wanted and printed["status"] == "optimal"
    assert {**json.loads(out.read_text()), "models": []} == {**printed, "models": []}


def test_a_pipeline_is_told_and_zoo_networks_go_by_their_short_names(tmp_path: Path, capsys: Capture) -> None:
    graph = engine.Graph("back")
    graph.output(ops.relu(graph.input("logits", (1, 1000))), "y=1:2")
    back = tmp_path / "back.onnx"
    onnx.save(to_onnx(graph), back)
    words = ["plan", "zoo:squeezenet?image=32", str(back), "zoo:resnet18?image=32", "--share"]
    words += ["--concurrent", "squeezenet,resnet18"]
    plan = data(words, capsys)
    assert plan["pipeline"] == [] and plan["models"][0]["concurrent"] == ["zoo:resnet18?image=32"]
    output = next(iter(engine.zoo.squeezenet(image=32).outputs))
    link = f"squeezenet:{output}=back:logits"
    (link_data,) = data([*words, "--pipeline", link], capsys)["pipeline"]
    assert link_data == {"giver": "zoo:squeezenet?image=32", "output": output, "taker": "back", "input": "logits"}
    assert main([*words, "--pipeline", link]) == 0
    assert f"in place: zoo:squeezenet?image=32: {output} = back: logits" in capsys.readouterr().out
    said = error([*words, "--pipeline", "back:y=1:2=squeezenet:x"], 2, capsys)
    assert "--pipeline back:y=1:2=squeezenet:x is no output of one model and input of another" in said


def test_the_table_and_files_have_each_model(models: list[str], tmp_path: Path, capsys: Capture) -> None:
    table, header = tmp_path / "shared.csv", tmp_path / "arena.h"
    for path in (table, header):
        assert main(["plan", *models, "--share", "-o", str(path), "--prefix", "ALL"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("3 networks in one arena of ") and [line.split()[0] for line in lines[2:5]] == [*"abc"]
    rows = [line.split(",") for line in table.read_text().splitlines()]
    assert rows[0][0] == "model" and [row[0] for row in rows[1:]] == [*"abc"]
    text = header.read_text()
    assert "#define ALL_OFFSET_a_x 0u" in text and "ALL_TENSOR_c_x" in text
    program = tmp_path / "main.c"
    program.write_text('#include "arena.h"\nint main(void) { return ALL_OFFSET_b_x + ALL_SIZE_b_x > ALL_BYTES; }\n')
    subprocess.run(["cc", "-std=c99", "-Wall", "-Werror", "-o", tmp_path / "main", program], check=True)
    assert subprocess.run([tmp_path / "main"], check=False).returncode == 0


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ("plan A B", 2, "2 models are given: --share plans one arena"),
        ("plan A --share", 2, "--share takes two models or more"),
        ("plan A --concurrent a,b", 2, "--concurrent says which models of --share"),
        ("plan A --same-state a,b", 2, "--same-state says which models of --share have the same parameters"),
        ("plan A B --share --same-state a,d", 2, "--same-state d: no model is called so"),
        ("plan A B --share --same-state a,b", 2, "do not have the same parameters: they have none"),
        ("plan A --pipeline a:y=b:x", 2, "--pipeline says which output of --share is which input"),
        ("plan A B --share --concurrent a,d", 2, "--concurrent d: no model is called so; there are a, b"),
        ("plan A B --share --concurrent a", 2, "'a' names no two models"),
        ("plan A B --share --concurrent a,a", 2, "'a,a' names no two models"),
        ("plan A B --share --concurrent a,a.onnx", 2, "a network with itself"),
        ("plan A A --share", 2, "is given twice"),
        ("plan A none.onnx --share", 1, "none.onnx: there is no such file"),
        ("plan A B --share -o shared.onnx", 2, "ends in one of .h, .csv, .json"),
        ("plan A B --share -o nowhere/shared.json", 1, "there is no such folder"),
        ("plan A B --share --kernels", 2, "leave out --kernels"),
        ("plan A B --share --length-ranges n=1:4", 2, "leave out --length-ranges"),
        ("plan A B --share -o shared.h --prefix 1", 1, "no identifier of C"),
    ],
)
def test_mistakes_are_one_line(words: str, code: int, says: str, models: list[str], capsys: Capture) -> None:
    paths = {"A": models[0], "B": models[1]}
    assert says in error([paths.get(word, word) for word in words.split()], code, capsys)


def test_a_budget_is_that_of_the_shared_arena(models: list[str], capsys: Capture) -> None:
    arena = data(["plan", *models, "--share", "--concurrent", "a,b,c"], capsys)["arena_bytes"]
    ask = ["plan", *models, "--share", "--concurrent", "a,b,c", "--budget"]
    assert main([*ask, str(arena)]) == 0
    capsys.readouterr()
    assert "give each its own budget" in error([*ask, str(arena - 1)], 3, capsys)
    assert main(["plan", *models, "--share", "--budget", "64"]) == 3
    assert "a.onnx: " in capsys.readouterr().err


@pytest.mark.slow
def test_models_are_planned_within_what_parameters_of_others_leave(capsys: Capture) -> None:
    query = "image=8&width=2&depth=1&batch=2&training=true&optimiser=sgd"
    ask = ["plan", f"zoo:unet?{query}", f"zoo:unet?{query}&seed=1", "--share", "-q"]
    whole = data(ask, capsys)
    state = whole["models"][1]["state_bytes"]
    budget = whole["arena_bytes"] - state // 2
    assert whole["models"][0]["separate_bytes"] <= budget  # each fits as if it were alone
    held = data([*ask, "--budget", str(budget)], capsys)
    assert held["arena_bytes"] <= budget
    assert [model["state_bytes"] for model in held["models"]] == [state, state]
    alone = [*ask, "--budget", str(whole["models"][0]["separate_bytes"]), "--no-recompute"]
    assert main(alone) == 3
    assert ", beside 3776 bytes (3.69 KiB) of parameters of the other models: the plan needs" in capsys.readouterr().err


def test_what_the_states_of_others_take_counts_once_for_networks_with_one_state() -> None:
    plans = [engine.make_plan(perceptron(0, 16, SGD(0.1)), optimise=0, nodes=100) for _ in range(2)]
    scratch = engine.make_plan(branching_graph(1, 12), nodes=100)
    (state,) = {align_up(split(plan).state_bytes, split(plan).alignment) for plan in plans}
    assert states_of_others([*plans, scratch], ((0, 1), (2,))) == [0, 0, state]
    assert states_of_others([*plans, scratch], ((0,), (1,), (2,))) == [state, state, 2 * state]
    assert bytes_in_two_parts(scratch) == scratch.arena_bytes


def test_a_model_whose_sizes_data_decide_is_told_in_one_line(tmp_path: Path, capsys: Capture) -> None:
    staged, other = (str(save_positive(tmp_path / f"{name}.onnx")) for name in ("staged", "other"))
    said = error(["plan", staged, other, "--dim", "n=4", "--share"], 2, capsys)
    assert f"--share takes plans of known sizes; data decide some of {staged} while it runs" in said
