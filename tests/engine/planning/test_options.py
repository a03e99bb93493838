"""Options of planning: the keywords of the public functions, flags and saved plans all have the fields of `Options`."""

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, get_type_hints

import pytest
from attrs import evolve

from allocator.memories.memory import Memory
from engine.cli.measure.processes import BYTES, MeasureTask, read_task
from engine.cli.options.common import add_parallel, add_planning, plan_options
from engine.cli.options.model_flags import add_model
from engine.lower.target import Target
from engine.planning.options import DEFAULTS, FIELDS, Options, PlanOptions, about, flag
from engine.saved.embedded import FILE_KEYS, SHAPING

OTHER_VALUES: dict[str, Any] = {
    "strategy": "naive",
    "alignment": 16,
    "padding": 8,
    "seed": 3,
    "timeout": 2.0,
    "nodes": 7,
    "parallel": "levels",
    "order": "memory",
    "optimise": 2,
    "store": "float16",
    "cascade": 10,
    "backend": "numpy",
    "target": "none",
    "memories": "sram=512KiB,4GB/s",
    "place": "x=sram",
}
"""A value other than the default for each flag that takes one."""


def parser() -> ArgumentParser:
    command = ArgumentParser()
    for add in (add_model, add_planning, add_parallel):
        add(command)
    return command


def test_the_keywords_of_the_public_functions_are_the_fields_of_options() -> None:
    """A TypedDict lets mypy check callers, and cannot be derived; `threads` is a keyword of its own."""
    fields = {name: field.type for name, field in FIELDS.items() if name != "threads"}
    taken = {"timeout": float | str, "target": Target | str | PathLike[str], "memories": Sequence[Memory | str]}
    taken |= {"place": Mapping[str, str] | Sequence[tuple[str, str] | str]}
    assert get_type_hints(PlanOptions) == fields | taken


def test_a_command_line_without_options_gives_the_defaults() -> None:
    assert Options(**plan_options(parser().parse_args(["m.onnx"]))) == DEFAULTS


@pytest.mark.parametrize("name", [name for name in FIELDS if about(name).help])
def test_a_flag_sets_its_option_and_no_other(name: str) -> None:
    is_switch = FIELDS[name].type is bool
    change: dict[str, Any] = {name: not FIELDS[name].default if is_switch else OTHER_VALUES[name]}
    words = [flag(name)] if is_switch else [flag(name), str(change[name])]
    if name == "place":  # which needs the memory
        words, change = [*words, "--memory", OTHER_VALUES["memories"]], change | {"memories": OTHER_VALUES["memories"]}
    assert Options(**plan_options(parser().parse_args(["m.onnx", *words]))) == evolve(DEFAULTS, **change)


def test_only_buffers_of_the_caller_and_threads_have_no_flag() -> None:
    assert {name for name in FIELDS if not about(name).help} == {"caller_buffers", "donated", "threads"}


def test_a_saved_plan_keeps_the_options_that_decide_the_problem_under_the_keys_of_its_format() -> None:
    assert {"strategy", "seed", "timeout", "nodes", "backend", "threads"} == FIELDS.keys() - set(SHAPING)
    keys = "alignment padding optimise store cascade views overwrite reuse pack bound donated parallel nest order"
    assert list(FILE_KEYS.values()) == [*keys.split(), "target", "memories", "place"]


def test_a_measuring_process_gets_every_option_of_planning() -> None:
    arguments = parser().parse_args(["m.onnx", "--no-nest", "--padding", "8", "--order", "memory"])
    running: dict[str, Any] = {"weights": "file", "input": [], "threads": 0, "instructions": ""}
    task = MeasureTask(BYTES, "static", 1, Namespace(**vars(arguments), **running))
    assert plan_options(read_task(json.loads(task.to_json())).arguments) == plan_options(arguments)
