"""Lines of text about a whole run."""

from collections.abc import Iterator

from engine.text.names import escaped
from engine.text.units import format_bytes
from engine.trace.trace import ESTIMATED, RunInfo


def head(facts: RunInfo) -> Iterator[str]:
    """Yields the network that runs, its memory and its weights, in words."""
    yield f"{escaped(facts.model) or 'a model'}: {_run(facts)}"
    yield f"{_memory(facts)}, {_bound(facts)}" if facts.mode == "static" else _memory(facts)
    yield from (escaped(part.title) for part in facts.memories)
    if facts.budget_bytes:
        excess = facts.footprint_bytes - facts.budget_bytes
        missed = f", missed by {sized(excess)}" if excess > 0 else ""
        yield f"budget {sized(facts.budget_bytes)}{missed}"
    if facts.weights_bytes or facts.prepacked_bytes:
        yield (
            f"weights {sized(facts.weights_bytes)}, prepacked {sized(facts.prepacked_bytes)}, "
            f"resident weights {sized(facts.resident_weights_bytes)}"
        )


def foot(facts: RunInfo) -> Iterator[str]:
    """Yields the peak: its bytes, its tick and its operator."""
    if facts.peak_bytes:
        at = f"in tick {facts.peak_tick}" + (f", {escaped(facts.peak_operator)}" if facts.peak_operator else "")
        yield f"peak: {sized(facts.peak_bytes)} alive {at}"
    else:
        yield "peak: nothing is ever alive"


def sized(size: int) -> str:
    """Returns a size in its unit, and exactly in bytes."""
    readable = format_bytes(size)
    return readable if size < 1024 else f"{readable} ({size:,} bytes)"


def _run(facts: RunInfo) -> str:
    parts = [f"{facts.mode} run of {facts.ticks} ticks"]
    if facts.stages > 1:
        parts.append(f"in {facts.stages} stages")
    if facts.threads > 1:
        parts.append(f"on {facts.threads} threads")
    if facts.clock:
        parts.append("with times as estimated" if facts.clock == ESTIMATED else "with times as measured")
    if facts.heap:
        parts.append(f"on a model of the heap {escaped(facts.heap)}")
    return ", ".join(parts)


def _memory(facts: RunInfo) -> str:
    if facts.mode == "static":
        count = f"{len(facts.memories)} memories with arenas" if facts.memories else "one arena"
        return f"{count} of {sized(facts.arena_bytes)}"
    if facts.heap:
        return f"the heap has {sized(facts.footprint_bytes)} at most"
    return "memory at no known addresses"


def _bound(facts: RunInfo) -> str:
    if facts.arena_bytes == facts.lower_bound:
        return "and no plan needs less"
    return f"and no plan needs less than {sized(facts.lower_bound)}"
