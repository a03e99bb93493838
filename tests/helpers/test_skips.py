import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.paths import ROOT
from tests.helpers.skips import skipped

MODULES = {
    "test_one.py": "import pytest\npytest.importorskip('nowhere', reason='no nowhere: get it')\n",
    "test_two.py": "import pytest\npytest.importorskip('nowhere', reason='no nowhere: get it')\n",
    "test_three.py": (
        "import pytest\n"
        "@pytest.mark.parametrize('n', range(3))\n"
        "@pytest.mark.skipif(True, reason='no AVX')\n"
        "def test_a(n): pass\n"
        "def test_b(): pytest.skip('no browser')\n"
        "def test_c(): pass\n"
    ),
}


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "workers"])
def test_one_line_tells_how_many_tests_and_files_were_skipped_and_why(workers: tuple[str, ...], tmp_path: Path) -> None:
    for name, text in MODULES.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "conftest.py").write_text("from tests.conftest import pytest_terminal_summary\n")
    options = ["-q", "-p", "no:cacheprovider", *workers]
    run = [sys.executable, "-m", "pytest", *options, "--rootdir", str(tmp_path), str(tmp_path)]
    printed = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, check=False).stdout
    lines = [line for line in printed.splitlines() if line.startswith("skipped: ")]
    assert lines == ["skipped: 3 (no AVX), 2 files (no nowhere: get it), 1 (no browser)"], printed


def test_nothing_is_told_where_nothing_was_skipped() -> None:
    assert skipped([]) == ""
