"""Machine code on disk that is damaged, or cannot be written, costs time: same results, and one line in the log."""

import ctypes
import errno
import logging
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from allocator.machine_code import door, load, store
from allocator.machine_code.image import Image, read_image, write_image

Damage = Callable[[Path], object]
SMALL = "tests.helpers.machine_code.small_code"
pytestmark = pytest.mark.skipif(not load.IS_SUPPORTED, reason="no code is kept here")


@pytest.fixture
def makes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The functions that were made, one after the other."""
    names: list[str] = []
    plain = door.made

    def make(module: str, name: str, *rest: object) -> bytes:
        names.append(name)
        return plain(module, name, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(door, "made", make)
    return names


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "root"))
    monkeypatch.setattr(door, "_TOLD", {door._COMPILING})
    return tmp_path / "root"


def _run(name: str, number: int = 7) -> int:
    """Returns what a function makes of a number; it is looked for anew."""
    address = door.address.__wrapped__(SMALL, name)
    return int(ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(address)(number))


def _file(folder: Path, name: str) -> Path:
    (file,) = folder.rglob(f"{name}-*.code")
    return file


def _places(count: int) -> list[float]:
    """Returns shares of a file, different ones."""
    return [number / 10_000 for number in random.Random(count).sample(range(10_000), count)]


def _flipped(bit: int, content: bytes) -> bytes:
    return content[: bit // 8] + bytes([content[bit // 8] ^ 1 << bit % 8]) + content[bit // 8 + 1 :]


def _flip(at: float) -> Damage:
    return lambda path: path.write_bytes(_flipped(int(at * 8 * path.stat().st_size), path.read_bytes()))


def _cut(at: float) -> Damage:
    return lambda path: path.write_bytes(path.read_bytes()[: int(at * path.stat().st_size)])


def _overwritten(content: bytes) -> Damage:
    return lambda path: path.write_bytes(content)


def _instead(make: Callable[[Path], object]) -> Damage:
    def damage(path: Path) -> None:
        path.unlink()
        make(path)

    return damage


def _swapped(path: Path) -> None:
    shutil.copy(_file(path.parent, "thrice"), path)


def _of_other_sources(path: Path) -> None:
    """Writes an image of a function that does nothing, with a checksum that fits, as if a source was another one."""
    name = f"{path.parent.name}/{path.name}"
    sources = dict(read_image(path.read_bytes(), name).sources)
    sources[next(iter(sources))] = "0" * 32
    path.write_bytes(write_image(Image(b"\xc3" * 4096, b"", b"", 0, (), 4096), sources, name))


def _of_another_version(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"arenaMC1", b"arenaMC0"))


def _file_for_folder(path: Path) -> None:
    shutil.rmtree(path.parent)
    path.parent.write_text("no folder")


def _sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 30)


KINDS: dict[str, Damage] = {
    **{f"bit flipped at {at}": _flip(at) for at in _places(100)},
    **{f"cut at {at}": _cut(at) for at in _places(70)},
    **{f"{n} bytes of {byte}": _overwritten(bytes([byte]) * n) for n in (1, 16, 17, 5000) for byte in (0, 10, 91, 255)},
    "another version": _of_another_version,
    "another function's": _swapped,
    "of other sources": _of_other_sources,
    "gone": Path.unlink,
    "a folder": _instead(Path.mkdir),
    "a folder with files": _instead(lambda path: shutil.copytree(path.parent, path)),
    "a link to nothing": _instead(lambda path: path.symlink_to("nothing")),
    "a link to itself": _instead(lambda path: path.symlink_to(path)),
    "a link to zeros": _instead(lambda path: path.symlink_to("/dev/zero")),
    "a pipe": _instead(os.mkfifo),
    "huge": _sparse,
    "unreadable": lambda path: path.chmod(0),
    "read-only": lambda path: path.chmod(0o400),
    "in a read-only folder": lambda path: path.parent.chmod(0o500),
    "without its folder": lambda path: shutil.rmtree(path.parent),
    "with a file for a folder": _file_for_folder,
    "with a byte more": lambda path: path.write_bytes(path.read_bytes() + b"\0"),
    "twice": lambda path: path.write_bytes(path.read_bytes() * 2),
}  # fmt: skip
FEW = [*random.Random(3).sample([*KINDS], 8), "a folder", "a pipe", "a link to zeros", "with a file for a folder"]


def _check(folder: Path, kind: str, caplog: pytest.LogCaptureFixture) -> None:
    assert _run("twice") == 14 and _run("thrice") == 21
    KINDS[kind](_file(folder, "twice"))
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            assert _run("twice") == 14 and _run("thrice") == 21
    assert len(caplog.records) <= 1


@pytest.mark.parametrize("kind", FEW)
def test_damaged_machine_code_only_costs_time(kind: str, folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    _check(folder, kind, caplog)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_two_hundred_kinds_of_damage_only_cost_time(kind: str, folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert len(KINDS) >= 200
    _check(folder, kind, caplog)


def test_machine_code_is_loaded_from_disk_and_mended_once(folder: Path, makes: list[str]) -> None:
    for _ in range(2):
        assert _run("twice") == _run("twice") == 14
        assert makes == ["twice"]
        makes.clear()
        _flip(0.5)(_file(folder, "twice"))


def test_code_that_came_with_the_package_is_used_first(
    folder: Path, makes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _run("twice") == 14
    monkeypatch.setattr(door, "PACKAGED", store.kept_folder())
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(folder / "other"))
    assert _run("twice") == 14 and makes == ["twice"]
    _of_other_sources(_file(folder, "twice"))
    assert _run("twice") == _run("twice") == 14 and makes == ["twice"] * 2
    assert len(list(folder.rglob("twice-*.code"))) == 2


def _full(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.fixture(params=["write_file", "TemporaryDirectory"])
def _full_disk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(door if request.param == "write_file" else store, request.param, _full)
    yield


@pytest.mark.usefixtures("_full_disk")
def test_a_full_disk_only_costs_time(folder: Path, makes: list[str], caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(2):
        assert _run("twice") == 14
    assert makes == ["twice"] * 2
    (record,) = caplog.records
    assert "No space left on device" in record.getMessage() and "NUMBA_CACHE_DIR" in record.getMessage()
    assert not list(folder.rglob("*.code"))


def test_code_that_cannot_be_linked_is_left_to_numba(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(2):
        assert _run("allocate") == 21
    (record,) = caplog.records
    assert "allocate is compiled by numba in each process" in record.getMessage()
    assert not list(folder.rglob("*.code"))


def test_a_system_that_loads_no_images_leaves_code_to_numba(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(load, "IS_SUPPORTED", False)
    assert _run("twice") == 14
    assert len(caplog.records) == 1 and not list(folder.rglob("*.code"))


def test_the_log_says_once_that_something_is_compiled(
    folder: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door, "_TOLD", set())
    assert _run("twice") == 14 and _run("thrice") == 21
    assert [record.getMessage() for record in caplog.records] == [door._COMPILING]
    assert len(list(folder.rglob("*.code"))) == 2


_WRITER = """
import sys
from allocator.machine_code.door import function
for name, factor in zip(sys.argv[1::2], sys.argv[2::2]):
    assert function("tests.helpers.machine_code.small_code", name)(7) == 7 * int(factor)
print(*{name.partition(".")[0] for name in sys.modules} & {"numba", "llvmlite"})
"""


def test_processes_may_make_code_at_once_and_a_later_one_loads_no_compiler(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-W", "error", "-c", _WRITER]
    orders = ["twice", "2", "thrice", "3"], ["thrice", "3", "twice", "2"]
    for _ in range(2):
        writers = [
            subprocess.Popen([*command, *order], env=environment, stdout=subprocess.PIPE, text=True) for order in orders
        ]
        words = [writer.communicate(timeout=120)[0].split() for writer in writers]
        assert [writer.returncode for writer in writers] == [0, 0]
    assert words == [[], []]
    assert len(list(tmp_path.rglob("*.code"))) == 2 and not list(tmp_path.rglob(".writing-*"))
