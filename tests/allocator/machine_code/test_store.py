"""Folders of machine code: one for each checkout, where it can be written; and files that nobody else may write."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from allocator.machine_code import store


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    store._folder_in.cache_clear()


def test_folders_of_the_checkouts_that_were_used_last_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    (tmp_path / "strange").mkdir()
    folders: list[Path] = []
    for i in range(store._MOST + 3):
        monkeypatch.setattr(store, "ROOT", Path(f"/checkout/{i}"))
        store._folder_in.cache_clear()
        folders.append(store.kept_folder())
        os.utime(folders[-1], (i, i))
        os.utime(folders[0], (i + 0.5, i + 0.5))  # another process goes on with it
    assert len(set(folders)) == len(folders)
    assert set(tmp_path.iterdir()) == {tmp_path / "strange", folders[0], *folders[-store._MOST + 1 :]}


def test_code_is_kept_beside_the_package_or_in_the_cache_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert store.kept_folder().parent == Path(store.__file__).parent / "__pycache__"
    store._folder_in.cache_clear()
    monkeypatch.setattr(os, "access", lambda *_: False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert store.kept_folder().parent == tmp_path / "arenaplan"


def test_a_folder_that_cannot_be_made_is_named_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", "/proc/none")
    assert store.kept_folder().parent == Path("/proc/none")


def test_a_user_without_a_home_keeps_code_among_temporary_files(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(_: Path) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(os, "access", lambda *_: False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "expanduser", unknown)
    monkeypatch.setattr(store, "gettempdir", lambda: "/proc/none")
    assert store.kept_folder().parent == Path("/proc/none/arenaplan")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a" / "b.code"
    store.write_file(path, b"code")
    return path


def _opens(path: Path) -> bool:
    try:
        os.close(store.open_file(path))
    except OSError:
        return False
    return True


@pytest.mark.parametrize("umask", [0, 0o002, 0o022, 0o077])
def test_what_is_written_can_be_written_by_its_owner_alone(tmp_path: Path, umask: int) -> None:
    path = tmp_path / "of_a_mask.code"
    before = os.umask(umask)
    try:
        store.write_file(path, b"code")
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o644 & ~umask
    assert _opens(path) and path.read_bytes() == b"code"


@pytest.mark.parametrize("mode", [0o664, 0o646, 0o666])
def test_a_file_that_others_may_write_is_not_opened(file: Path, mode: int) -> None:
    file.chmod(mode)
    assert not _opens(file)
    store.write_file(file, b"code")
    assert _opens(file)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root gives files to others")
def test_a_file_of_another_user_is_not_opened(file: Path) -> None:
    os.chown(file, 12345, 12345)
    assert not _opens(file)


def _replaced(file: Path, make: Callable[[Path], object]) -> Path:
    file.unlink()
    make(file)
    return file


def test_what_is_no_file_is_not_opened_nor_waited_for(file: Path) -> None:
    assert not any(_opens(_replaced(file, make)) for make in (os.mkfifo, lambda p: p.symlink_to("/dev/zero"), _missing))


def _missing(_: Path) -> None:
    """Makes nothing."""
