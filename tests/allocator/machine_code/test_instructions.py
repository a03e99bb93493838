"""Instruction sets have names, are limited before anything runs, and decide which kernels are chosen."""

import logging
import os
import platform
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from allocator.machine_code import instructions
from allocator.machine_code.errors import InstructionsError
from allocator.machine_code.instructions import NAMES, has, instruction_set, limit_instructions, make_for
from ops.half import convert
from tests.helpers.paths import ROOT

IS_X86 = os.name == "posix" and os.uname().machine == "x86_64"
pytestmark = pytest.mark.skipif(not IS_X86, reason="features of x86")
AVX2 = frozenset("sse2 avx avx2 bmi1 bmi2 f16c fma lzcnt movbe popcnt sse3 ssse3 sse4_1 sse4_2".split())  # noqa: SIM905
_SHOW = """
import sys
from allocator.machine_code.instructions import limit_instructions
limit_instructions(sys.argv[1])
import ops.convolution.packed as gemm, ops.quantised.nhwc_tiled as codes, ops.half.convert as convert
from ops.native.emit.tile_shapes import tile_shape
print(tile_shape().name, gemm.has_avx512(), codes.has_vnni(), convert.has_half())
"""


@pytest.fixture(autouse=True)
def _undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instructions, "_CHOICE", instructions._Choice())


def _processor(monkeypatch: pytest.MonkeyPatch, *features: str) -> None:
    monkeypatch.setattr(instructions, "_processor", lambda: frozenset(features))


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("portable", "portable False False False"),
        ("avx2", "avx2 False False True"),
        ("avx512", "avx512 True False True"),
        ("avx512vnni", "avx512 True True True"),
    ],
)
def test_kernels_are_chosen_for_the_instruction_set(name: str, wanted: str) -> None:
    if not instruction_set(name).features <= instructions._processor():
        pytest.skip(f"this processor has no {name}")
    command = [sys.executable, "-c", _SHOW, name]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == wanted


def test_the_largest_set_that_the_processor_has_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for features, name in [
        (("sse2",), "portable"),
        (AVX2 - {"fma"}, "portable"),
        (AVX2, "avx2"),
        (AVX2 | {"avx512f"}, "avx2"),
        (AVX2 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}, "avx512"),
        (AVX2 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", "avx512vnni"}, "avx512vnni"),
    ]:
        _processor(monkeypatch, *features)
        monkeypatch.setattr(instructions, "_CHOICE", instructions._Choice())
        assert instructions.instructions().name == name


def test_a_limit_holds_until_something_else_is_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    _processor(monkeypatch, *AVX2)
    limit_instructions("portable")
    limit_instructions("avx2")
    assert has("avx2", "fma") and not has("avx512f")
    limit_instructions("avx2")
    with pytest.raises(InstructionsError, match="'avx2' is in use"):
        limit_instructions("portable")


def test_an_unknown_set_and_one_that_is_not_there_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    _processor(monkeypatch, *AVX2)
    with pytest.raises(InstructionsError, match="portable, avx2, avx512, avx512vnni"):
        limit_instructions("sse2")
    with pytest.raises(InstructionsError, match=r"no avx512bw .* 'avx512'"):
        limit_instructions("avx512")


def test_code_is_made_for_other_kinds_of_processors() -> None:
    assert make_for("portable", "aarch64").triple.startswith("aarch64-") and not has("sse2")
    assert make_for("avx512vnni", "x86_64").triple.startswith("x86_64-") and has("f16c", "sse2", "avx512vnni")
    with pytest.raises(InstructionsError, match="portable are"):
        make_for("avx2", "aarch64")


def test_a_processor_of_another_kind_has_what_all_of_its_kind_have(monkeypatch: pytest.MonkeyPatch) -> None:
    for machine in ("arm64", "aarch64", "riscv64"):
        monkeypatch.setattr(platform, "machine", lambda name=machine: name)
        monkeypatch.setattr(instructions, "_CHOICE", instructions._Choice())
        assert instructions._processor.__wrapped__() == instructions.instructions().features
        assert not has("sse2") and convert.has_half() == (machine != "riscv64")


def test_sets_contain_each_other() -> None:
    sets = [instruction_set(name) for name in NAMES]
    assert all(a.features < b.features for a, b in pairwise(sets))


def test_the_system_is_asked_before_llvm(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        features = instructions._processor.__wrapped__()

    def unreadable(*_: object, **__: object) -> str:
        raise OSError("no such file")

    monkeypatch.setattr(Path, "read_text", unreadable)
    for name in NAMES:
        wanted = instruction_set(name).features
        assert (wanted <= features) == (wanted <= instructions._processor.__wrapped__())
