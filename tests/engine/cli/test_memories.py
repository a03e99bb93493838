"""`--memory`, `--place` and memories in the file of a target, through the real command."""

import os
import resource
import sys
from pathlib import Path

import numpy as np
import pytest

from engine.cli.main import main
from tests.helpers.cli.cli_checks import Capture, data, error

BOARD = """name = "board"

[[memory]]
name = "sram"
capacity = "1KiB"
read_bandwidth = "4GB/s"

[[memory]]
name = "dram"
capacity = 65536
read_bandwidth = 8e8
write_bandwidth = "0.4GB/s"
latency = "80ns"
alignment = 16

[[memory]]
name = "flash"
capacity = "1MiB"
read_bandwidth = "0.1GB/s"
writable = false
"""
FLAGS = ["--memory", "sram=1KiB,4GB/s", "--memory", "dram=64KiB,0.8GB/s,write=0.4GB/s,latency=80ns,alignment=16"]
FLASH = ["--memory", "flash=1MiB,0.1GB/s,read-only"]


def test_flags_and_the_file_of_a_target_say_the_same(model: str, tmp_path: Path, capsys: Capture) -> None:
    board = tmp_path / "board.toml"
    board.write_text(BOARD)
    here = data(["plan", model, *FLAGS, *FLASH], capsys)
    there = data(["plan", model, "--target", str(board)], capsys)
    assert there["transfers"] == here["transfers"] and there["target"] == "board"
    (transfers,) = here["transfers"]
    assert [share["name"] for share in transfers["memories"]] == ["sram", "dram", "flash"]
    assert sum(share["weights_bytes"] for share in transfers["memories"]) == here["weights_bytes"]
    for share in transfers["memories"]:
        assert sum(weight["bytes"] for weight in share["weights"]) == share["weights_bytes"]
        ends = [weight["offset"] + weight["bytes"] for weight in share["weights"]]
        assert max(ends, default=0) <= share["used_bytes"]
    assert transfers["lower_bound"] <= transfers["seconds"] == sum(s["seconds"] for s in transfers["memories"])


def test_a_plan_is_told_as_a_table_of_its_memories(model: str, capsys: Capture) -> None:
    assert main(["plan", model, *FLAGS]) == 0
    shown = capsys.readouterr().out
    assert "transfers take " in shown and "all in the slowest: " in shown and "first come, first served: " in shown
    rows = [line.split() for line in shown.splitlines()]
    assert ["sram", "1.00", "KiB"] in [row[:3] for row in rows] and ["dram", "64.00", "KiB"] in [
        row[:3] for row in rows
    ]


def test_a_saved_plan_in_memories_is_followed_with_the_same_memories_alone(
    model: str, tmp_path: Path, capsys: Capture
) -> None:
    planned, outputs, others = tmp_path / "planned.onnx", tmp_path / "y.npz", tmp_path / "z.npz"
    assert main(["plan", model, *FLAGS, "--place", "outputs=dram", "-o", str(planned)]) == 0
    capsys.readouterr()
    followed = data(["plan", str(planned), *FLAGS, "--place", "outputs=dram", "--plan-from-file", "required"], capsys)
    assert followed["origin"] == "from the file"
    assert (
        followed["transfers"][0]["memories"]
        == data(["plan", model, *FLAGS, "--place", "outputs=dram"], capsys)["transfers"][0]["memories"]
    )
    watched = ["run", str(planned), *FLAGS, "--place", "outputs=dram", "--mode", "poison"]
    assert main([*watched, "--plan-from-file", "required", "-o", str(outputs)]) == 0
    assert main(["run", model, "-o", str(others)]) == 0
    with np.load(outputs) as ours, np.load(others) as theirs:
        assert all(ours[name].tobytes() == theirs[name].tobytes() for name in theirs)
    capsys.readouterr()
    assert "was made with memories=" in error(
        ["plan", str(planned), *FLASH, *FLAGS, "--place", "outputs=dram", "--plan-from-file", "required"], 1, capsys
    )


def test_a_c_header_has_the_bytes_of_each_memory(model: str, tmp_path: Path, capsys: Capture) -> None:
    header = tmp_path / "plan.h"
    flags = [*FLAGS, "--place", "outputs=dram"]
    (transfers,) = data(["plan", model, *flags, "-o", str(header)], capsys)["transfers"]
    words = [line.split() for line in header.read_text().splitlines()]
    defined = [w[1:3] for w in words if w[:1] == ["#define"] and len(w) == 3 and w[2][0].isdigit()]
    numbers = {name: int(number.rstrip("uUlL")) for name, number in defined}
    for share in transfers["memories"]:
        begin = numbers[f"ARENA_BEGIN_{share['name']}"]
        assert (begin, numbers[f"ARENA_END_{share['name']}"]) == (share["start"], share["start"] + share["arena_bytes"])
    assert numbers["ARENA_BEGIN_dram"] <= numbers["ARENA_OFFSET_y"] < numbers["ARENA_END_dram"]
    (comment,) = (line for line in header.read_text().splitlines() if line.startswith("  ARENA_TENSOR_y,"))
    assert ", in dram" in comment


@pytest.mark.parametrize("mode", ["static", "poison"])
def test_a_run_in_memories_tells_them(mode: str, model: str, capsys: Capture) -> None:
    assert data(["run", model, "--mode", mode, *FLAGS], capsys)["transfers"][0]["memories"][0]["name"] == "sram"


MISTAKES: tuple[tuple[str, int, str], ...] = (
    ("--memory sram=1KiB", 2, "has no name, capacity and bandwidth"),
    ("--memory sram=1KiB,0GB/s", 2, "is no number of bytes a second above 0"),
    ("--memory sram=1MiB,-1GB/s", 2, "'-1GB/s' is no number of bytes a second; write"),
    ("--memory sram=1MiB,1e30GB/s", 2, "must be bytes per second, from 0.001 to 1e+18"),
    ("--memory sram=1MiB,1GB/s,copy-engine,copy-engine", 2, "'copy-engine' is given more than once"),
    ("--memory sram=1MiB,1GB/s,copy-engine=1", 2, "did you mean 'copy-engine'?"),
    ("--memory sram=1MiB,1GB/s --parallel exact", 2, "parallel='exact' plans one arena; levels and edges plan in"),
    ("--memory sram=1MiB,1GB/s --parallel colour:2", 2, "parallel='colour:2' plans one arena"),
    ("--memory sram=1MiB,1GB/s --place x=!sram", 2, "place leaves no memory for 'x': its rules exclude each other"),
    ("--memory sram=1MiB,1GB/s --memory sram=1MiB,1GB/s", 2, "is given 2 times"),
    ("--memory sram=1MiB,1GB/s --place nothing=sram", 2, "fits nothing that lies in a memory"),
    ("--memory sram=1MiB,1GB/s --place x=dram", 2, "memory 'dram' is unknown"),
    ("--place x=dram", 2, "needs memories to place in"),
    ("--memory sram=1MiB,1GB/s --budget 1MiB", 2, "is that of one arena"),
    ("--memory sram=64,1GB/s", 3, ", which is proved: no memory can hold "),
    ("--memory sram=1MiB,1GB/s,read-only", 3, "and is read-only"),
    ("--memory tiny=64,1GB/s --memory dram=1MiB,1GB/s --place inputs=tiny", 3, "no memory can hold x"),
)


@pytest.mark.parametrize(("flags", "code", "message"), MISTAKES, ids=str)
def test_a_mistake_is_one_line(flags: str, code: int, message: str, model: str, capsys: Capture) -> None:
    assert message in error(["plan", model, *flags.split()], code, capsys)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('capacity = "1KiB"', 'capacity = "much"'), "memory 1: memory 'sram': 'much' is no size in bytes"),
        (('name = "dram"', 'name = "sram"'), "memory 'sram' is given 2 times"),
        (('read_bandwidth = "4GB/s"', ""), "memory 1: 'read_bandwidth' is missing"),
        (('latency = "80ns"', 'latncy = "80ns"'), "memory 2: 'latncy' is unknown; did you mean 'latency'?"),
        (
            ("writable = false", 'writable = "no"'),
            "memory 3: memory 'flash': writable is 'no', and must be True or False",
        ),
        (
            ("alignment = 16", "alignment = 1.5"),
            "memory 2: memory 'dram': its alignment is 1.5, and must be a power of two",
        ),
        (("read_bandwidth = 8e8", "read_bandwidth = 0"), "memory 2: memory 'dram': 0 is no number of bytes a second"),
        (("= 8e8", "= " + "9" * 400), f"memory 2: memory 'dram': {'9' * 40}... is no number of bytes a second"),
        (("= 8e8", "= " + "9" * 5000), "is no TOML: Exceeds the limit"),
        (
            ("= 8e8", "= 0x" + "9" * 5000),
            "memory 2: memory 'dram': a number of thousands of digits is no number of bytes",
        ),
        (("= 65536", "= 0x" + "9" * 5000), "memory 2: memory 'dram': a number of thousands of digits is no size"),
        (
            ("= 8e8", "= 5e-324"),
            "memory 2: memory 'dram': its read bandwidth is 5e-324, and must be bytes per second, from",
        ),
        (('"80ns"', "1e308"), "memory 2: memory 'dram': its latency is inf, and must be seconds, from 0 to 1e+06"),
        (
            ("= 16", "= 4611686018427387904"),
            "memory 2: memory 'dram': its alignment is 4611686018427387904, and must be a power of two below 2**62",
        ),
    ],
)
def test_a_mistake_in_the_file_names_its_place(
    change: tuple[str, str], message: str, model: str, tmp_path: Path, capsys: Capture
) -> None:
    board = tmp_path / "board.toml"
    board.write_text(BOARD.replace(*change, 1))
    assert f"{board}: {message}" in error(["plan", model, "--target", str(board)], 2, capsys)


def test_memories_of_a_target_and_of_flags_exclude_each_other(model: str, tmp_path: Path, capsys: Capture) -> None:
    board = tmp_path / "board.toml"
    board.write_text(BOARD)
    assert "has memories, too" in error(["plan", model, "--target", str(board), *FLAGS], 2, capsys)


def test_a_run_in_a_folder_gives_the_same_bits_and_leaves_nothing_there(
    model: str, tmp_path: Path, capsys: Capture
) -> None:
    folder, outputs, others = tmp_path / "tier", tmp_path / "y.npz", tmp_path / "z.npz"
    folder.mkdir()
    flags = ["--memory", "ram=1KiB,4GB/s", "--memory", f"disk=1MiB,1GB/s,folder={folder}"]
    planned = tmp_path / "planned.onnx"
    assert main(["plan", model, *flags[:2], "--memory", "disk=1MiB,1GB/s", "-o", str(planned)]) == 0
    assert main(["run", str(planned), *flags, "--plan-from-file", "required", "-o", str(outputs)]) == 0
    assert main(["run", model, "-o", str(others)]) == 0
    with np.load(outputs) as ours, np.load(others) as theirs:
        assert all(ours[name].tobytes() == theirs[name].tobytes() for name in theirs)
    assert not list(folder.iterdir())
    capsys.readouterr()


def test_a_folder_that_holds_no_file_is_one_line(model: str, tmp_path: Path, capsys: Capture) -> None:
    ram, plain = ["--memory", "ram=64,4GB/s"], tmp_path / "plain"
    plain.write_text("no folder")
    mistakes = {
        f"1MiB,1GB/s,folder={tmp_path / 'none'}": (2, "no file can be made there: No such file or directory"),
        f"1MiB,1GB/s,folder={plain}": (2, "no file can be made there: Not a directory"),
        "1MiB,1GB/s,folder=": (2, "memory 'disk': folder is empty"),
        f"0,1GB/s,folder={tmp_path}": (2, "memory 'disk': its capacity is 0"),
    }
    for text, (code, message) in mistakes.items():
        assert message in error(["run", model, *ram, "--memory", f"disk={text}"], code, capsys)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="every folder can be written by root")
def test_a_folder_that_cannot_be_written_is_one_line(model: str, tmp_path: Path, capsys: Capture) -> None:
    tmp_path.chmod(0o500)
    flags = ["--memory", "ram=64,4GB/s", "--memory", f"disk=1MiB,1GB/s,folder={tmp_path}"]
    assert "no file can be made there: Permission denied" in error(["run", model, *flags], 2, capsys)


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is one of Linux")
def test_a_disk_that_is_full_is_one_line_with_nothing_left(model: str, tmp_path: Path, capsys: Capture) -> None:
    flags = ["--memory", "ram=64,4GB/s", "--memory", f"disk=1MiB,1GB/s,folder={tmp_path}"]
    now = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, now[1]))
    try:
        assert main(["run", model, *flags]) == 1
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, now)
    shown = capsys.readouterr().err.splitlines()
    assert len(shown) == 1 and f"folder {str(tmp_path)!r} has no room for " in shown[0], shown
    assert not list(tmp_path.iterdir())
