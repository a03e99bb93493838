"""What commands print with --json keeps to one schema, which names and explains every key."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import fields
from jsonschema import Draft202012Validator

from engine.cli.main import COMMANDS, build_parser
from engine.report.report import Report
from tests.helpers.cli.cli_checks import Capture, data
from tests.helpers.onnx.convolutions import convolutions
from tests.helpers.onnx.saved_models import save_perceptron, save_positive
from tests.helpers.paths import ROOT

SCHEMA: dict[str, Any] = json.loads((ROOT / "docs" / "output.schema.json").read_text())
PLACED = "id,lower,upper,size,offset\na,0,2,10,20\nb,1,3,20,0\n"
CALLS = {
    "plan": [
        "plan M",
        "plan OPEN --length-ranges n=1:4",
        "plan STAGED --dim n=4",
        "plan M --target none",
        "plan M --memory a=1MiB,1GB/s",
    ],
    "plan --share": ["plan M zoo:squeezenet?image=32 --share", "plan M OTHER --share --concurrent perceptron,other"],
    "explain": ["explain M", "explain STAGED --dim n=4", "explain zoo:squeezenet?image=32 --backend numpy"],
    "explain --tensor": ["explain M --tensor x", "explain M --tensor y", "explain M --tensor x --memory a=1MiB,1GB/s"],
    "explain --operator": ["explain M --operator Gemm_2", "explain M --operator feed"],
    "explain --budget": ["explain M --budget 1MiB", "explain M --no-reuse --budget 1100"],
    "fit": ["fit OPEN --vary n=1:9 --budget 2KiB"],
    "run": ["run M", "run M --mode dynamic", "run M --mode poison", "run M --mode dynamic --evict lru --budget 1KiB"],
    "run in stages": ["run STAGED --dim n=4"],
    "run --stream": ["run IMAGE --stream 4 --input x=ROWS -o MASK"],
    "compare": ["compare M --runs 1 --oracle onnxruntime", "compare M --runs 2 --evict coop --budget 1KiB"],
    "compare in stages": ["compare STAGED --dim n=4 --runs 1"],
    "compare --passes": ["compare M --passes --runs 1"],
    "compare --parallel": ["compare M --parallel --runs 1"],
    "heaps": ["heaps M --timeline", "heaps M --capacity 600"],
    "heaps --evict": ["heaps M --evict dtr --budget 1KiB", "heaps M --evict coop --budget 64"],
    "partition": ["partition M --capacity 4KiB,4KiB", "partition M --capacity 2x4KiB --objective throughput"],
    "solve": ["solve B", "solve B --strategy all --capacity 1KiB", "solve B --validate"],
}
"""Command lines, by the part of the schema that their output keeps to; words in capitals are files."""
SLOW = {
    "compare --measure": "compare M --measure --runs 1 --pairs 1",
    "run of many": "run M --input x=F/*.npy",
    "sweep": "sweep M --vary optimise=0,3",
}


def _validator(name: str) -> Draft202012Validator:
    return Draft202012Validator(SCHEMA | {"anyOf": [{"$ref": f"#/$defs/{name.replace(' ', '%20')}"}]})


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("schema")
    (folder / "placed.csv").write_text(PLACED)
    return {
        "M": str(save_perceptron(folder / "perceptron.onnx")),
        "OTHER": str(save_perceptron(folder / "other.onnx")),
        "OPEN": str(save_perceptron(folder / "open.onnx", "n")),
        "STAGED": str(save_positive(folder / "staged.onnx")),
        "IMAGE": convolutions(folder, size=8, batch=1),
        "ROWS": _saved(folder / "image.npy", (1, 8, 8, 8)),
        "MASK": str(folder / "mask.npy"),
        "B": str(folder / "placed.csv"),
    }


def _printed(line: str, files: dict[str, str], capsys: Capture) -> dict[str, Any]:
    pairs = [word.rpartition("=") for word in line.split()]
    return data([head + equals + files.get(tail, tail) for head, equals, tail in pairs], capsys)


def _saved(path: Path, shape: tuple[int, ...]) -> str:
    np.save(path, np.ones(shape, np.float32))
    return str(path)


@pytest.mark.parametrize(("name", "line"), [(name, line) for name, lines in CALLS.items() for line in lines])
def test_what_commands_print_keeps_to_the_schema(name: str, line: str, files: dict[str, str], capsys: Capture) -> None:
    printed = _printed(line, files, capsys)
    _validator(name).validate(printed)
    assert not _validator(name).is_valid(printed | {"no key of ours": 0})


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_what_runs_in_several_processes_print_keeps_to_the_schema(
    name: str, files: dict[str, str], tmp_path: Path, capsys: Capture
) -> None:
    for i in range(2):
        np.save(tmp_path / f"{i}.npy", np.ones((4, 8), np.float32))
    _validator(name).validate(_printed(SLOW[name].replace("F/", f"{tmp_path}/"), files, capsys))


def test_the_schema_is_one_and_explains_every_key() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    for name, part in SCHEMA["$defs"].items():
        assert part["description"].endswith("."), name
        assert all(each["description"].endswith(".") for each in part["properties"].values()), name
    assert {field.name for field in fields(Report)} <= SCHEMA["$defs"]["plan"]["properties"].keys()


def test_every_command_with_json_is_in_the_schema() -> None:
    listed = {name.split()[0] for name in (*CALLS, *SLOW)} | {"trace"}  # which has a schema of its own
    parser = build_parser()
    with_json = {name for name in COMMANDS if "--json" in parser.parse_args([name, "x"]).parser.format_help()}
    assert with_json <= listed
    named = {part["$ref"].removeprefix("#/$defs/").replace("%20", " ") for part in SCHEMA["anyOf"]}
    assert named == {*CALLS, *SLOW}
