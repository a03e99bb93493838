"""Operators and bytes by layer: the path that names such as `layer1.0/relu` begin with."""

from collections.abc import Sequence

from attrs import frozen

from engine.graph.graph import Graph
from engine.report.peak import PeakTensor
from engine.text.layer_names import depth_of, layer_of
from engine.text.screen import UNBOUNDED
from engine.text.tables import indented_table
from engine.text.units import counted, format_bytes


@frozen
class Layer:
    """The operators whose names begin with one path: what they compute in a run, and the bytes that they write.

    The layer of names that are no path is "".
    `flops` are `work` of those of all layers, and `peak_bytes`, those of tensors at the peak, `share`; from 0 to 1.
    """

    name: str
    operators: int
    flops: int
    work: float
    peak_bytes: int
    share: float


def layers_of(graph: Graph, tensors: Sequence[PeakTensor]) -> tuple[Layer, ...]:
    """Returns the layers of a graph, those with most bytes at the peak first; none where names are no paths.

    `tensors` are alive at the peak.
    """
    depth = depth_of([operator.name for operator in graph.operators])
    if not depth:
        return ()
    sums: dict[str, list[int]] = {}
    for operator in graph.operators:
        _add(sums, layer_of(operator.name, depth), 1, operator.schema.cost(operator.signature).flops, 0)
    names = {operator.name for operator in graph.operators}
    for tensor in tensors:
        writer = tensor.operator if tensor.operator in names else tensor.operator.rpartition("/")[0]  # of a copy for it
        _add(sums, layer_of(writer, depth), 0, 0, tensor.bytes)
    flops, size = (max(sum(numbers[i] for numbers in sums.values()), 1) for i in (1, 2))
    layers = (Layer(name, n, done, done / flops, own, own / size) for name, (n, done, own) in sums.items())
    return tuple(sorted(layers, key=lambda layer: (-layer.peak_bytes, -layer.flops)))


def layer_table(layers: Sequence[Layer], most: int, width: int = UNBOUNDED) -> list[str]:
    """Returns lines for people: the layers with most bytes at the peak; none where there are no layers."""
    if not layers:
        return []
    head, rows = ("layer", "operators", "work", "at the peak", "share"), []
    for layer in layers[:most]:
        size = format_bytes(layer.peak_bytes)
        rows.append((layer.name or "(no layer)", str(layer.operators), f"{layer.work:.1%}", size, f"{layer.share:.1%}"))
    lines = ["by layer:", *indented_table(head, rows, {1, 2, 3, 4}, width)]
    rest = layers[most:]
    if rest:
        size, work = format_bytes(sum(layer.peak_bytes for layer in rest)), sum(layer.work for layer in rest)
        lines.append(f"  ... and {counted(len(rest), 'other layer')}, {size} and {work:.1%} of the work")
    return lines


def _add(sums: dict[str, list[int]], layer: str, *numbers: int) -> None:
    sums[layer] = [a + b for a, b in zip(sums.get(layer, (0, 0, 0)), numbers, strict=True)]
