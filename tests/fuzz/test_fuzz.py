"""The fuzzer sees a fault of every kind: each one is planted, and must be told."""

import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import engine
import engine.onnx.file
import engine.readers.csv
from allocator.io import minimalloc
from engine import Var
from engine.api import Executable
from engine.executor.dynamic import DynamicExecutor
from engine.executor.poison import PoisonExecutor
from engine.executor.static import StaticExecutor
from engine.saved import replay
from engine.stages.run import StagedExecutor
from ops.tensor.spec import Array
from tests.fuzz import judging
from tests.fuzz.__main__ import main
from tests.fuzz.base import MUTANTS, Kind, Tried
from tests.fuzz.campaign import Counts, Finding
from tests.fuzz.guarded_arrays import IS_THERE, guarded
from tests.fuzz.judging import judge
from tests.fuzz.kinds import KINDS
from tests.fuzz.properties import run_file
from tests.fuzz.report import added, rows_of, table
from tests.fuzz.worker_process import WorkerProcess
from tests.helpers import killed_writers
from tests.helpers.paths import ROOT

Plant = Callable[[pytest.MonkeyPatch], None]
_SEEDS = 100
_WORKER = """
import ctypes, time
from tests.fuzz import kinds, worker
from tests.fuzz.base import MUTANTS, Kind, Tried

def attempt(path):
    seed = int(path.read_text())
    if seed == 3:
        ctypes.string_at(0)
    if seed == 5:
        time.sleep(60)
    while seed == 7:
        pass
    return Tried()

worker.SECONDS, worker.CLOCK_SECONDS = 1, 3
kinds.KINDS["texts"] = Kind("texts", MUTANTS, "seed", lambda rng: b"", attempt)
Kind.input_of = lambda self, seed: str(seed).encode()
worker.main()
"""


def _outputs(change: Callable[[Array], Array], *executors: Any) -> Plant:
    """Plants a change of what executors compute."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        for executor in executors:
            patch.setattr(executor, "run", _changed(executor.run, change))

    return plant


def _changed(run: Any, change: Callable[[Array], Array]) -> Any:
    def wrong(*args: Any) -> Mapping[str, Array]:
        return {name: change(array) for name, array in run(*args).items()}

    return wrong


def _one_bit(array: Array) -> Array:
    changed = np.array(array, order="C")
    if changed.size:
        changed.reshape(-1).view(np.uint8)[0] ^= 1
    return changed


def _raising(owner: Any, name: str) -> Plant:
    def fail(*_: Any, **__: Any) -> None:
        raise KeyError(name)

    return lambda patch: patch.setattr(owner, name, fail)


def _steep(patch: pytest.MonkeyPatch) -> None:
    gradients = engine.gradients

    def steeper(loss: Var, wrt: list[Var]) -> tuple[Var, ...]:
        return tuple(g * 1.001 for g in gradients(loss, wrt))

    patch.setattr(engine, "gradients", steeper)


def _beside(patch: pytest.MonkeyPatch) -> None:
    """Plants a guard page that every array appears to lie on: results depend on where memory lies."""
    patch.setattr("tests.fuzz.pages.guarded", lambda array, at_end: guarded(_one_bit(array), at_end=at_end))


def _broken_by_interrupts(patch: pytest.MonkeyPatch) -> None:
    """Plants executables that are wrong after an interrupt."""
    run, were_stopped = Executable.run, set[int]()

    def wrong(executable: Executable, *args: Any) -> Mapping[str, Array]:
        try:
            outputs = run(executable, *args)
        except KeyboardInterrupt:
            were_stopped.add(id(executable))
            raise
        return {name: _one_bit(array) for name, array in outputs.items()} if id(executable) in were_stopped else outputs

    patch.setattr(Executable, "run", wrong)


def _written_in_place(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(killed_writers, "write_file", Path.write_bytes)


FAULTS: tuple[tuple[str, Plant], ...] = (
    ("models", _raising(engine.onnx.file, "opsets_of")),
    ("models", _outputs(_one_bit, DynamicExecutor)),
    ("texts", _raising(minimalloc, "parse")),
    ("traces", _raising(engine.readers.csv, "read")),
    ("plans", _raising(replay, "check")),
    ("plans", _outputs(_one_bit, StaticExecutor)),
    ("graphs", _outputs(_one_bit, DynamicExecutor)),
    ("graphs", _outputs(_one_bit, PoisonExecutor)),
    ("training", _outputs(_one_bit, DynamicExecutor)),
    ("lengths", _outputs(_one_bit, StagedExecutor)),
    ("values", _outputs(lambda array: array * array.dtype.type(1.001), StaticExecutor)),
    ("slopes", _steep),
    *((("pages", _beside),) if IS_THERE else ()),
    ("interrupts", _broken_by_interrupts),
    *((("kills", _written_in_place),) if killed_writers.IS_THERE else ()),
)


@pytest.mark.parametrize(("name", "plant"), FAULTS)
def test_a_planted_fault_is_seen(name: str, plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = KINDS[name]
    inputs = [kind.input_of(seed) for seed in range(_SEEDS)]  # made without the fault
    plant(monkeypatch)
    assert any(judge(kind, data).failure for data in inputs)


def test_every_kind_has_a_planted_fault() -> None:
    absent = {name for name, is_there in (("pages", IS_THERE), ("kills", killed_writers.IS_THERE)) if not is_there}
    assert {name for name, _ in FAULTS} | absent == set(KINDS)


def _kind(attempt: Callable[[Path], Tried]) -> Kind:
    return Kind("one", MUTANTS, "file", lambda rng: rng.bytes(4), attempt)


def test_inputs_belong_to_their_seeds() -> None:
    for kind in KINDS.values():
        assert kind.input_of(5) == kind.input_of(5) != kind.input_of(6)


def test_memory_beyond_what_is_stated_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def attempt(_: Path) -> Tried:
        np.ones(8 << 20)
        return Tried(stated_bytes=stated)

    monkeypatch.setattr(judging, "BASE_BYTES", 8 << 20)
    stated = 0
    assert "memory: took" in judge(_kind(attempt), b"").failure
    stated = 16 << 20
    assert judge(_kind(attempt), b"").failure == ""


def test_documented_errors_are_outcomes_and_all_others_failures() -> None:
    errors = iter((engine.EngineError("no"), OSError("no"), KeyError("lost"), RuntimeWarning("overflow")))

    def attempt(_: Path) -> Tried:
        raise next(errors)

    outcomes = []
    for _ in range(4):
        verdict = judge(_kind(attempt), b"")
        outcomes.append((verdict.outcome, verdict.failure.partition(" [")[0]))
    assert outcomes[:2] == [("EngineError", ""), ("OSError", "")]
    assert outcomes[2:] == [("failed", "KeyError: 'lost'"), ("failed", "RuntimeWarning: overflow")]


@pytest.mark.slow
def test_a_worker_that_dies_or_hangs_is_told_with_its_seed_and_replaced() -> None:
    with WorkerProcess((sys.executable, "-c", _WORKER)) as worker:
        first = list(worker.answers("texts", 2, 10, 30.0))
        assert [a["seed"] for a in first] == [2, 3] and "ended with -11" in first[-1]["failure"]
        for good in (4, 6):
            answers = list(worker.answers("texts", good, 10, 30.0))
            assert [a["seed"] for a in answers] == [good, good + 1] and "took more than" in answers[-1]["failure"]
        assert [a["seed"] for a in worker.answers("texts", 8, 2, 30.0)] == [8, 9]


@pytest.mark.skipif(not IS_THERE, reason="pages are not protected here")
@pytest.mark.parametrize("at_end", [False, True])
def test_a_byte_beside_a_guarded_array_ends_the_process(at_end: bool) -> None:
    script = f"""
import ctypes, numpy as np
from tests.fuzz.guarded_arrays import guarded
with guarded(np.arange(5, dtype=np.float32), at_end={at_end}) as a:
    assert a.tolist() == [0, 1, 2, 3, 4]
    ctypes.string_at(a.ctypes.data + ({at_end} and 20 or -1), 1)
"""
    assert subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=False).returncode == -11


def test_findings_are_counted_once_a_place() -> None:
    counts = Counts()
    answer: dict[str, Any] = {"seconds": 0.5, "fault": True, "outcome": "run", "failure": "KeyError: 1 [a.py:3]"}
    assert counts.add("texts", {**answer, "seed": 1}) == Finding("texts", 1, answer["failure"])
    assert counts.add("texts", {**answer, "seed": 2, "failure": "KeyError: 2 [a.py:3]"}) is None
    assert counts.add("texts", {**answer, "seed": 3, "failure": "KeyError: 1 [b.py:3]"}) is not None
    rows = rows_of({"texts": counts})
    twice = added(rows, rows)
    assert twice["texts"]["inputs"] == 6 and twice["texts"]["outcomes"] == {"run": 6}
    assert "| texts | 6 | 2 | 0.5 | 6 | 6 |" in table(twice)


@pytest.mark.slow
def test_a_property_that_fails_is_told_with_what_repeats_it(tmp_path: Path) -> None:
    test, profile = tmp_path / "test_one.py", "from hypothesis import settings\nsettings.register_profile('fresh')\n"
    (tmp_path / "conftest.py").write_text(profile)
    property_test = "@given(st.integers())\ndef test_small(n):\n    assert n < 100\n"
    test.write_text(f"from hypothesis import given, strategies as st\n{property_test}")
    failed = run_file(test, 3)
    assert not failed.has_passed and "--hypothesis-seed 3" in failed.command and "assert 100 < 100" in failed.printed
    test.write_text(test.read_text().replace("< 100", "< 10**60"))
    assert run_file(test, 3).has_passed


@pytest.mark.slow
def test_the_command_fuzzes_repeats_and_adds_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "fuzz.json"
    for _ in range(2):
        assert main(["--only", "texts", "--seed", "11", "--count", "3", "--seconds", "60", "-o", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "seed 11" in printed and "| texts | 3 |" in printed
    assert '"inputs": 6' in out.read_text()
