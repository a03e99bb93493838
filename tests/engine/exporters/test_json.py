"""The JSON Schema of traces, which other programs go by, and what is written and read are one."""

import json
from pathlib import Path
from typing import Any

import pytest
from attrs import fields
from hypothesis import given, settings
from jsonschema import Draft202012Validator

import engine
from engine import Event, Trace
from engine.trace.trace import VERSION, RunInfo
from tests.helpers.graphs.random_graphs import build, seeded
from tests.helpers.paths import ROOT
from tests.helpers.traces.exported_files import exported
from tests.helpers.traces.saved_traces import traces

SCHEMA: dict[str, Any] = json.loads((ROOT / "docs" / "trace.schema.json").read_text())
VALIDATOR = Draft202012Validator(SCHEMA)
SMALL: dict[str, Any] = json.loads(exported("json", engine.make_plan(build(seeded(3), 6), optimise=0).trace()))


def test_the_trace_schema_is_a_valid_json_schema() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["properties"]["version"] == {"const": VERSION}


@pytest.mark.parametrize(
    ("schema", "of"), [(SCHEMA["$defs"]["event"], Event), (SCHEMA["properties"]["facts"], RunInfo)]
)
def test_every_field_of_the_trace_schema_is_described(schema: dict[str, Any], of: type) -> None:
    assert list(schema["properties"]) == schema["required"] == [f.name for f in fields(of)]
    assert all(entry["description"] for entry in schema["properties"].values())


@settings(max_examples=20, deadline=None)
@given(traces())
def test_json_traces_keep_to_the_schema(trace: Trace) -> None:
    VALIDATOR.validate(json.loads(exported("json", trace)))


@pytest.mark.parametrize(
    ("field", "value"),
    [("tick", -1), ("kind", "alloca"), ("bytes", 1.5), ("chunk", -2), ("seconds", -2), ("tensor", None), ("more", 1)],
)
def test_the_schema_refuses_what_the_reader_refuses(field: str, value: object, tmp_path: Path) -> None:
    changed = SMALL | {"events": [SMALL["events"][0] | {field: value}, *SMALL["events"][1:]]}
    assert not VALIDATOR.is_valid(changed)
    (path := tmp_path / "t.json").write_text(json.dumps(changed))
    with pytest.raises(engine.EngineError, match=rf":1: ({field}: |no field of an event is called '{field}')"):
        tuple(engine.read_trace(path))


def test_json_traces_have_an_event_a_line() -> None:
    lines = exported("json", engine.make_plan(build(seeded(3), 6), optimise=0).trace()).decode().splitlines()
    assert [json.loads(line.removesuffix(",")) for line in lines[1:-1]] == SMALL["events"]
    assert lines[-1] == "]}"
