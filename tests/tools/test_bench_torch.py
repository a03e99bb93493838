"""The table of memory of modules of PyTorch."""

import pytest

from tests.helpers.paths import ROOT
from tests.helpers.torch import REASON
from tools.bench_torch import MODULES, PAGE, WAYS, torch_table


def test_the_table_has_a_line_for_each_module_with_megabytes() -> None:
    row = {"module": "encoder", "arena_bytes": 4_040_000, "difference": 0.0}
    row |= {f"{way}_bytes": 1_000_000 * (i + 1) for i, way in enumerate(WAYS)}
    head, line = torch_table([row])
    assert len(head) == len(line)
    assert line == [f"encoder ({MODULES['encoder']})", "1.0", "2.0", "3.0", "4.0"]


def test_the_page_has_all_modules_and_less_memory_here() -> None:
    page = (ROOT / PAGE).read_text(encoding="utf-8")
    for name, what in MODULES.items():
        line = next(line for line in page.splitlines() if line.startswith(f"| {name} ({what}) |"))
        eager, compiled, ours, arena = (float(cell) for cell in line.split("|")[2:-1])
        assert arena <= ours * 1.05 < min(eager, compiled)


def test_each_module_is_there() -> None:
    networks = pytest.importorskip("tools.networks.torch_modules", reason=REASON)
    assert list(networks.MODULES) == list(MODULES)
