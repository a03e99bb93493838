import re
import subprocess
from pathlib import Path

import pytest

from engine.text.units import parse_bytes
from tests.helpers.paths import ROOT
from tools import measure_installs
from tools.measure_installs import STEPS, bytes_on_disk, main

MOST = {"`make demo`": 400e6, "`make test`, before its first test": 1.5e9}


def _rows(text: str) -> list[list[str]]:
    match = re.search("<!-- installs -->\n(.*?)\n<!-- end of installs -->", text, re.DOTALL)
    assert match
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in match[1].splitlines()[2:]]


def test_the_readme_tells_installations_within_their_limits() -> None:
    rows = _rows((ROOT / "README.md").read_text())
    assert [name for name, *_ in rows] == [name for name, _ in STEPS] == [*MOST]
    for name, size, seconds in rows:
        assert 100e6 < parse_bytes(size) <= MOST[name]
        assert float(seconds) > 0


def test_bytes_on_disk_are_those_of_du(tmp_path: Path) -> None:
    (tmp_path / "some" / "more").mkdir(parents=True)
    (tmp_path / "some" / "file").write_bytes(bytes(100_000))
    (tmp_path / "some" / "more" / "same").hardlink_to(tmp_path / "some" / "file")
    (tmp_path / "link").symlink_to(tmp_path / "some" / "file")
    du = subprocess.run(["du", "-s", "--block-size=512", str(tmp_path)], capture_output=True, text=True, check=True)
    assert bytes_on_disk(tmp_path) == 512 * int(du.stdout.split()[0])


def test_a_clone_is_measured_in_an_empty_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    makefile = 'demo:\n\tmkdir .venv; test -z "$$(ls -A $(HOME))"\n.venv/.test:\n\thead -c 100000 /dev/zero > $@\n'
    (tmp_path / "Makefile").write_text(makefile)
    (tmp_path / "README.md").write_text("<!-- installs -->\nold\n<!-- end of installs -->\n")
    who = ["-c", "user.name=n", "-c", "user.email=e"]
    for command in (["init", "-q"], ["add", "."], [*who, "commit", "-qm", "all"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    monkeypatch.setattr(measure_installs, "ROOT", tmp_path)
    assert main(["--quiet"]) == 0
    demo, test = _rows((tmp_path / "README.md").read_text())
    assert "old" not in (tmp_path / "README.md").read_text()
    assert parse_bytes(demo[1]) + 100_000 <= parse_bytes(test[1]) < 200_000
