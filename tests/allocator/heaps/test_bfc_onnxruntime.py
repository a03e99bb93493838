"""The model of onnxruntime's arena against the real one, which is installed here.

The other arenas are not: torch's build for CPUs has no caching allocator for CUDA, and Python cannot reach
TensorFlow's arena. They are tested against sequences worked out by hand from their sources.
"""

from collections.abc import Sequence

import numpy as np
import pytest
from attrs import evolve, frozen

from allocator.errors import OutOfMemoryError
from allocator.heaps import simulate
from allocator.heaps.bfc import BFC_ONNXRUNTIME, Bfc, Extension
from allocator.heaps.events import Events
from allocator.problem import NO_CAPACITY
from tests.helpers.allocator.onnxruntime_arena import serve
from tests.helpers.allocator.plain_heaps import KIB, MIB, BfcModel, run_model, thrown

EXTENSIONS = {Extension.NEXT_POWER_OF_TWO: 0, Extension.SAME_AS_REQUESTED: 1}


@frozen
class Case:
    """A heap, and sizes of about `life` blocks that are live at once, up to `most` bytes."""

    heap: Bfc
    most: int
    life: int
    capacity: int = NO_CAPACITY

    def config(self) -> dict[str, int]:
        """Returns the entries of OrtArenaCfg."""
        return {
            "max_mem": 0 if self.capacity == NO_CAPACITY else self.capacity,
            "arena_extend_strategy": EXTENSIONS[self.heap.extension],
            "initial_chunk_size_bytes": self.heap.region,
            "max_dead_bytes_per_chunk": self.heap.max_dead_bytes,
            "initial_growth_chunk_size_bytes": -1,
            "max_power_of_two_extend_bytes": self.heap.max_region,
        }

    def events(self, seed: int, count: int = 300) -> Events:
        """Returns events with sizes spread over all bins."""

        def sizes(rng: np.random.Generator) -> int:
            return int(np.exp(rng.uniform(0, np.log(self.most))))

        return thrown(np.random.default_rng(seed), count, sizes, self.life)

    def model(self, bases: Sequence[int]) -> BfcModel:
        """Returns the plain model, with its regions at these addresses."""
        return BfcModel(
            self.capacity,
            bases,
            region=self.heap.region,
            max_region=self.heap.max_region,
            max_dead=self.heap.max_dead_bytes,
            same_as_requested=self.heap.extension is Extension.SAME_AS_REQUESTED,
        )


GIB = 1 << 30

SMALL = evolve(BFC_ONNXRUNTIME, region=64 * KIB, max_dead_bytes=16 * KIB, max_region=256 * KIB)
CASES = {
    "defaults": Case(BFC_ONNXRUNTIME, 4 * MIB, 12),
    "small": Case(SMALL, 400 * KIB, 60),
    "as requested": Case(evolve(SMALL, extension=Extension.SAME_AS_REQUESTED), 200 * KIB, 30),
    "full": Case(SMALL, 400 * KIB, 60, capacity=MIB),
}


def clear_cut(case: Case) -> Events:
    """Returns events for which it makes no difference whether newer regions lie above older ones or below.

    Of chunks of one size the arena takes the lowest; malloc puts the real regions anywhere, the model upwards.
    """
    for seed in range(100):
        events = case.events(seed)
        ways = [run_model(case.model([at * step for at in range(1, 99)]), events) for step in (GIB, -GIB)]
        if ways[0].reserved == ways[1].reserved:
            return events
    raise AssertionError("all depend on where regions lie")


@pytest.mark.parametrize("name", CASES)
def test_blocks_lie_where_the_real_arena_puts_them(name: str) -> None:
    case = CASES[name]
    events = case.events(seed=3)
    served = serve(events, {} if name == "defaults" else case.config())
    wanted = run_model(case.model([base for base, _ in served.regions]), events)
    assert served.address == {one: at for one, (at, _) in wanted.places.items()}
    assert served.failed == wanted.failed
    assert (served.failed >= 0) == (name == "full")
    assert len(served.regions) >= 3
    assert sum(size for _, size in served.regions) == wanted.reserved[-1]


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_the_simulated_arena_gets_the_regions_of_the_real_one(name: str) -> None:
    case = CASES[name]
    events = clear_cut(case)
    served = serve(events, case.config())
    if served.failed < 0:
        got = simulate(case.heap, events, case.capacity)
        assert got.segments.size.tolist() == [size for _, size in served.regions]
        return
    with pytest.raises(OutOfMemoryError) as failure:
        simulate(case.heap, events, case.capacity)
    assert failure.value.reserved == sum(size for _, size in served.regions)
    assert failure.value.requested == events.size[events.id[served.failed]]
