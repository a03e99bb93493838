"""`arenaplan plan -o FILE.onnx` and `--plan-from-file`."""

import json
from pathlib import Path

import onnx
import pytest

from engine.cli.main import main
from engine.onnx.embedded import PREFIX
from tests.helpers.cli.cli_checks import Capture, data, error
from tests.helpers.onnx.small_models import model, node, value


@pytest.fixture
def planned(tmp_path: Path, capsys: Capture) -> str:
    """Returns the path of a model that carries a plan in the order "memory"."""
    nodes = [node("MatMul", ["x", "x"], ["h"]), node("Relu", ["h"], ["y"])]
    onnx.save(model(nodes, [value("x", ("n", "n"))]), tmp_path / "model.onnx")
    path = str(tmp_path / "planned.onnx")
    assert (
        main(
            [
                "plan",
                str(tmp_path / "model.onnx"),
                "--dim",
                "n=8",
                "--order",
                "memory",
                "--optimise",
                "0",
                "-o",
                path,
            ]
        )
        == 0
    )
    assert "plan:" not in capsys.readouterr().out
    return path


def test_a_saved_plan_is_followed(planned: str, capsys: Capture) -> None:
    asked = ["--dim", "n=8", "--order", "memory", "--optimise", "0"]
    assert data(["plan", planned, *asked, "--plan-from-file", "required"], capsys)["origin"] == "from the file"
    assert data(["plan", planned, *asked, "--plan-from-file", "never"], capsys)["origin"] == ""
    assert main(["plan", planned, *asked]) == 0
    assert "\n  plan: from the file\n" in capsys.readouterr().out
    assert data(["run", planned, *asked, "--plan-from-file", "required"], capsys)["origin"] == "from the file"


def test_a_trace_tells_of_the_plan_in_the_file(planned: str, capsys: Capture) -> None:
    asked = ["trace", planned, "--dim", "n=8", "--format", "csv", "--optimise", "0"]
    assert main([*asked, "--order", "memory", "--plan-from-file", "required"]) == 0
    assert capsys.readouterr().err == ""
    assert main(asked) == 0
    assert "was made with order='memory', not 'given'" in capsys.readouterr().err
    assert main([*asked, "--real"]) == 0
    assert "was made with order='memory', not 'given'" in capsys.readouterr().err


def test_a_saved_plan_that_does_not_fit_is_planned_anew_and_told(planned: str, capsys: Capture) -> None:
    assert main(["run", planned, "--dim", "n=9", "--order", "memory", "--optimise", "0"]) == 0
    captured = capsys.readouterr().err
    assert captured == (
        f"arenaplan: {planned}: plan made anew: the plan in {planned} is for 'x' float32 8x8, "
        "and here is 'x' float32 9x9\n"
    )
    message = error(["run", planned, "--dim", "n=8", "--optimise", "0", "--plan-from-file", "required"], 1, capsys)
    assert message == f"arenaplan: error: the plan in {planned} was made with order='memory', not 'given'"


def test_a_damaged_saved_plan_is_refused_with_exit_code_5(planned: str, capsys: Capture) -> None:
    proto = onnx.load(planned)
    offsets = next(p for p in proto.metadata_props if p.key == f"{PREFIX}offsets")
    names = [name for name, _ in json.loads(offsets.value)]
    offsets.value = json.dumps([[name, 0] for name in names])
    onnx.save(proto, planned)
    asked = ["plan", planned, "--dim", "n=8", "--order", "memory", "--optimise", "0"]
    message = error(asked, 5, capsys)
    assert message.startswith(
        f"arenaplan: error: the plan in {planned} is wrong (overlap, 'x' and 'h'): chunk 0 has bytes"
    )
    offsets.value = '[["x",-1],["h",0]]'
    onnx.save(proto, planned)
    assert "metadata 'pkg.arenaplan.offsets' row 0: '-1' is no integer" in error(asked, 5, capsys)
    assert main([*asked, "--plan-from-file", "never"]) == 0


def test_save_plan_names_formats_that_cannot_hold_a_plan(planned: str, tmp_path: Path, capsys: Capture) -> None:
    zoo = ["plan", "zoo:lstm_classifier"]
    message = error([*zoo, "-o", str(tmp_path / "new.onnx")], 2, capsys)
    assert "zoo:lstm_classifier is no file" in message
    assert "is no file with a plan" in error([*zoo, "--plan-from-file", "required"], 2, capsys)
    poison = ["run", planned, "--dim", "n=8", "--mode", "poison"]
    assert "plans for itself" in error([*poison, "--plan-from-file", "required"], 2, capsys)
    assert main(poison) == 0 and capsys.readouterr().err == ""
    bounds = ["plan", planned, "--length-ranges", "n=1:8", "-o", str(tmp_path / "new.onnx")]
    assert "give --dim in place of --length-ranges" in error(bounds, 2, capsys)
    assert not (tmp_path / "new.onnx").exists()
    bounds = ["plan", planned, "--length-ranges", "n=1:8", "--plan-from-file", "required"]
    assert "leave out --length-ranges" in error(bounds, 2, capsys)


def test_the_old_name_of_the_option_writes_the_same(planned: str, tmp_path: Path, capsys: Capture) -> None:
    asked = ["plan", str(tmp_path / "model.onnx"), "--dim", "n=8", "--order", "memory", "--optimise", "0"]
    assert main([*asked, "--save-plan", str(tmp_path / "old.onnx")]) == 0
    assert "--save-plan FILE is now called -o FILE.onnx" in capsys.readouterr().err
    assert (tmp_path / "old.onnx").read_bytes() == Path(planned).read_bytes()
    both = [*asked, "--save-plan", str(tmp_path / "a.onnx"), "-o", str(tmp_path / "b.h")]
    assert "give -o alone" in error(both, 2, capsys)


def test_save_plan_refuses_a_graph_that_runs_in_stages(planned: str, tmp_path: Path, capsys: Capture) -> None:
    nodes = [node("NonZero", ["x"], ["n"]), node("Cast", ["n"], ["y"], to=1)]
    path = str(tmp_path / "model.onnx")
    onnx.save(model(nodes, [value("x", (3, 3))]), path)
    message = error(["plan", path, "-o", str(tmp_path / "new.onnx")], 2, capsys)
    assert f"data decide some sizes of {path} while it runs" in message
    proto = onnx.load(planned)
    moved = onnx.load(path)
    moved.metadata_props.extend(proto.metadata_props)
    onnx.save(moved, path + "2")
    assert main(["run", path + "2"]) == 0
    assert capsys.readouterr().err.endswith("is not followed: data decide sizes while the model runs\n")
    assert "while the model runs" in error(["run", path + "2", "--plan-from-file", "required"], 1, capsys)
    assert f"{path} carries no plan" in error(["run", path, "--plan-from-file", "required"], 1, capsys)
