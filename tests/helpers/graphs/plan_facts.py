"""Facts about plans, found again from graphs and calls: what explanations say is held against them."""

from collections.abc import Callable, Iterator

from engine.explain.overwrites import TAKEN, Forward
from engine.graph.graph import Graph
from engine.lower.calls import Call, Join, Storage
from engine.planning.placed import PlacedPlan
from ops.registry import find
from ops.tensor.layout import Layout


def owner(plan: PlacedPlan, name: str) -> int:
    """Returns the value that has the bytes of a tensor."""
    return next(v.owner for v in plan.lowered.values if v.name == name)


def reads(plan: PlacedPlan, root: int) -> Iterator[tuple[int, str]]:
    """Returns (tick, name) of each read of the bytes of a value, with the fetch."""
    values, stages = plan.lowered.values, plan.lowered.instructions
    for stage in stages:
        if isinstance(stage, (Call, Join)):
            yield from ((stage.tick, values[v].name) for v in stage.inputs if values[v].owner == root)
    kept = (*plan.lowered.outputs.values(), *plan.lowered.parameters.values())
    yield from ((len(stages) + 1, values[v].name) for v in kept if values[v].owner == root)


def holds(plan: PlacedPlan, forward: Forward) -> bool:
    """Returns whether the reason of a refused overwrite is a fact."""
    facts: dict[str, Callable[[PlacedPlan, Forward], bool]] = {
        "later": _later,
        "outside": _outside,
        "beside": _beside,
        "elsewhere": _elsewhere,
        "given": _given,
        "constant": lambda p, f: _storage(p, f.input) is Storage.CONSTANT,
        "callers": lambda p, f: Storage.CALLER in (_storage(p, f.input), _storage(p, f.output)),
        "strided": lambda p, f: not _layout(p, f.input).is_dense,
        "misaligned": lambda p, f: bool((_layout(p, f.input).offset + f.offset) % _layout(p, f.output).itemsize),
        "parameter": _parameter,
        "nested": lambda p, f: owner(p, f.output) == _id(p, f.other) != _id(p, f.output),
        "off": lambda p, _: not p.options.overwrite,
        "empty": lambda _, f: f.output_bytes == 0,
        "unsafe": lambda p, _: bool(p.options.parallel),
        TAKEN: lambda p, f: f.output in overwriters(p).get(f.input_chunk, ()) or _in_place(p, f),
    }
    return facts[forward.reason](plan, forward)


def overwriters(plan: PlacedPlan) -> dict[int, list[str]]:
    """Returns by chunk that is written over the names of the tensors that do it."""
    names = {plan.chunk_of(v.id): v.name for v in plan.lowered.values if v.id in plan.ids and v.owner == v.id}
    return {int(d): [names[int(s)]] for s, d in zip(plan.problem.src, plan.problem.dest, strict=True)}


def _later(plan: PlacedPlan, forward: Forward) -> bool:
    """Returns whether there are later readers of the bytes, also through views, and all of them are named."""
    later = sorted({(t, n) for t, n in reads(plan, owner(plan, forward.input)) if t > forward.tick})
    return bool(later) and sorted({(u.tick, u.tensor) for u in forward.readers}) == later


def _outside(plan: PlacedPlan, forward: Forward) -> bool:
    whole = plan.lowered.values[owner(plan, forward.input)].spec.nbytes
    return _layout(plan, forward.input).extent[0] + forward.offset + forward.output_bytes > whole


def _beside(plan: PlacedPlan, forward: Forward) -> bool:
    """Returns whether the operator reads the same bytes in two places."""
    (call,) = (c for c in plan.lowered.calls if c.tick == forward.tick)
    root = owner(plan, forward.input)
    return sum(plan.lowered.values[v].owner == root for v in call.inputs) > 1


def _elsewhere(plan: PlacedPlan, forward: Forward) -> bool:
    taken = {c for c, names in overwriters(plan).items() if forward.output in names}
    return len(taken) == 1 and forward.input_chunk not in taken and _id(plan, forward.other) >= 0


def _given(plan: PlacedPlan, forward: Forward) -> bool:
    return overwriters(plan)[forward.input_chunk] == [forward.other] != [forward.output]


def _parameter(plan: PlacedPlan, forward: Forward) -> bool:
    out = _id(plan, forward.output)
    return any(then == out and first != out for first, then in plan.lowered.parameters.items())


def _in_place(plan: PlacedPlan, forward: Forward) -> bool:
    """Returns whether both are in the same bytes of a third."""
    places = [plan.places[_id(plan, name)].layout.extent for name in (forward.input, forward.output)]
    return places[0][0] + forward.offset == places[1][0] and owner(plan, forward.output) != _id(plan, forward.output)


def _id(plan: PlacedPlan, name: str) -> int:
    return next(v.id for v in plan.lowered.values if v.name == name)


def _storage(plan: PlacedPlan, name: str) -> Storage:
    return plan.lowered.values[_id(plan, name)].storage


def _layout(plan: PlacedPlan, name: str) -> Layout:
    return plan.lowered.values[_id(plan, name)].layout


def renamed(name: str) -> Graph:
    """Returns a graph whose name, operator and tensor are one name."""
    graph = Graph(name)
    x = graph.input("x", (4,))
    (middle,) = graph.add(find("neg"), [x], name=name, output_names=[name])
    graph.output(middle + x, "y")
    return graph
