"""`arenaplan partition` on real files: a table, JSON, a picture, and mistakes in one line."""

from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import onnx
import pytest

from engine.cli.main import main
from engine.onnx.load import load_onnx
from engine.partitions.partition import partition
from tests.helpers.cli.cli_checks import Capture, data, error
from tests.helpers.graphs.branching import branching_graph
from tests.helpers.onnx.onnx_writer import to_onnx
from tests.helpers.onnx.saved_models import save_perceptron


@pytest.fixture
def model(tmp_path: Path) -> str:
    path = tmp_path / "branching.onnx"
    onnx.save(to_onnx(branching_graph(1, 12)), path)
    return str(path)


def test_json_tells_what_python_does(model: str, capsys: Capture) -> None:
    printed: dict[str, Any] = data(["partition", model, "--capacity", "6KiB,8KiB", "--objective", "throughput"], capsys)
    result = partition(load_onnx(model), ["6KiB", "8KiB"], "throughput")
    assert printed == result.to_json()
    assert [part["capacity"] for part in printed["parts"]] == [6144, 8192]
    for part in printed["parts"]:
        assert part["weights_bytes"] + part["arena_bytes"] <= part["capacity"]
        assert part["lower_bound"] <= part["arena_bytes"]
    assert sum(send["bytes"] for send in printed["sends"]) == printed["traffic_bytes"]
    assert printed["status"] == ("optimal" if not printed["gap"] else "within gap")


def test_the_table_has_a_row_for_each_part_and_the_picture_a_bar(model: str, tmp_path: Path, capsys: Capture) -> None:
    picture = tmp_path / "parts.svg"
    assert main(["partition", model, "--capacity", "3x8KiB", "-o", str(picture)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[2:5]] == ["1", "2", "3"]
    assert "3 parts" in lines[0]
    titles = [str(e.text) for e in ET.parse(picture).iter() if e.tag.endswith("title")]
    assert sum(title.startswith("part ") for title in titles) == 3


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ([], 2, "--capacity has to say how many bytes"),
        (["--capacity", "5 furlongs"], 2, "no size in bytes"),
        (["--capacity", "0x8KiB"], 2, "is 0 parts; there may be 1 to 1024"),
        (["--capacity", "-2x8KiB"], 2, "argument --capacity"),
        (["--capacity", "1,"], 2, "no size in bytes"),
        (["--capacity", "40x8KiB"], 2, "has 12 operators, too few for 40 parts"),
        (["--capacity", "8KiB", "--objective", "fame"], 2, "invalid choice: 'fame'"),
        (["--capacity", "8KiB", "--bandwidth", "0"], 2, "sends nothing"),
        (["--capacity", "8KiB", "-o", "parts.png"], 2, "ends in .svg"),
        (["--capacity", "8KiB", "-o", "nowhere/parts.svg"], 1, "there is no such folder"),
        (["--capacity", "100,8KiB"], 3, "the capacities cannot hold graph"),
    ],
)
def test_mistakes_are_one_line(model: str, words: list[str], code: int, says: str, capsys: Capture) -> None:
    assert says in error(["partition", model, *words, "--optimise", "0"], code, capsys)


def test_open_dimensions_are_refused_until_they_have_lengths(tmp_path: Path, capsys: Capture) -> None:
    path = str(save_perceptron(tmp_path / "open.onnx", "batch"))
    assert "give their lengths" in error(["partition", path, "--capacity", "2x1MiB"], 1, capsys)
    assert main(["partition", path, "--capacity", "2x1MiB", "--dim", "batch=4"]) == 0
