"""What Pisarchyk and Lee 2020 tell of their tables, and whether records of their networks show it.

Of the tables themselves only these facts are known here. Inception v3 (1.4 % more bytes) and BlazeFace (another
variant) are not exactly the paper's networks. A share of bytes is the same within 1.5 points, as
the paper rounds both.
"""

from collections.abc import Iterator, Mapping
from typing import Protocol

from attrs import frozen

Totals = Mapping[str, int]
NAIVE, BOUND = "naive", "lower bound"
IN_ORDER, FLOW, BREADTH, IMPROVED = (
    f"shared_{name}" for name in ("in_order", "min_cost_flow", "by_breadth", "by_size_improved")
)
BY_SIZE, BY_BREADTH, GREEDY, PACKED = (
    *("greedy_by_size", "greedy_by_breadth"),
    *("greedy_in_order", "strip_packing_bestfit"),
)
V1, V2, DEEPLAB, INCEPTION, POSENET, BLAZEFACE = (
    *("mobilenet_v1", "mobilenet_v2", "deeplab_v3"),
    *("inception_v3", "posenet", "blazeface"),
)
NAMES = (V1, V2, DEEPLAB, INCEPTION, POSENET, BLAZEFACE)
_OTHERS = "inception_v3 and blazeface are not exactly the paper's networks"
_MIB = 2**20


class Measured(Protocol):
    """What the facts look at of one network."""

    @property
    def tensors(self) -> int:
        """How many there are."""

    @property
    def objects(self) -> Totals:
        """Bytes of shared objects by strategy."""

    @property
    def offsets(self) -> Totals:
        """Bytes of arenas by strategy."""

    @property
    def object_counts(self) -> Totals:
        """How many objects a strategy makes."""


Networks = Mapping[str, Measured]


@frozen
class Fact:
    """A sentence of the paper, what is measured here, and whether it is the same; else what may explain it."""

    text: str
    measured: str
    holds: bool
    note: str


def facts(networks: Networks) -> list[Fact]:
    """Returns the facts, compared; none where a network of the paper is missing."""
    if any(name not in networks for name in NAMES):
        return []
    papers = {name: networks[name] for name in NAMES}
    return [fact for checks in (_sizes, _of_objects, _of_offsets) for fact in checks(papers)]


def _sizes(networks: Networks) -> Iterator[Fact]:
    for name, percent, mib in ((INCEPTION, 37, 147), (V2, 63, 41)):
        share = 100 * networks[name].objects[NAIVE] / _MIB / mib
        text = f"intermediates are {percent} % of the {mib} MB of {name}"
        yield Fact(text, f"{share:.1f} %", abs(share - percent) <= 1.5, _OTHERS)
    v2 = networks[V2]
    naive, shared = v2.objects[NAIVE] / _MIB, v2.objects[IMPROVED] / _MIB
    count = v2.object_counts[IMPROVED]
    text = f"{V2}: 65 intermediates, about 26 MB naive, about 7 MB in 4 shared objects"
    seen = f"{v2.tensors}, {naive:.1f} MiB, {shared:.1f} MiB in {count}"
    holds = (v2.tensors, round(naive), round(shared), count) == (65, 26, 7, 4)
    yield Fact(text, seen, holds, "objects depend on the order of equal sizes")


def _of_objects(networks: Networks) -> Iterator[Fact]:
    best = {name: min(n.objects[s] for s in (BREADTH, IMPROVED)) for name, n in networks.items()}
    most, where = _most({name: n.objects[NAIVE] / best[name] for name, n in networks.items()})
    yield Fact("objects: up to 7.5 times below naive", f"{most:.1f} times, {where}", round(most, 1) == 7.5, _OTHERS)
    gain, where = _most({k: _below(best[k], min(n.objects[IN_ORDER], n.objects[FLOW])) for k, n in networks.items()})
    yield Fact("objects: up to 11 % below earlier work", f"{gain:.1%}, {where}", round(100 * gain) == 11, _OTHERS)
    other = [name for name, n in networks.items() if n.objects[IMPROVED] > n.objects[BREADTH]]
    text = f"by size improved is best on every network but {V2}, by breadth there"
    note = "stages of tensors as large as a maximum are TensorFlow Lite's here, the paper's are others"
    yield Fact(text, f"by breadth is better on {_names(other)}", other == [V2], note)
    reached = [name for name, n in networks.items() if best[name] == n.objects[BOUND]]
    text = f"objects: the bound is reached on {V1}, {POSENET}, {BLAZEFACE}"
    yield Fact(text, _names(reached), reached == [V1, POSENET, BLAZEFACE], _OTHERS)
    over, where = _most({name: best[name] / n.objects[BOUND] - 1 for name, n in networks.items()})
    yield Fact("objects: the others are within 16 %", f"{over:.1%}, {where}", over <= 0.165, _OTHERS)


def _of_offsets(networks: Networks) -> Iterator[Fact]:
    over = {name: n.offsets[BY_SIZE] / n.offsets[BOUND] - 1 for name, n in networks.items()}
    above = [name for name, gap in over.items() if gap]
    text = f"offsets by size: at the bound on every network but {DEEPLAB}, there within 8 %"
    holds = above == [DEEPLAB] and over[DEEPLAB] <= 0.08
    yield Fact(text, f"{_names(above)}: {max(over.values()):.1%}", holds, _OTHERS)
    for other, name, percent in ((GREEDY, "greedy", 25.0), (PACKED, "strip packing", 7.7)):
        gain, where = _most({k: _below(n.offsets[BY_SIZE], n.offsets[other]) for k, n in networks.items()})
        text = f"offsets by size: up to {percent:g} % below {name}"
        yield Fact(text, f"{gain:.1%}, {where}", abs(100 * gain - percent) < 0.5, _OTHERS)
    most, where = _most({k: n.offsets[NAIVE] / n.offsets[BY_SIZE] for k, n in networks.items()})
    yield Fact("offsets: up to 10.5 times below naive", f"{most:.1f} times, {where}", round(most, 1) == 10.5, _OTHERS)
    better = [name for name, n in networks.items() if n.offsets[PACKED] < n.offsets[BY_SIZE]]
    deeplab = networks[DEEPLAB].offsets
    gain, near = _below(deeplab[PACKED], deeplab[BY_SIZE]), deeplab[PACKED] / deeplab[BOUND] - 1
    text = f"on {DEEPLAB} alone strip packing is 7.2 % better than by size, very near the bound"
    holds = better == [DEEPLAB] and abs(gain - 0.072) < 0.005 and near < 0.01
    yield Fact(text, f"{_names(better)}: {gain:.1%}, {near:.1%} above the bound", holds, _OTHERS)
    v2 = networks[V2].offsets
    gain = _below(v2[BY_BREADTH], v2[GREEDY])
    text = f"offsets by breadth beat earlier work on some networks, such as {V2}"
    yield Fact(text, f"{gain:.1%} below greedy", gain > 0, "equal sizes may stand in another order there")


def _most(values: Mapping[str, float]) -> tuple[float, str]:
    name = max(values, key=lambda key: values[key])
    return values[name], name


def _below(one: int, other: int) -> float:
    return 1 - one / other


def _names(names: list[str]) -> str:
    return ", ".join(names) or "none"
