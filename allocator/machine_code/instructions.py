"""Instruction sets by name. Code is compiled for a set, not for one processor, and runs on all that have the set."""

import platform
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path

from attrs import define, evolve, frozen

from allocator.machine_code.errors import InstructionsError

_SSE2 = frozenset(["sse2"])
"""What every x86-64 has."""
_AVX2 = _SSE2 | {
    *("avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "lzcnt", "movbe", "popcnt", "sse3", "ssse3", "sse4_1", "sse4_2")
}
_AVX512 = _AVX2 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
_LINUX = {"abm": "lzcnt", "pni": "sse3", "avx512_vnni": "avx512vnni"}
_LLVM = {"sse4.1": "sse4_1", "sse4.2": "sse4_2", "bmi": "bmi1"}
"""Other names of features."""
_MAKER = "allocator.machine_code.make"
"""Finds features by LLVM, where the system does not tell them."""
_OTHER_NAMES = {"AMD64": "x86_64", "arm64": "aarch64"}
"""Of kinds of processors."""


@frozen
class Instructions:
    """An instruction set: its features; the processor, settings and system that LLVM is told, by default this one."""

    name: str
    features: frozenset[str]
    cpu: str
    settings: str = ""
    triple: str = ""


_WIDE = "-prefer-256-bit"
"""LLVM would use half of the registers of AVX-512."""
_SETS_X86 = (
    Instructions("portable", _SSE2, "x86-64"),
    Instructions("avx2", _AVX2, "x86-64-v3"),
    Instructions("avx512", _AVX512, "x86-64-v4", _WIDE),
    Instructions("avx512vnni", _AVX512 | {"avx512vnni"}, "x86-64-v4", f"{_WIDE},+avx512vnni"),
)
_SETS_OTHER = (Instructions("portable", frozenset(), "generic"),)
_SETS: Mapping[str, tuple[Instructions, ...]] = {"x86_64": _SETS_X86, "aarch64": _SETS_OTHER}
PROCESSORS = tuple(_SETS)
"""The kinds of processors that machine code can be made for on any of them."""
NAMES = tuple(s.name for s in _SETS_X86)
"""The names of all sets, the smallest first."""


@define
class _Choice:
    """The set that is used, once something has asked for it, and the name of the largest that may be."""

    limit: str = NAMES[-1]
    used: Instructions | None = None


_CHOICE = _Choice()


def limit_instructions(name: str) -> None:
    """Limits compiled code to an instruction set: "portable", "avx2", "avx512" or "avx512vnni".

    Call it before anything is compiled or run. Raises InstructionsError where the name is another, where this processor
    lacks the set, or where another set is in use.
    """
    chosen = instruction_set(name)
    if not chosen.features <= _processor():
        missing = sorted(chosen.features - _processor())
        raise InstructionsError(f"this processor has no {' '.join(missing)}, which instruction set {name!r} wants")
    if _CHOICE.used is not None and _CHOICE.used != chosen:
        raise InstructionsError(f"instruction set {_CHOICE.used.name!r} is in use: limit it to {name!r} before any run")
    _CHOICE.limit = name


def make_for(name: str, kind: str) -> Instructions:
    """Returns a set of a kind of processor for Linux, which this process makes code for from now on.

    This processor need not have it. Raises InstructionsError where the kind has no set of that name.
    """
    _CHOICE.used = evolve(instruction_set(name, kind), triple=f"{kind}-unknown-linux-gnu")
    return _CHOICE.used


def instruction_set(name: str, kind: str = "") -> Instructions:
    """Returns the set of that name, of this processor or a kind. Raises InstructionsError where there is none."""
    sets = {s.name: s for s in sets_of(kind)}
    if name not in sets:
        raise InstructionsError(f"no instruction set is called {name!r}: {', '.join(sets)} are")
    return sets[name]


def instructions() -> Instructions:
    """Returns the largest set that this processor has and the limit allows; from now on, no other is used."""
    if _CHOICE.used is None:
        allowed = NAMES[: NAMES.index(_CHOICE.limit) + 1]
        _CHOICE.used = [s for s in sets_of() if s.name in allowed and s.features <= _processor()][-1]
    return _CHOICE.used


def limited() -> bool:
    """Returns whether the set that is used was asked for, and is not the largest of all."""
    return instructions().name == _CHOICE.limit != NAMES[-1]


def has(*features: str) -> bool:
    """Returns whether compiled code has all of these features, such as "avx2"."""
    return instructions().features.issuperset(features)


def sets_of(kind: str = "") -> tuple[Instructions, ...]:
    """Returns the sets of a kind of processor, by default this one; the smallest first."""
    return _SETS.get(kind or this_kind(), _SETS_OTHER)


def this_kind() -> str:
    """Returns the kind of this processor."""
    machine = platform.machine()
    return _OTHER_NAMES.get(machine, machine)


@cache
def _processor() -> frozenset[str]:
    """Returns the features of this processor."""
    if this_kind() != PROCESSORS[0]:
        return sets_of()[-1].features
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return frozenset(_LLVM.get(name, name) for name in import_module(_MAKER).host_features())
    flags = next((line for line in text.splitlines() if line.startswith("flags")), "")
    return frozenset(_LINUX.get(name, name) for name in flags.split())
