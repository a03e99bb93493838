"""`arenaplan trace --simulate`: the free list as a table and as JSON."""

import json
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from attrs import fields
from jsonschema import Draft202012Validator

import engine
from allocator.solvers.free_list import Alloc, Free, Overwrite, Source
from engine.cli.free_list import show
from engine.cli.main import USAGE, main
from engine.text.screen import FILE, Screen
from engine.trace.simulation import simulation_of
from engine.zoo import NETWORKS
from tests.helpers.cli.cli_checks import Capture, error
from tests.helpers.paths import ROOT

SCHEMA: dict[str, Any] = json.loads((ROOT / "docs" / "free_list.schema.json").read_text())
NETWORK = ("trace", "zoo:squeezenet?image=32", "--optimise", "0", "--strategy", "pushdown")
PLANNED = (*NETWORK, "--simulate")


def test_the_table_tells_each_event_its_block_and_the_memory_after_it(capsys: Capture) -> None:
    assert main([*PLANNED]) == 0
    head, blank, title, *lines = capsys.readouterr().out.splitlines()
    assert head.endswith(" chunks in the free list of pushdown") and not blank
    assert title.split() == ["tick", "event", "tensor", "bytes", "block", "memory,", "from", "low", "to", "high"]
    assert {line.split()[1] for line in lines[:-2]} == {"alloc", "overwrite", "free"}
    assert lines[-3].split()[-2] == "free" and "|" not in lines[-3]
    assert lines[-1].startswith("pushed down: ")


def test_the_json_keeps_to_its_schema_and_says_what_the_plan_says(tmp_path: Path, capsys: Capture) -> None:
    assert main([*PLANNED, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    Draft202012Validator.check_schema(SCHEMA)
    Draft202012Validator(SCHEMA).validate(printed)
    assert main([*NETWORK, "--json"]) == 0
    trace = json.loads(capsys.readouterr().out)
    assert printed["arena_bytes"] == trace["facts"]["arena_bytes"]
    offsets = {e["chunk"]: e["offset"] for e in trace["events"] if e["kind"] in ("alloc", "overwrite")}
    assert {chunk["chunk"]: chunk["offset"] for chunk in printed["chunks"]} == offsets
    assert main([*PLANNED, "-o", str(tmp_path / "list.json")]) == 0
    assert json.loads((tmp_path / "list.json").read_text()) == printed


@pytest.mark.parametrize("event", [Alloc, Overwrite, Free], ids=lambda event: event.__name__)
def test_the_schema_describes_every_field_of_an_event(event: type) -> None:
    schema = SCHEMA["$defs"][event.__name__.lower()]
    names = {"bytes" if f.name == "size" else f.name for f in fields(event)}
    assert set(schema["properties"]) == set(schema["required"]) == names | {"event", "memory"}
    assert all("$ref" in entry or entry["description"] for entry in schema["properties"].values())
    assert SCHEMA["$defs"]["alloc"]["properties"]["source"]["enum"] == [str(source) for source in Source]


def test_a_saved_trace_is_simulated_as_the_model_is(tmp_path: Path, capsys: Capture) -> None:
    saved = tmp_path / "t.json"
    assert main([*NETWORK, "--json", "-o", str(saved)]) == 0
    assert main([*PLANNED]) == 0
    printed = capsys.readouterr().out
    assert main(["trace", str(saved), "--simulate"]) == 0
    assert capsys.readouterr().out == printed


def test_on_a_terminal_lines_are_cut_at_its_width() -> None:
    simulation = simulation_of(engine.make_plan(NETWORKS["lstm_classifier"](), strategy="pushdown").trace())
    whole, narrow = BytesIO(), BytesIO()
    show(simulation, whole, FILE)
    show(simulation, narrow, Screen(60))
    lines = [line if len(line) <= 60 else f"{line[:59]}…" for line in whole.getvalue().decode().splitlines()]
    assert narrow.getvalue().decode().splitlines() == lines
    assert max(map(len, lines)) == 60


def test_other_formats_than_a_table_and_json_are_refused(capsys: Capture) -> None:
    message = error([*PLANNED, "--format", "svg"], USAGE, capsys)
    assert message.endswith("--simulate writes a table or JSON: leave out --format svg")
