"""Fresh processes that measure: what they are told, and what comes back. `child.py` is the other end."""

import json
import os
import subprocess
import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from attrs import frozen

from allocator.progress import each
from engine.cli.options.common import add_parallel, add_planning, add_running, defaults
from engine.cli.options.model_flags import add_model
from engine.system.control_groups import memory_group
from engine.text.errors import EngineError

BYTES, PROCESS, SECONDS = "bytes", "process", "seconds"
MODES = ("static", "dynamic")
GROUP, RLIMIT = "a control group", "RLIMIT_DATA"
"""What limits the memory of runs."""
_CHILD = "engine.cli.measure.child"
_ADDERS = (add_model, add_planning, add_parallel, add_running)
"""The functions that add the options of a measuring process: those that say what is run, and how."""
_SETTLED: dict[str, str] = {"NUMPY_MADVISE_HUGEPAGE": "0"}
"""Where bytes are counted no page is huge: the resident set would grow in steps of 2 MiB."""


class MeasureError(EngineError, RuntimeError):
    """Error of a measuring process that did not come to its end."""


@frozen(eq=False)
class MeasureTask:
    """A task of one process, in one mode: BYTES of a run, those of the whole PROCESS, or SECONDS of `runs` runs.

    Its runs get at most `limit` bytes, where that is not 0: in the control group `group`, or by RLIMIT_DATA for "".
    """

    what: str
    mode: str
    runs: int
    arguments: Namespace
    limit: int = 0
    group: str = ""

    def to_json(self) -> str:
        """Returns the task as a text for `read_task`."""
        passed = {name: getattr(self.arguments, name) for name in defaults(_ADDERS, self.arguments.file)}
        plain = {"what": self.what, "mode": self.mode, "runs": self.runs, "limit": self.limit, "group": self.group}
        return json.dumps(plain | {"arguments": passed}, default=str)


def read_task(data: Mapping[str, Any]) -> MeasureTask:
    """Reads what `MeasureTask.to_json` wrote."""
    arguments = Namespace(**data["arguments"])
    arguments.file = Path(arguments.file)
    arguments.shape = [(name, tuple(dims)) for name, dims in arguments.shape]
    arguments.dim = [(name, length) for name, length in arguments.dim]
    arguments.infer = [(operator, rule) for operator, rule in arguments.infer]
    arguments.ops = [Path(path) for path in arguments.ops]
    for name in ("constant", "input"):
        setattr(arguments, name, [(key, Path(path)) for key, path in getattr(arguments, name)])
    return MeasureTask(data["what"], data["mode"], data["runs"], arguments, data["limit"], data["group"])


def in_process(task: MeasureTask) -> dict[str, Any]:
    """Runs a task in a new process of the same interpreter, which shares nothing with this one.

    A reading of a process that did not come to its end within a limit has its reason alone, `failed`. Raises
    MeasureError where there was none.
    """
    done = subprocess.run(
        [sys.executable, "-P", "-m", _CHILD],
        input=task.to_json(),
        capture_output=True,
        text=True,
        check=False,
        env=_environment(task),
    )
    if done.returncode and task.limit:
        return {"failed": _end(done.returncode, done.stderr)}
    if done.returncode:
        raise MeasureError(f"the process that measured the {task.mode} run {_end(done.returncode, done.stderr)}")
    reading: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return reading


@frozen(eq=False)
class ModeReadings:
    """What the processes of one mode said: of a run's bytes, of the whole process, and of seconds, one by one.

    `failed` says why a process did not come to its end within a limit; then nothing is known of the others.
    """

    counted: dict[str, Any]
    whole: dict[str, Any]
    timed: tuple[dict[str, Any], ...]
    failed: str = ""

    @property
    def digests(self) -> set[str]:
        """Returns the digests of the outputs of all processes."""
        return {part["digest"] for part in (self.counted, self.whole, *self.timed) if part}


def in_turn(arguments: Namespace, runs: int, pairs: int) -> tuple[dict[str, ModeReadings], str]:
    """Returns the readings of each mode, and what limited their memory; seconds are those of `pairs` processes.

    The modes take turns.
    """
    kinds = (BYTES, PROCESS, *[SECONDS] * pairs)
    limit: int = arguments.limit
    readings: dict[str, list[dict[str, Any]]] = {mode: [] for mode in MODES}
    with memory_group(limit) if limit else nullcontext() as group:
        place = "" if group is None else str(group)
        tasks = [MeasureTask(what, mode, runs, arguments, limit, place) for what in kinds for mode in MODES]
        for task in each("process", tasks, lambda task: f"{task.what} of the {task.mode} run"):
            if not _failed(readings[task.mode]):
                readings[task.mode].append(in_process(task))
    limited_by = (GROUP if place else RLIMIT) if limit else ""
    return {mode: _mode_readings(read) for mode, read in readings.items()}, limited_by


def _mode_readings(read: Sequence[dict[str, Any]]) -> ModeReadings:
    if reason := _failed(read):
        return ModeReadings({}, {}, (), reason)
    counted, whole, *timed = read
    return ModeReadings(counted, whole, tuple(timed))


def _failed(read: Sequence[dict[str, Any]]) -> str:
    return next((str(part["failed"]) for part in read if "failed" in part), "")


def _environment(task: MeasureTask) -> dict[str, str]:
    """Returns this process's environment, with the folder that these packages were imported from."""
    here = str(Path(__file__).parents[3])
    path = os.pathsep.join(filter(None, (here, os.environ.get("PYTHONPATH", ""))))
    return dict(os.environ) | {"PYTHONPATH": path} | ({} if task.what == SECONDS else _SETTLED)


def _end(code: int, stderr: str) -> str:
    if code < 0:
        return f"was ended by signal {-code}; 9 is what Linux sends where memory runs out"
    return f"failed: {_last_line(stderr.splitlines())}"


def _last_line(lines: Sequence[str]) -> str:
    return next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")
