"""Converters of operators that give a tensor another shape, or repeat, cut and join tensors."""

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from attrs import frozen

from engine.onnx.model_names import Value
from engine.onnx.node import Converter, Node, direct
from engine.text.errors import ModelError
from ops.symbolic.guesses import Guess, choices, factors, numbers_to, parts, repeats, small_numbers
from ops.tensor.dims import SAMPLES, dims_in, sample_of
from ops.tensor.spec import Shape, normalize_axes, normalize_axis


def _reshape(node: Node) -> tuple[Value, ...]:
    x = node.value(0)
    shape = node.integers(1, "shape", lambda size: factors(x.shape, size))
    return node.last("reshape", x, shape=shape, zero_copies=not node.attr("allowzero", 0))


def _flatten(node: Node) -> tuple[Value, ...]:
    x = node.value(0)
    axis, rank = node.attr("axis", 1), len(x.shape)
    if not -rank <= axis <= rank:
        raise ModelError(f"axis {axis} does not exist in a tensor of {rank} dimensions")
    axis += rank if axis < 0 else 0
    return node.last("reshape", x, shape=(math.prod(x.shape[:axis]), math.prod(x.shape[axis:])))


def _squeeze(node: Node, axes: Sequence[int] | None) -> tuple[Value, ...]:
    x = node.value(0)
    removed = normalize_axes(axes, len(x.shape)) if axes is not None else [i for i, n in enumerate(x.shape) if n == 1]
    long = [
        i for i in removed if not dims_in(x.shape[i]) and x.shape[i] != 1
    ]  # open lengths are checked when they have numbers
    if long:
        raise ModelError(f"axis {long[0]} of shape {x.shape} is longer than 1 and cannot be taken out")
    return node.last("reshape", x, shape=tuple(n for i, n in enumerate(x.shape) if i not in removed))


def _unsqueeze(node: Node, axes: Sequence[int]) -> tuple[Value, ...]:
    x = node.value(0)
    rank = len(x.shape) + len(axes)
    new, old = set(normalize_axes(axes, rank)), iter(x.shape)
    return node.last("reshape", x, shape=tuple(1 if i in new else next(old) for i in range(rank)))


def _squeeze_attribute(node: Node) -> tuple[Value, ...]:
    return _squeeze(node, node.attr("axes"))


def _squeeze_input(node: Node) -> tuple[Value, ...]:
    return _squeeze(node, node.optional_integers(1, "axes"))


def _unsqueeze_attribute(node: Node) -> tuple[Value, ...]:
    return _unsqueeze(node, node.attr("axes"))


def _unsqueeze_input(node: Node) -> tuple[Value, ...]:
    return _unsqueeze(node, node.integers(1, "axes"))


def _transpose(node: Node) -> tuple[Value, ...]:
    return node.last("transpose", node.value(0), perm=node.attr("perm"))


def _concat(node: Node) -> tuple[Value, ...]:
    return node.last("concat", *node.operands(), axis=node.attr("axis"))


def _expand(node: Node) -> tuple[Value, ...]:
    x = node.value(0)
    return node.last("expand", x, shape=node.integers(1, "shape", lambda size: _grown(node, x.shape, size)))


def _grown(node: Node, shape: Shape, size: int) -> tuple[Guess, ...]:
    """Returns guesses of the lengths that a shape can be expanded to: any number in place of 1."""
    aligned = (*(1,) * size, *shape)[-size:] if size else ()
    guesses = []
    for length in aligned:
        lengths = [sample_of(length, j) for j in range(SAMPLES)]
        fresh = node.builder.graph.samples.invent()
        guesses.append(tuple(new if n == 1 else n for n, new in zip(lengths, fresh, strict=True)))
    return tuple(guesses)


def _tile(node: Node) -> tuple[Value, ...]:
    times = node.integers(1, "repeats", lambda size: [repeats(node.variant + i) for i in range(size)])
    return node.last("tile", node.value(0), repeats=times)


def _split(node: Node, sizes: Sequence[int] | None, even: bool) -> tuple[Value, ...]:
    axis, count = node.attr("axis", 0), len(node.outputs)
    if sizes is None:
        sizes = _equal_parts(_length(node, axis), count, even)
    if len(sizes) != count:
        raise ModelError(f"{len(sizes)} parts for {count} outputs")
    return node.last("split", node.value(0), axis=axis, sizes=tuple(sizes))


def _equal_parts(length: int, count: int, even: bool) -> list[int]:
    """Returns the lengths of parts; the last may be shorter unless they must be `even`.

    An open length is not checked here: the operator checks it when it has a number.
    """
    part = -(-length // count)
    if dims_in(length):
        return [part] * (count - 1) + [part if even else length - part * (count - 1)]
    if even and part * count != length:
        raise ModelError(f"{length} elements do not split into {count} equal parts")
    return [max(0, min(part, length - i * part)) for i in range(count)]


def _length(node: Node, axis: int) -> int:
    shape = node.value(0).shape
    return shape[normalize_axis(axis, len(shape))]


def _sizes(node: Node) -> tuple[int, ...] | None:
    return node.optional_integers(1, "split", lambda size: parts(_length(node, node.attr("axis", 0)), size))


def _split_attribute(node: Node) -> tuple[Value, ...]:
    return _split(node, node.attr("split"), even=True)


def _split_input(node: Node) -> tuple[Value, ...]:
    return _split(node, _sizes(node), even=True)


def _split_uneven(node: Node) -> tuple[Value, ...]:
    """Converts Split from opset 18 on: the last of `num_outputs` parts may be shorter."""
    sizes = _sizes(node)
    if sizes is None and node.attr("num_outputs") != len(node.outputs):
        raise ModelError(f"num_outputs is {node.attr('num_outputs')}, and there are {len(node.outputs)} outputs")
    return _split(node, sizes, even=False)


def _slice_attributes(node: Node) -> tuple[Value, ...]:
    return node.last("slice", node.value(0), **node.present("starts", "ends", "axes"))


def _slice_inputs(node: Node) -> tuple[Value, ...]:
    x = node.value(0)
    axes = node.optional_integers(3, "axes", lambda size: choices(size, len(x.shape)))
    bounds = _Bounds(x.shape, axes, node.variant)
    return node.last(
        "slice",
        x,
        starts=node.integers(1, "starts", bounds.starts),
        ends=node.integers(2, "ends", bounds.ends),
        axes=axes,
        steps=node.optional_integers(4, "steps", lambda size: (repeats(node.variant),) * size),
    )


_FEW = 4
"""The length that stands for an axis that only the run decides, when bounds of a slice are guessed."""


@frozen(eq=False)
class _Bounds:
    """Guesses of the bounds of a slice of a tensor with this shape, where only the run decides them."""

    shape: Shape
    axes: Sequence[int] | None
    variant: int

    def starts(self, size: int) -> list[Guess]:
        """Returns guesses of starts: in the first third of a long axis, anywhere on a short one."""
        return [tuple(self._start(length, j) for j in range(SAMPLES)) for length in self._lengths(size)]

    def ends(self, size: int) -> list[Guess]:
        """Returns guesses of ends: behind the first third, but for the last sample, where nothing is left."""
        return [numbers_to(length, turn=self.variant + i) for i, length in enumerate(self._lengths(size))]

    def _start(self, length: int, sample: int) -> int:
        most = sample_of(length, sample)
        return most * (sample + 1) // (3 * SAMPLES) if most > 3 * SAMPLES else (sample + self.variant) % (most + 1)

    def _lengths(self, size: int) -> list[int]:
        """Returns the lengths of the axes that the bounds are for; `_FEW` where the run decides which axes they are."""
        axes = range(size) if self.axes is None else self.axes
        return [_FEW] * size if dims_in(tuple(axes)) else [self.shape[axis] for axis in axes]


def _pad_attributes(node: Node) -> tuple[Value, ...]:
    """Converts Pad before opset 11: the pads are an attribute."""
    x, mode = node.value(0), node.attr("mode", "constant")
    filling = (node.like(node.attr("value", 0.0), x),) if mode == "constant" else ()
    return node.last("pad", x, *filling, pads=node.attr("pads"), mode=mode)


def _pad_inputs(node: Node) -> tuple[Value, ...]:
    x, mode = node.value(0), node.attr("mode", "constant")
    pads = node.integers(1, "pads", lambda size: [small_numbers(node.variant + i) for i in range(size)])
    axes = node.optional_integers(3, "axes")
    value = node.optional(2)
    filling = (value,) if value is not None and mode == "constant" else ()
    return node.last("pad", x, *filling, pads=_all_pads(pads, axes, len(x.shape)), mode=mode)


def _all_pads(pads: Sequence[int], axes: Sequence[int] | None, rank: int) -> tuple[int, ...]:
    """Returns the pads of all axes, from those of some."""
    if axes is None:
        return tuple(pads)
    if len(pads) != 2 * len(axes):
        raise ModelError(f"{len(pads)} pads for {len(axes)} axes; each axis must have 2")
    full = [0] * (2 * rank)
    for i, axis in enumerate(normalize_axes(axes, rank)):
        full[axis], full[axis + rank] = pads[i], pads[i + len(axes)]
    return tuple(full)


def _space_to_depth(node: Node) -> tuple[Value, ...]:
    """Converts SpaceToDepth. In mode CRD (from opset 28) the channel comes before the position inside the block."""
    x, block = node.value(0), node.attr("blocksize")
    if node.attr("mode", "DCR") == "DCR":
        return node.last("space_to_depth", x, blocksize=block)
    if len(x.shape) != 4 or block < 1 or x.shape[2] % block or x.shape[3] % block:
        raise ModelError(f"blocks of {block} do not divide the two last dimensions of shape {x.shape}")
    n, c, h, w = x.shape
    cut = node.step("reshape", x, shape=(n, c, h // block, block, w // block, block))
    transposed = node.step("transpose", cut, perm=(0, 1, 3, 5, 2, 4))
    return node.last("reshape", transposed, shape=(n, c * block * block, h // block, w // block))


CONVERTERS: Mapping[str, tuple[tuple[int, Converter | None], ...]] = MappingProxyType(
    {
        "Reshape": ((5, _reshape),),
        "Flatten": ((1, _flatten),),
        "Squeeze": ((1, _squeeze_attribute), (13, _squeeze_input)),
        "Unsqueeze": ((1, _unsqueeze_attribute), (13, _unsqueeze_input)),
        "Transpose": ((1, _transpose),),
        "Concat": ((4, _concat),),
        "Expand": ((8, _expand),),
        "Tile": ((6, _tile),),
        "Split": ((2, _split_attribute), (13, _split_input), (18, _split_uneven)),
        "Slice": ((1, _slice_attributes), (10, _slice_inputs)),
        "Pad": ((2, _pad_attributes), (11, _pad_inputs)),
        "DepthToSpace": ((1, direct("depth_to_space", blocksize=0, mode="DCR")),),
        "SpaceToDepth": ((1, _space_to_depth),),
    }
)
