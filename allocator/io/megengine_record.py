"""MegEngine's StaticMemoryInfo.json (visable_data_set.cpp, static_mem_record.cpp), read and written.

All values are texts. A chunk has a lifetime (half-open), addresses, and the id of the *root* of the chain of
overwrites that it belongs to, or -1. Chunks of weights lie elsewhere; they are left out.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from attrs import frozen

from allocator.errors import FormatError, UnsupportedProblemError, shown
from allocator.io.instance import LARGEST, Instance, check_holds, check_placed, decoded, named_problem
from allocator.problem import FREE

MOST_TICKS = 10**6
"""The file has an entry for each tick."""
_TITLE = "StaticMemoryInfo.json"
_NO_DEST = "-1"
_WEIGHT_MEM, _WEIGHTS = "weight_mem", "weights"
_NUMBERS = ("time_begin", "time_end", "logic_addr_begin", "logic_addr_end")


@frozen
class _Chunk:
    name: str
    root: str
    begin: int
    end: int
    low: int
    high: int


def parse(content: bytes) -> Instance:
    """Parses chunks and their offsets. Raises FormatError, which names chunk and field, and ProblemError."""
    chunks = [_chunk(name, fields) for name, fields in _chunks(content) if fields.get("type") != _WEIGHT_MEM]
    ids = [chunk.name for chunk in chunks]
    row = {name: i for i, name in enumerate(ids)}
    pairs = [(row[src.name], row[dest.name], src.low - dest.low) for dest, src in _overwrites(chunks)]
    problem = named_problem(
        ids,
        begin=[c.begin for c in chunks],
        end=[c.end for c in chunks],
        size=[c.high - c.low for c in chunks],
        alignment=[1] * len(chunks),
        pinned=[FREE] * len(chunks),
        src=[src for src, _, _ in pairs],
        dest=[dest for _, dest, _ in pairs],
        overwrite_offset=[at for _, _, at in pairs],
    )
    return Instance(problem, ids, [c.low for c in chunks])


def render(instance: Instance, operators: Mapping[int, str] | None = None, weights: int = 0) -> bytes:
    """Returns the plan as a record. `operators` has names by tick; the others are called opr0, opr1 ...

    `weights` are bytes that lie behind the arena from the first tick to the last, as one more chunk. Raises
    UnsupportedProblemError for gaps, buffers without an offset, and lifetimes of more than MOST_TICKS.
    """
    check_holds(instance, _TITLE, ("overwrites", "alignments"))
    check_placed(instance, _TITLE)
    names_by_tick = operators or {}
    problem, ticks = instance.problem, int(instance.problem.end.max(initial=0))
    last = max([ticks, *(tick + 1 for tick in names_by_tick)])
    if last > MOST_TICKS:
        raise UnsupportedProblemError(f"{_TITLE} has an entry for each tick: {last} are more than {MOST_TICKS}")
    chain, names = problem.chains, instance.ids
    root, low = chain.root.tolist(), chain.offsets(np.maximum(instance.offset, 0))
    if _NO_DEST in names:
        raise FormatError(f"id {_NO_DEST!r} means no buffer in {_TITLE}")
    numbers = zip(*(map(str, c.tolist()) for c in (problem.begin, problem.end, low, low + problem.size)), strict=True)
    chunk = {
        name: {"id": name, "type": "static_mem"}
        | dict(zip(_NUMBERS, values, strict=True))
        | {"overwrite_dest_id": names[root[i]] if root[i] != i else _NO_DEST}
        for i, (name, values) in enumerate(zip(names, numbers, strict=True))
    }
    if weights:
        name = _free(_WEIGHTS, names)
        chunk[name] = _weights(name, ticks, instance.arena_bytes, weights)
    quoted = {tick: json.dumps(name) for tick, name in names_by_tick.items()}
    # As text at once: a dict for each tick would take gigabytes.
    opr = ",".join(f'"{i}":{{"id":"{i}","name":{quoted.get(i, _operator(i))}}}' for i in range(last))
    return f'{{"opr":{{{opr}}},"chunk":{json.dumps(chunk, separators=(",", ":"))}}}\n'.encode()


def _operator(tick: int) -> str:
    return f'"opr{tick}"'


def _weights(name: str, ticks: int, low: int, size: int) -> dict[str, str]:
    numbers = dict(zip(_NUMBERS, map(str, (0, ticks, low, low + size)), strict=True))
    return {"id": name, "type": _WEIGHT_MEM} | numbers | {"overwrite_dest_id": _NO_DEST}


def _free(name: str, taken: Collection[str]) -> str:
    """Returns the name, with bars in front of it as long as a buffer has it."""
    while name in taken:
        name = f"_{name}"
    return name


def _chunks(content: bytes) -> Iterable[tuple[str, Mapping[str, Any]]]:
    text = decoded(content)
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise FormatError(f"line {error.lineno}, column {error.colno}: {error.msg}") from error
    except (RecursionError, ValueError) as error:
        raise FormatError("is no JSON that a plan could be in") from error
    chunks = data.get("chunk") if isinstance(data, dict) else None
    if not isinstance(chunks, dict) or not all(isinstance(c, dict) for c in chunks.values()):
        raise FormatError("has no object 'chunk' that holds the chunks by id")
    return chunks.items()


def _chunk(name: str, fields: Mapping[str, Any]) -> _Chunk:
    begin, end, low, high = (_integer(name, field, fields.get(field)) for field in _NUMBERS)
    if end <= begin:
        raise FormatError(f"chunk {shown(name)}, field time_end: {end} is not above time_begin {begin}")
    if high < low:
        raise FormatError(f"chunk {shown(name)}, field logic_addr_end: {high} is below logic_addr_begin {low}")
    root = str(fields.get("overwrite_dest_id", _NO_DEST))
    return _Chunk(name, name if root == _NO_DEST else root, begin, end, low, high)


def _integer(name: str, field: str, value: object) -> int:
    text = str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(LARGEST)) and int(text) < LARGEST):
        raise FormatError(f"chunk {shown(name)}, field {field}: {shown(str(value))} is no integer in [0, {LARGEST})")
    return int(text)


def _overwrites(chunks: Sequence[_Chunk]) -> Iterable[tuple[_Chunk, _Chunk]]:
    """Yields pairs (overwritten, overwriter): the members of each chain, in the order in which they begin."""
    members: dict[str, list[_Chunk]] = {chunk.name: [] for chunk in chunks}
    for chunk in chunks:
        if chunk.root not in members:
            raise FormatError(f"chunk {shown(chunk.name)}: overwrites {shown(chunk.root)}, which is no static_mem")
        members[chunk.root].append(chunk)
    for root, chain in members.items():
        chain.sort(key=lambda c: (c.name != root, c.begin))
        if len(chain) > 1 and chain[0].name != root:
            raise FormatError(f"chunk {shown(root)}: overwrites another and is the root of a chain")
        yield from pairwise(chain)
