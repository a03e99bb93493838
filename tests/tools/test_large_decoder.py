"""tools/large_decoder.py: a table of partitions, from shapes alone."""

import pytest

from tests.helpers.cli.cli_checks import Capture
from tools import large_decoder
from tools.large_decoder import Size, decoder


def test_weights_have_the_bytes_of_70_billion_and_no_data() -> None:
    graph = decoder(Size(layers=2, tokens=64))
    spec = graph.constants.spec
    layer = sum(spec(v).nbytes for v in graph.constants if v.name.rsplit("/")[0].endswith("_0"))
    ends = sum(spec(v).nbytes for v in graph.constants if v.name.startswith(("token", "logits")))
    assert 68e9 < ((layer - ends) * 80 + ends) / 2 < 70e9


@pytest.mark.slow
def test_rows_say_what_fits_and_what_does_not(capsys: Capture) -> None:
    assert large_decoder.main(["--layers", "6", "--tokens", "256", "-q"]) == 0
    rows = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines()[2:]]
    assert [row[0] for row in rows[::3]] == [f"{machines}" for machines in large_decoder.MACHINES]
    assert all("optimal" in row or "%" in row[6] or "needs" in row[2] for row in rows)
