"""An image names the files that it was made from, and is made anew where one of them has changed, and only then."""

from pathlib import Path

import pytest

from allocator.machine_code import sources
from allocator.machine_code.errors import ImageError

FILES = {
    "ops.a_code": "import numba\nfrom ops.words import A, B\nfrom ops import (emitter, other)\n",
    "ops.words": "A = B = 1\n",
    "ops.emitter": "from ops.deep.tiles import tile\nfrom allocator.machine_code.memory import longs\n",
    "ops.deep.tiles": "from ops.words import A\n",
    "ops.other": "",
    "ops.stranger": "",
    "allocator.machine_code.memory": "",
    **dict.fromkeys(sources.MAKERS, ""),
}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    paths = {}
    for name, text in FILES.items():
        paths[name] = tmp_path / f"{name}.py"
        paths[name].write_text(text)
    monkeypatch.setattr(sources, "_file", paths.get)
    monkeypatch.setattr(sources, "ROOT", tmp_path)
    return paths


@pytest.mark.usefixtures("files")
def test_sources_are_all_that_is_imported_and_the_maker() -> None:
    assert set(sources.checksums("ops.a_code")) == {f"{name}.py" for name in set(FILES) - {"ops.stranger"}}


def test_every_file_of_a_module_decides_whether_its_image_is_current(files: dict[str, Path]) -> None:
    current = sources.checksums("ops.emitter")
    assert sources.are_current(current)
    for name in ("ops.stranger", "ops.other", "ops.a_code"):
        files[name].write_text("changed")
        assert sources.are_current(current)
    for name in ("ops.words", "ops.deep.tiles", "allocator.machine_code.memory", *sources.MAKERS):
        text = files[name].read_text()
        files[name].write_text("changed")
        assert not sources.are_current(current)
        files[name].write_text(text)
        assert sources.are_current(current)
    files["ops.words"].unlink()
    assert not sources.are_current(current)


def test_images_serve_a_checkout_in_another_folder(
    files: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    current = sources.checksums("ops.a_code")
    (tmp_path / "other").mkdir()
    for path in files.values():
        path.rename(tmp_path / "other" / path.name)
    assert not sources.are_current(current)
    monkeypatch.setattr(sources, "ROOT", tmp_path / "other")
    assert sources.are_current(current)


def test_compiled_python_without_its_source_has_no_checksums(files: dict[str, Path]) -> None:
    files["ops.words"] = files["ops.words"].rename(files["ops.words"].with_suffix(".pyc"))
    files["ops.words"].write_bytes(b"\xcb\r\r\n\0\xff\xfe")
    with pytest.raises(ImageError, match=r"words.pyc"):
        sources.checksums("ops.a_code")


def test_real_modules_are_found() -> None:
    names = set(sources.checksums("ops.norm.lrn_code"))
    assert {"ops/norm/lrn_code.py", "ops/norm/args.py", "ops/native/records.py", "ops/native/memory.py"} <= names
    assert {f"allocator/machine_code/{name}.py" for name in ("make", "link", "entry", "memory")} <= names
