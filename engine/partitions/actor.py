"""The worker's side of a pipeline: parts that stay in a process from run to run."""

from collections.abc import Mapping
from pathlib import Path

from attrs import define, frozen

from engine.api import Executable
from engine.spool import Contents, compiled, open_spool
from ops.tensor.spec import Array


@frozen(eq=False)
class State:
    """Where a part is: after so many runs, its parameters have these values. Those that no run changes are left out."""

    runs: int
    values: Mapping[str, Array]


@frozen(eq=False)
class Answer:
    """The outputs of a run, and where the part is behind it."""

    outputs: Mapping[str, Array]
    state: State


@define(eq=False)
class _Loaded:
    executable: Executable
    runs: int


_LOADED: dict[str, _Loaded] = {}
"""The parts of this process, by keys that no two pipelines share."""


def run_part(
    key: str, feeds: Mapping[str, Array], at: State, program: Path | Contents | None, returned: tuple[str, ...]
) -> Answer | None:
    """Runs a part once, from the state `at`. Returns None where this process does not have the part in that state.

    With a `program` the part is compiled and its parameters are loaded: from a folder, where this machine has it, so
    that its weights are mapped, or from what was sent. `returned` are the parameters whose values come back, as runs
    change them.
    """
    executable = None if program is None else _opened(program)
    if executable is not None:
        executable.load(at.values)
        _LOADED[key] = _Loaded(executable, at.runs)
    loaded = _LOADED.get(key)
    if loaded is None or loaded.runs != at.runs:
        return None
    loaded.runs = -1  # a run that fails leaves parameters that nobody knows
    outputs = loaded.executable.run(feeds)
    loaded.runs = at.runs + 1
    values = loaded.executable.parameters if returned else {}
    return Answer(outputs, State(loaded.runs, {name: values[name] for name in returned}))


def _opened(program: Path | Contents) -> Executable | None:
    if isinstance(program, Contents):
        return compiled(program)
    return open_spool(program) if program.is_dir() else None


def forget(key: str) -> None:
    """Lets go of a part."""
    _LOADED.pop(key, None)
