"""Traces of any number of tensors, without a graph: tests and benchmarks of viewers and pictures use them."""

import heapq
import random
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from attrs import evolve

from engine.trace.trace import ALLOC, BEGIN, END, FREE, GROW, NOT_RUN, NOTHING, NOWHERE, PEAK, Event, RunInfo, Trace

KINDS = ("conv", "relu", "matmul", "add", "concat", "softmax", "layer_norm", "gather", "mul", "pool", "gelu")


def synthetic_trace(count: int, seed: int = 0, name: Callable[[int], str] = "tensor_{}".format) -> Trace:
    """Returns a trace with a tensor a tick, each in the lowest free slot of 64 KiB; most live shortly, some long."""
    chunks = _chunks(count, random.Random(seed))
    events = list(_events(chunks, name))
    peak = max(events, key=lambda e: e.live_bytes)
    arena = max(offset + size for _, _, offset, size in chunks)
    moments = [t for e in events for t in ((e, _peak(e)) if e is peak else (e,))]
    facts = RunInfo(
        model=name(0),
        mode="static",
        strategy="slots",
        status="feasible",
        arena_bytes=arena,
        lower_bound=peak.live_bytes,
        footprint_bytes=arena,
        peak_bytes=peak.live_bytes,
        peak_tick=peak.tick,
        peak_operator=peak.operator,
        ticks=count + 1,
    )
    return Trace(facts, lambda: iter(moments))


def _chunks(count: int, chance: random.Random) -> list[tuple[int, int, int, int]]:
    """Returns (begin, end, offset, size) of each chunk, by begin."""
    free, used, busy, chunks = list[int](), 0, list[tuple[int, int]](), []
    for begin in range(count):
        while busy and busy[0][0] <= begin:
            heapq.heappush(free, heapq.heappop(busy)[1])
        slot = heapq.heappop(free) if free else used
        used = max(used, slot + 1)
        end = min(begin + 1 + int(chance.paretovariate(0.7)), count)
        heapq.heappush(busy, (end, slot))
        chunks.append((begin, end, slot * 65_536, chance.randrange(64, 65_537, 64)))
    return chunks


def _events(chunks: list[tuple[int, int, int, int]], name: Callable[[int], str]) -> Iterator[Event]:
    arena, live = max((offset + size for _, _, offset, size in chunks), default=0), 0
    ending: dict[int, list[int]] = {}
    for chunk, (_, end, _, _) in enumerate(chunks):
        ending.setdefault(end, []).append(chunk)
    yield _event(0, GROW, name(0), bytes=arena, footprint_bytes=arena)
    for tick in range(len(chunks) + 1):
        event = partial(_event, tick, operator=name(tick), footprint_bytes=arena)
        for chunk in ending.get(tick, ()):
            _, _, offset, size = chunks[chunk]
            live -= size
            yield event(FREE, tensor=name(chunk), chunk=chunk, offset=offset, bytes=size, live_bytes=live)
        if tick < len(chunks):
            _, _, offset, size = chunks[tick]
            yield event(BEGIN, live_bytes=live)
            live += size
            yield event(ALLOC, tensor=name(tick), chunk=tick, offset=offset, bytes=size, live_bytes=live)
            yield event(END, live_bytes=live)


def _event(tick: int, kind: str, operator: str, **more: Any) -> Event:
    """Returns an event; fields that are not passed are those of an event that concerns no chunk."""
    named = {"schema": KINDS[tick * 7 % len(KINDS)], "shape": "1x64", "dtype": "float32", "role": "activation"}
    whole = {"tensor": "", "chunk": NOTHING, "offset": NOWHERE, "bytes": 0, "padding": 0, "overwrites": NOTHING}
    rest = {"live_bytes": 0, "stage": 0, "seconds": NOT_RUN, "thread": NOT_RUN}
    return Event(tick=tick, kind=kind, operator=operator, **{**named, **whole, **rest, **more})


def _peak(event: Event) -> Event:
    return evolve(event, kind=PEAK, chunk=NOTHING, offset=NOWHERE, tensor="", bytes=event.live_bytes)
