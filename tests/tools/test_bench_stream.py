"""The memory of a stream in a process of its own."""

from pathlib import Path

import numpy as np
import pytest

from engine.system.process_memory import anonymous_bytes
from tools.bench_stream import measure

_CODE_BYTES = 24 * 2**20
"""What compiled code, packed weights and the plans take beside the arena; 12 MiB were measured."""


@pytest.mark.slow
@pytest.mark.skipif(anonymous_bytes() is None, reason="only Linux tells anonymous memory")
def test_an_image_needs_little_more_memory_than_the_arena_of_its_stripes(tmp_path: Path) -> None:
    row = measure(1500, "4 MiB", tmp_path)
    assert row.arena_bytes <= 4 * 2**20 < row.whole_bytes // 50
    assert row.beyond_bytes <= row.arena_bytes + _CODE_BYTES
    mask = np.fromfile(tmp_path / "mask.f32", np.float32)
    assert mask.size == 1500**2 and 0 < mask.min() < mask.max() < 1
