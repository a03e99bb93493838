"""Faults in what lies in several memories: weights, rules, and what cannot be written."""

from collections.abc import Callable
from typing import Any

import numpy as np
from attrs import evolve

from engine.planning import memories
from engine.planning.memories import Contents
from tests.helpers.faults.base import MEMORIES, Fault, Plant, after, patched
from tests.helpers.faults.work import branches, planning, training


def _contents(change: Callable[[Contents], Contents]) -> Plant:
    return patched(memories, "contents_of", after(lambda contents, *_: change(contents)))


def _without_a_weight(contents: Contents) -> Contents:
    row_of = {value: row for value, row in contents.row_of.items() if row != contents.chunks}
    return evolve(contents, row_of=row_of)


def _half_as_large(contents: Contents) -> Contents:
    return evolve(contents, sizes=contents.sizes // 2)


def _anywhere(contents: Contents) -> Contents:
    return evolve(contents, allowed=np.ones_like(contents.allowed))


_WHERE = "engine/planning/memories/choose.py"
_BOARD: Any = {"memories": ["ram=1MiB,1GB/s", "rom=1MiB,5GB/s,read-only", "fast=1MiB,4GB/s"]}
_RULED = planning(branches, **_BOARD, place={"inputs": "ram"})

MEMORY_FAULTS: tuple[Fault, ...] = (
    Fault("a weight lies in no memory", _WHERE, MEMORIES, _contents(_without_a_weight), _RULED),
    Fault("weights have half their bytes", _WHERE, MEMORIES, _contents(_half_as_large), _RULED),
    Fault("rules of places are not kept", _WHERE, MEMORIES, _contents(_anywhere), _RULED),
    Fault("a parameter is read-only", _WHERE, MEMORIES, _contents(_anywhere), planning(training, **_BOARD)),
)
