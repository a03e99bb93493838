"""Inputs that failed once, each a small file: they end as they should."""

from pathlib import Path

import pytest

from tests.fuzz.judging import judge
from tests.fuzz.kinds import KINDS

CASES = sorted((Path(__file__).parent / "cases").iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("path", CASES, ids=lambda path: path.name)
def test_an_input_that_failed_once_ends_as_it_should(path: Path) -> None:
    kind = KINDS[path.name.partition("-")[0]]
    assert path.stat().st_size < 10_000
    assert judge(kind, path.read_bytes()).failure == ""
