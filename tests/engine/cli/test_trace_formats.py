"""`arenaplan trace` writes the format that FILE is called after, unless --format says it."""

import sys
from pathlib import Path

import pytest

from engine.cli.main import main
from engine.exporters import FORMATS, named_like
from tests.helpers.cli.cli_checks import Capture, error

MODEL = "zoo:squeezenet?image=64"


@pytest.mark.parametrize(
    ("file", "names"),
    [
        ("a.csv", ("csv",)),
        ("a.TRACE.json", ("chrome",)),
        ("a.speedscope.json", ("speedscope",)),
        ("a.pftrace", ("perfetto",)),
        ("a.pickle", ("pytorch",)),
        ("a.massif", ("massif",)),
        ("a.html", ("html",)),
        ("a.svg", ("svg",)),
        ("a.txt", ("table", "map")),
        ("a.out", ()),
        ("json", ()),
    ],
)
def test_trace_files_are_called_after_formats(file: str, names: tuple[str, ...]) -> None:
    assert named_like(Path(file)) == names


def test_every_trace_format_is_among_those_of_its_file_suffix() -> None:
    assert all(name in named_like(Path(f"trace{form.suffix}")) for name, form in FORMATS.items())


def test_the_name_of_a_trace_file_decides_its_format(tmp_path: Path, capsys: Capture) -> None:
    for name in ("a.pftrace", "a.trace.json", "a.massif", "a.txt"):
        assert main(["trace", MODEL, "-o", str(tmp_path / name)]) == 0
    written = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert written["a.pftrace"].startswith(b"\n") and written["a.trace.json"].startswith(b'{"displayTimeUnit"')
    assert written["a.massif"].startswith(b"desc: ") and written["a.txt"].startswith(b"squeezenet: ")
    assert main(["trace", MODEL, "-o", str(tmp_path / "b.massif"), "--format", "csv"]) == 0
    assert (tmp_path / "b.massif").read_text().startswith("tick,") and not capsys.readouterr().out


def test_a_trace_file_name_of_several_formats_asks_for_format(tmp_path: Path, capsys: Capture) -> None:
    message = error(["trace", MODEL, "-o", str(tmp_path / "a.json")], 2, capsys)
    assert "say with --format which of these it is to be: json, model-explorer" in message
    assert not list(tmp_path.iterdir())


def test_trace_tells_a_missing_library_in_a_line_and_writes_nothing(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "perfetto.trace_builder.proto_builder", None)
    message = error(["trace", MODEL, "-o", str(tmp_path / "a.pftrace")], 1, capsys)
    assert "perfetto is not installed: pip install -e '.[perfetto]'" in message
    assert not list(tmp_path.iterdir())
