"""Kernels are chosen for the processor that numba compiles for, which users may set."""

import os
import subprocess
import sys

import pytest

_SHOW = """
import ops.convolution.packed_door as gemm, ops.quantised.nhwc_tiled as codes, ops.half.convert as convert
from ops.native.emit.tile_shapes import tile_shape
print(tile_shape().name, gemm.has_avx512(), codes.has_vnni(), convert.has_half())
"""


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        ({"NUMBA_CPU_FEATURES": "+avx2,+fma,+avx,+sse4.2,+sse2,-avx512f"}, "avx2 False False False"),
        ({"NUMBA_CPU_FEATURES": "+avx2,+avx,+sse4.2,+sse2,+f16c"}, "portable False False True"),
        ({"NUMBA_CPU_FEATURES": "+avx512f,+avx512bw,+avx512vl,+avx512vnni"}, "avx512 True True False"),
        ({"NUMBA_CPU_NAME": "generic"}, "portable False False False"),
    ],
)
@pytest.mark.skipif(os.name != "posix" or os.uname().machine != "x86_64", reason="features of x86")
def test_kernels_are_chosen_for_the_processor_that_numba_compiles_for(settings: dict[str, str], wanted: str) -> None:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("NUMBA_CPU")} | settings
    done = subprocess.run([sys.executable, "-c", _SHOW], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == wanted
