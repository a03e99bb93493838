"""`arenaplan solve`: what it prints and writes, and how it fails."""

import math
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from allocator.io import formats
from allocator.io.formats import WRITERS
from allocator.io.instance import Instance
from allocator.problem import NO_CAPACITY, Plan
from allocator.solvers import STRATEGIES, solve
from allocator.solvers.base import NO_NODES, Traits
from engine.cli import strategies as comparing
from engine.cli.main import main
from engine.cli.options.values import duration
from engine.system.process_memory import reset_peak
from tests.helpers.cli.cli_checks import PLACED, SOLVED, Capture, data, error, save
from tests.helpers.paths import ROOT
from tools.solver_instances import RANDOM, draw

GAPS = "id,lower,upper,size,gaps\na,0,9,4,2-5\nb,2,5,4,\n"
PEAK = """
from engine.cli.main import main
from engine.system.process_memory import peak_bytes
main()
print(peak_bytes())
"""
"""The command, which prints its most resident bytes in the end."""
OVERWRITING = "2\n0 3 20\n2 5 10\n1\n1 0 6\n"


def test_solve_json_tells_how_far_the_arena_is_from_the_bound(buffers: str, capsys: Capture) -> None:
    printed = data(["solve", buffers, "--strategy", "naive"], capsys)
    assert set(printed) == SOLVED
    assert (printed["arena_bytes"], printed["lower_bound"], printed["status"]) == (40, 30, "feasible")
    assert printed["gap"] == pytest.approx(1 / 3) and printed["strategy"] == "naive"
    assert printed["bound_reason"] == f"bytes alive in tick {printed['witness']['tick']}"
    assert printed["witness"] == {"tick": printed["witness"]["tick"], "chunks": [], "cell": 1}
    printed = data(["solve", buffers, "--strategy", "naive", "--capacity", "1 KiB"], capsys)
    assert printed["capacity"] == 1024 and set(printed) == SOLVED | {"capacity"}


def test_solve_json_names_the_buffers_that_add_up_to_the_bound(tmp_path: Path, capsys: Capture) -> None:
    buffers = save(tmp_path, "id,lower,upper,size\na,0,1,65\nb,0,1,65\nc,0,1,65\n")
    printed = data(["solve", buffers, "--alignment", "64"], capsys)
    assert (printed["lower_bound"], printed["status"]) == (321, "optimal")
    assert printed["witness"] == {"tick": -1, "chunks": ["a", "b", "c"], "cell": 64}


def test_solve_text_tells_what_json_tells(buffers: str, capsys: Capture) -> None:
    assert main(["solve", buffers, "--strategy", "naive", "--budget", "41"]) == 0
    shown = capsys.readouterr().out
    for words in ("3 buffers", "40 B", "30 B", "33.33% above", "1 bytes are left", "feasible", "naive"):
        assert words in shown


def test_solve_places_no_buffers_in_no_bytes(tmp_path: Path, capsys: Capture) -> None:
    path = save(tmp_path, "id,lower,upper,size\n")
    printed = data(["solve", path], capsys)
    assert (printed["arena_bytes"], printed["gap"], printed["status"], printed["offsets"]) == (0, 0, "optimal", {})
    assert main(["solve", path, "--strategy", "all"]) == 0
    assert "nothing to place" in capsys.readouterr().out
    assert main(["solve", path, "--validate"]) == 0


def test_solve_limits_reach_the_solvers_and_reading_takes_of_the_time(
    buffers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[int, dict[str, Any]]] = []

    def spy(problem: Any, strategy: str, seed: int, **limits: Any) -> Plan:
        seen.append((seed, limits))
        return solve(problem, strategy, seed)

    def slow_read(*arguments: Any) -> Instance:
        now[0] += 2
        return read(*arguments)

    now, read = [1.0], formats.read
    monkeypatch.setattr(comparing, "solve", spy)
    monkeypatch.setattr(formats, "read", slow_read)
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    assert main(["solve", buffers, "--seed", "7"]) == 0
    assert main(["solve", buffers, "--capacity", "99", "--timeout", "2500ms", "--nodes", "12"]) == 0
    free = {"capacity": NO_CAPACITY, "seconds": math.inf, "nodes": NO_NODES}
    assert seen == [(7, free), (0, {"capacity": 99, "seconds": 0.5, "nodes": 12})]


@pytest.mark.parametrize(("text", "seconds"), [("10s", 10), ("500ms", 0.5), ("2m", 120), ("1h", 3600), ("1.5", 1.5)])
def test_durations_of_solve_are_parsed(text: str, seconds: float) -> None:
    assert duration(text) == seconds


@pytest.mark.parametrize(
    "options",
    [
        ["--timeout", "5x"],
        ["--timeout", "1.s"],
        ["--timeout", "9" * 400],
        ["--nodes", "0"],
        ["--capacity", "much"],
        ["--strategy", "luck"],
        ["--from", "poem"],
        ["--to", "poem"],
        ["--padding", "-1"],
    ],
    ids=" ".join,
)
def test_options_of_impossible_values_end_with_2(options: list[str], buffers: str, capsys: Capture) -> None:
    assert options[1][:40] in error(["solve", buffers, *options], 2, capsys)


def test_alignments_that_multiply_beyond_offsets_end_with_2(tmp_path: Path, capsys: Capture) -> None:
    path = save(tmp_path, f"id,lower,upper,size,alignment\na,0,2,10,{2**40 + 1}\n")
    assert "999999999 bytes" in error(["solve", path, "--alignment", "999999999"], 2, capsys)


def test_alignments_of_file_and_option_both_hold(tmp_path: Path, capsys: Capture) -> None:
    path = save(tmp_path, "id,lower,upper,size,alignment\na,0,2,1,6\nb,0,2,2,1\n")
    offsets = data(["solve", path, "--alignment", "4", "--strategy", "naive"], capsys)["offsets"]
    assert offsets == {"a": 0, "b": 4}
    target = str(Path(path).with_name("out.csv"))
    assert main(["solve", path, "--alignment", "4", "-o", target]) == 0
    assert formats.read(Path(target)).problem.alignment.tolist() == [12, 4]


def test_padding_moves_buffers_apart_and_is_not_written(buffers: str, tmp_path: Path, capsys: Capture) -> None:
    target = tmp_path / "out.csv"
    printed = data(["solve", buffers, "--padding", "5", "-o", str(target)], capsys)
    assert printed["arena_bytes"] == 40
    written = formats.read(target)
    assert written.problem.size.tolist() == [10, 20, 10]
    ends = sorted(zip(written.offset.tolist(), written.problem.size.tolist(), strict=True))
    assert ends[0][0] + ends[0][1] + 5 <= ends[-1][0]


def test_all_strategies_are_compared_and_the_best_is_written(buffers: str, tmp_path: Path, capsys: Capture) -> None:
    target = tmp_path / "out.csv"
    printed = data(["solve", buffers, "--strategy", "all", "-o", str(target)], capsys)
    rows = {row["strategy"]: row for row in printed["strategies"]}
    assert set(rows) == set(STRATEGIES)
    assert rows["naive"]["arena_bytes"] == 40 and rows["naive"]["ratio"] == pytest.approx(4 / 3)
    assert printed["arena_bytes"] == min(row["arena_bytes"] for row in rows.values() if "arena_bytes" in row) == 30
    assert dict(zip("abc", formats.read(target).offset.tolist(), strict=True)) == printed["offsets"]
    assert main(["solve", buffers, "--strategy", "all"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["strategy", "arena_bytes", "ratio", "seconds", "status"]
    assert any(line.split()[:3] == ["naive", "40", "1.3333"] for line in lines)


def test_strategies_that_are_passed_over_say_why(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Picky:
        name = "picky"
        traits = Traits(conflicts=False)

    class Slow:
        name = "slow"
        traits = Traits(most_chunks=1)

    strategies: dict[str, Any] = {"picky": Picky(), "slow": Slow(), "naive": STRATEGIES["naive"]}
    monkeypatch.setattr(comparing, "STRATEGIES", strategies)
    monkeypatch.setattr("allocator.solvers.STRATEGIES", strategies)
    path = save(tmp_path, GAPS)
    reasons = {
        row["strategy"]: row.get("reason") for row in data(["solve", path, "--strategy", "all"], capsys)["strategies"]
    }
    assert "conflicts" in reasons["picky"] and "more than 1 buffers" in reasons["slow"] and reasons["naive"] is None
    assert main(["solve", path, "--strategy", "all"]) == 0
    assert "cannot take conflicts" in capsys.readouterr().out


def test_an_arena_that_cannot_fit_ends_with_3_and_says_so(buffers: str, tmp_path: Path, capsys: Capture) -> None:
    message = error(["solve", buffers, "--capacity", "29", "-o", str(tmp_path / "o.csv")], 3, capsys)
    for words in ("needs 30 bytes", "29 are available", "1 bytes too much", "no plan fits", "lower bound is 30"):
        assert words in message
    assert not (tmp_path / "o.csv").exists()


def test_an_arena_that_might_fit_ends_with_4(buffers: str, tmp_path: Path, capsys: Capture) -> None:
    command = ["solve", buffers, "--strategy", "naive", "-o", str(tmp_path / "o.csv"), "--capacity"]
    message = error([*command, "35"], 4, capsys)
    for words in ("needs 40 bytes", "35 are available", "5 bytes too much", "lower bound is 30", "none was found"):
        assert words in message
    assert not (tmp_path / "o.csv").exists()
    assert main([*command, "40"]) == 0


def test_a_pinned_buffer_above_the_capacity_ends_with_3(tmp_path: Path, capsys: Capture) -> None:
    path = save(tmp_path, PLACED)
    assert "lower bound is 30" in error(["solve", path, "--pinned", "--capacity", "25"], 3, capsys)


@pytest.mark.parametrize("name", WRITERS)
def test_solve_writes_plans_in_every_format(name: str, buffers: str, tmp_path: Path) -> None:
    assert main(["solve", buffers, "-o", str(tmp_path / "out"), "--to", name]) == 0
    assert (tmp_path / "out").stat().st_size > 0


@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        ("b.csv", "id,lower,upper,size\na,0,2,x\n", "b.csv: line 2, column size: 'x' is no integer"),
        ("b.csv", "id,lower,upper,size\na,0,2,-1\n", "b.csv: line 2, column size: -1 is not in"),
        (
            "b.csv",
            f"id,lower,upper,size\na,0,2,{2**64}\n",
            "b.csv: line 2, column size: 18446744073709551616 is not in",
        ),
        ("b.csv", "id,lower,upper,size\na,2,1,4\n", "b.csv: line 2, column upper: 1 is not in [3, "),
        (
            "b.csv",
            "id,lower,upper,size,gaps\na,2,9,4,3-4@0:2\n",
            "b.csv: line 2, column gaps: gap '3-4@0:2' has a window",
        ),
        ("b.csv", "id,first_op,last_op,size\na,2,1,4\n", "b.csv: line 2, column last_op: 1 is not in [2, "),
        ("b.txt", "2\n0 2 4\n1 3 9\n1\n1 0 0\n", "b.txt: line 5, column offset: 9 bytes from 0 on do not lie within"),
        ("b.json", "{", "b.json: line 1, column 2"),
        ("b.plc", "x", "b.plc: has 1 bytes"),
        ("b.bin", "x", "b.bin: tflm is a format without lifetimes"),
    ],
)
def test_solve_of_a_bad_file_ends_with_1_and_says_where(
    file: str, content: str, words: str, tmp_path: Path, capsys: Capture
) -> None:
    assert words in error(["solve", save(tmp_path, content, file)], 1, capsys)


def test_pinned_buffers_that_meet_are_named_by_id(tmp_path: Path, capsys: Capture) -> None:
    path = save(tmp_path, PLACED.replace("c,2,4,10,20", "c,2,4,10,10"))
    message = error(["solve", path, "--pinned"], 1, capsys)
    assert "buffers.csv: pinned buffer 'b' and buffer 'c'" in message and "same bytes at the same time" in message
    assert "buffer 'a': its pinned offset is not aligned" in error(
        ["solve", path, "--pinned", "--alignment", "8"], 1, capsys
    )


def test_solve_does_not_write_what_a_format_cannot_hold(tmp_path: Path, capsys: Capture) -> None:
    path = save(tmp_path, OVERWRITING, "list.txt")
    message = error(["solve", path, "-o", str(tmp_path / "o.csv")], 1, capsys)
    assert "o.csv: MiniMalloc's CSV cannot hold overwrites" in message
    assert sorted(p.name for p in tmp_path.iterdir()) == ["list.txt"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_solve_tells_a_full_disk_in_one_line(buffers: str, capsys: Capture) -> None:
    assert "/dev/full" in error(["solve", buffers, "-o", "/dev/full"], 1, capsys)
    command = [sys.executable, "-c", "import sys; from engine.cli.main import main; sys.exit(main())"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*command, "solve", buffers, "--json"], stdout=full, stderr=subprocess.PIPE, check=False, timeout=60
        )
    assert done.returncode == 1 and done.stderr.decode().startswith("arenaplan: error: ")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.slow
def test_solve_takes_many_buffers(tmp_path: Path, capsys: Capture) -> None:
    rng = np.random.default_rng(0)
    begin = np.arange(3_000)
    rows = zip(begin, begin + rng.integers(1, 20, 3_000), rng.integers(1, 4097, 3_000), strict=True)
    path = save(tmp_path, "id,lower,upper,size\n" + "".join(f"b{b},{b},{e},{s}\n" for b, e, s in rows))
    printed = data(["solve", path, "--strategy", "pushdown", "-o", str(tmp_path / "o.csv")], capsys)
    assert len(printed["offsets"]) == 3_000
    assert data(["solve", str(tmp_path / "o.csv"), "--validate"], capsys)["arena_bytes"] == printed["arena_bytes"]


@pytest.mark.slow
@pytest.mark.skipif(not reset_peak(), reason="the system does not tell peaks")
def test_a_million_buffers_are_placed_in_400_megabytes(tmp_path: Path) -> None:
    peaks = [peak_of_solve(tmp_path, buffers) for buffers in (60_000, 1_000_000)]  # the first may compile
    assert peaks[1] < 420e6, f"{peaks[1] / 1e6:.0f} MB were resident"


def peak_of_solve(folder: Path, buffers: int) -> int:
    """Returns the most bytes that are resident while random buffers are placed."""
    problem, file = draw(RANDOM, buffers, 0), folder / "random.csv"
    formats.write(file, Instance(problem, [f"b{k}" for k in range(buffers)]))
    words = ["solve", str(file), "--nodes", "20000", "-o", str(folder / "placed.csv")]
    done = subprocess.run([sys.executable, "-c", PEAK, *words], capture_output=True, text=True, cwd=ROOT, check=True)
    return int(done.stdout.splitlines()[-1])


@pytest.mark.slow
def test_workers_share_a_search_and_give_the_plan_of_one(tmp_path: Path, capsys: Capture) -> None:
    path = str(tmp_path / "mixed.csv")
    formats.write(Path(path), Instance(draw("mixed_alignment", 60, 0), [f"b{k}" for k in range(60)]))
    words = ["solve", path, "--nodes", "200000"]
    one, two = (data([*words, "--workers", number], capsys) for number in ("1", "2"))
    assert one["offsets"] == two["offsets"]
    assert (one["lower_bound"], one["strategy"]) == (two["lower_bound"], two["strategy"])
    assert one["arena_bytes"] <= data(["solve", path, "--nodes", "50000"], capsys)["arena_bytes"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--workers", "2", "--strategy", "exact"], "leave out --strategy"),
        (["--workers", "2", "--validate"], "leave out --validate"),
        (["--workers", "0"], "no integer from 1 on"),
        (["--on", "moon"], "no place to run tasks"),
    ],
)
def test_workers_that_have_nothing_to_share_are_refused(
    words: list[str], message: str, buffers: str, capsys: Capture
) -> None:
    assert message in error(["solve", buffers, *words], 2, capsys)
