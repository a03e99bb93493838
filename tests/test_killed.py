"""Processes that are killed while they write: what has a name is whole, and the next one goes on."""

import json
from pathlib import Path

import pytest

from tests.fuzz.__main__ import main
from tests.helpers.killed_writers import IS_THERE, WRITERS


@pytest.mark.slow
@pytest.mark.skipif(not IS_THERE, reason="no processes are forked here")
def test_a_killed_writer_leaves_nothing_half_written(tmp_path: Path) -> None:
    """`python -m tests.fuzz --only kills` kills as many as one likes."""
    out = tmp_path / "counts.json"
    assert main(["--only", "kills", "--seed", "1", "--count", "30", "--seconds", "600", "-o", str(out)]) == 0
    outcomes = json.loads(out.read_text())["kills"]["outcomes"]
    assert outcomes.keys() == WRITERS.keys() and sum(outcomes.values()) == 30
