"""Folders of machine code: one for each checkout, where it can be written."""

import os
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
