"""Ctrl-C while a command searches: the best plan so far is written; before there is one, and again, nothing is."""

import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

from allocator.errors import AllocatorError
from allocator.interrupts import Stop, current_stop, stopped_by
from allocator.io import formats
from allocator.solvers import solve
from engine.cli.entry import INTERRUPTED
from engine.cli.interrupts import interrupt_ends_search
from engine.cli.main import OK, UNDECIDED
from tests.helpers.interrupts import python_handles_interrupts
from tests.helpers.paths import ROOT

COMMAND = """
import os, signal, sys
from importlib import import_module
from engine.cli.main import main

def interrupted(function, signals):
    def send(*arguments, **options):
        while signals:
            signals.pop()
            os.kill(os.getpid(), signal.SIGINT)
        return function(*arguments, **options)
    return send

signal.signal(signal.SIGINT, signal.default_int_handler)
module, path, signals, *arguments = sys.argv[1:]
*owner, name = path.split(".")
place = import_module(module)
for part in owner:
    place = getattr(place, part)
setattr(place, name, interrupted(getattr(place, name), [1] * int(signals)))
sys.exit(main(arguments))
"""
"""The command, which sends itself signals when a function is called for the first time."""
LOADING = """
import os, signal, sys
from importlib import import_module

class Finder:
    def find_spec(self, name, *_):
        if name == at:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)

module, function, at, *sys.argv[1:] = sys.argv[1:]
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Finder())
sys.exit(getattr(import_module(module), function)())
"""
"""The entry point of the command, which sends itself a signal when a module is looked for."""
SEARCHING = ("allocator.solvers.search.budget", "Budget.spend")
PROVING = ("allocator.solvers.exact", "_Search._unfinished")
EJECTING = ("allocator.solvers.ejection", "reach")
BOUNDING = ("allocator.solvers", "proved_bound")
PLANNED = ("engine.planning.planner", "_check")
LOWERING = ("engine.planning.planner", "lower_graph")
ENDLESS = "999999999"
"""Nodes of a search that ends when it is interrupted, and not before."""


def run(at: tuple[str, str], signals: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", COMMAND, *at, str(signals), *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False, timeout=300)


def messages(done: subprocess.CompletedProcess[str]) -> list[str]:
    """Returns the lines on stderr, but for the note on compilation."""
    return [line for line in done.stderr.splitlines() if not line.startswith("compiling functions")]


@pytest.fixture(name="hard")
def hard_file(tmp_path: Path) -> str:
    """Returns a file of buffers for which nobody finds and proves the smallest arena."""
    path, draw = tmp_path / "hard.csv", np.random.default_rng(0)
    lives, sizes = draw.integers(1, 200, 1_000).tolist(), draw.integers(1, 4097, 1_000).tolist()
    rows = [f"{k},{k},{k + life},{size}" for k, (life, size) in enumerate(zip(lives, sizes, strict=True))]
    path.write_text("\n".join(("id,lower,upper,size", *rows, "")))
    return str(path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("strategy", "at"),
    [
        *(("best", SEARCHING), ("ejection", EJECTING), ("exact", PROVING)),
        *(("hill_climb", SEARCHING), ("shared_min_cost_flow", SEARCHING)),
    ],
)
def test_the_first_interrupt_ends_the_search_and_its_plan_is_written(
    hard: str, tmp_path: Path, strategy: str, at: tuple[str, str]
) -> None:
    out = tmp_path / "out.csv"
    options = ("--strategy", strategy, "--nodes", ENDLESS, "-o", str(out))
    done = run(at, 1, "solve", hard, *options)
    assert done.returncode == OK
    assert messages(done) == ["arenaplan: the search was interrupted; this is its best plan so far"]
    assert "feasible" in done.stdout
    assert main_validates(hard, out)


def main_validates(file: str, out: Path) -> bool:
    """Returns whether a file has a place for each buffer."""
    instance = formats.read(Path(file))
    return len(formats.read_offsets(out, instance)) == len(instance.problem)


@pytest.mark.slow
def test_an_interrupted_plan_above_the_capacity_is_undecided(hard: str, tmp_path: Path) -> None:
    out, bound = tmp_path / "out.csv", solve(formats.read(Path(hard)).problem, nodes=1).lower_bound
    done = run(SEARCHING, 1, "solve", hard, "--nodes", ENDLESS, "--capacity", str(bound), "-o", str(out))
    assert done.returncode == UNDECIDED
    assert "interrupted" in done.stderr and "another plan may fit" in done.stderr
    assert not out.exists()


@pytest.mark.parametrize(("at", "signals"), [(BOUNDING, 1), (SEARCHING, 2)])
def test_an_interrupt_before_a_plan_and_a_second_one_end_the_command(
    hard: str, tmp_path: Path, at: tuple[str, str], signals: int
) -> None:
    out = tmp_path / "out.csv"
    done = run(at, signals, "solve", hard, "--nodes", ENDLESS, "-o", str(out))
    assert (done.returncode, done.stdout, messages(done)) == (INTERRUPTED, "", ["arenaplan: error: interrupted"])
    assert not out.exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("at", "signals", "code"), [(PLANNED, 1, OK), (PLANNED, 2, INTERRUPTED), (LOWERING, 1, INTERRUPTED)]
)
def test_the_command_plan_tells_its_plan_after_one_interrupt(at: tuple[str, str], signals: int, code: int) -> None:
    done = run(at, signals, "plan", "zoo:mobilenet_v2?image=32")
    assert done.returncode == code
    assert ("arena" in done.stdout) is (code == OK)
    assert "interrupted" in done.stderr


@pytest.mark.parametrize("at", ["attrs", "datetime"])
def test_an_interrupt_while_modules_are_loaded_ends_the_command(at: str, hard: str, tmp_path: Path) -> None:
    script = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]["arenaplan"]
    out = tmp_path / "out.csv"
    command = [sys.executable, "-c", LOADING, *script.split(":"), at, "solve", hard, "-o", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False, timeout=300)
    assert (done.returncode, done.stdout, done.stderr) == (INTERRUPTED, "", "arenaplan: error: interrupted\n")
    assert not out.exists()


def test_an_interrupt_ends_the_search_in_the_block_and_nowhere_else() -> None:
    with python_handles_interrupts():
        with interrupt_ends_search():
            current_stop().has_plan = True
            signal.raise_signal(signal.SIGINT)
            assert current_stop().is_asked
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
        assert not current_stop().is_asked
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        with pytest.raises(AllocatorError), interrupt_ends_search():
            raise AllocatorError("x")
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_interrupt_that_the_process_ignores_stays_ignored() -> None:
    with python_handles_interrupts():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        with interrupt_ends_search():
            signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_in_python_a_stop_is_for_the_block_alone() -> None:
    stop = Stop()
    with stopped_by(stop):
        assert current_stop() is stop
    assert current_stop() is not stop
