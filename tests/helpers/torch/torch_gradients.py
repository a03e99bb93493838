"""PyTorch's gradients of a graph: the forward operators run there, autograd does the rest."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from engine import Graph, Operator, Var
from ops.tensor.spec import Array

Tensor = Any
Rule = Callable[..., Tensor | tuple[Tensor, ...]]


def torch_gradients(graph: Graph, loss: str, feeds: Mapping[str, Array]) -> tuple[float, dict[str, Array]]:
    """Returns the loss, and its gradient for each trainable parameter, by name; the graph has no backward pass."""
    tensors: dict[Var, Tensor] = {v: torch.tensor(a) for v, a in graph.constants.items()}
    tensors |= {v: torch.tensor(feeds[n]) for n, v in graph.inputs.items()}
    tensors |= {v: torch.tensor(p.initial, requires_grad=p.trainable) for v, p in graph.parameters.items()}
    for op in graph.operators:
        outputs = RULES[op.schema.name](op, *(tensors[v] for v in op.inputs))
        tensors.update(zip(op.outputs, outputs if isinstance(outputs, tuple) else (outputs,), strict=True))
    end = tensors[graph.outputs[loss]]
    end.backward()
    trained = (v for v, p in graph.parameters.items() if p.trainable)
    gradients = {v.name: tensors[v].grad for v in trained}
    return end.item(), {n: g.numpy() for n, g in gradients.items() if g is not None}


def _symmetric(op: Operator) -> tuple[int, ...]:
    pads: tuple[int, ...] = op.attrs["pads"]
    half = len(pads) // 2
    assert pads[:half] == pads[half:]
    return pads[:half]


def _conv(op: Operator, x: Tensor, w: Tensor, b: Tensor | None = None) -> Tensor:
    a, pads = op.attrs, op.attrs["pads"]
    half = len(pads) // 2
    around = [n for axis in reversed(range(half)) for n in (pads[axis], pads[half + axis])]
    return functional.conv2d(functional.pad(x, around), w, b, a["strides"], 0, a["dilations"], a["group"])


def _conv_transpose(op: Operator, x: Tensor, w: Tensor, b: Tensor | None = None) -> Tensor:
    a = op.attrs
    return functional.conv_transpose2d(
        x, w, b, a["strides"], _symmetric(op), a["output_padding"] or 0, a["group"], a["dilations"]
    )


def _max_pool(op: Operator, x: Tensor) -> Tensor:
    a = op.attrs
    return functional.max_pool2d(x, a["kernel_shape"], a["strides"], _symmetric(op), a["dilations"], a["ceil_mode"])


def _average_pool(op: Operator, x: Tensor) -> Tensor:
    a = op.attrs
    return functional.avg_pool2d(
        x, a["kernel_shape"], a["strides"], _symmetric(op), a["ceil_mode"], a["count_include_pad"]
    )


def _batch_norm(op: Operator, x: Tensor, scale: Tensor, bias: Tensor) -> tuple[Tensor, ...]:
    axes = tuple(i for i in range(x.ndim) if i != 1)
    y = functional.batch_norm(x, None, None, scale, bias, True, 0.0, op.attrs["epsilon"])
    return y, x.mean(axes).detach(), x.var(axes, correction=0).detach()


def _gemm(op: Operator, a: Tensor, b: Tensor, c: Tensor | None = None) -> Tensor:
    left, right = (t.T if op.attrs[f] else t for t, f in ((a, "trans_a"), (b, "trans_b")))
    product: Tensor = op.attrs["alpha"] * (left @ right)
    return product if c is None else product + op.attrs["beta"] * c


def _layer_norm(op: Operator, x: Tensor, scale: Tensor, bias: Tensor) -> Tensor:
    return functional.layer_norm(x, x.shape[op.attrs["axis"] :], scale, bias, op.attrs["epsilon"])


def _slice(op: Operator, x: Tensor) -> Tensor:
    a, index = op.attrs, [slice(None)] * x.ndim
    for axis, start, end, step in zip(a["axes"], a["starts"], a["ends"], a["steps"], strict=True):
        index[axis] = slice(start, end, step)
    return x[tuple(index)]


def _clip(_: Operator, x: Tensor, low: Tensor, high: Tensor) -> Tensor:
    return torch.clamp(x, low, high)


def _cross_entropy(op: Operator, logits: Tensor, labels: Tensor) -> Tensor:
    a = op.attrs
    return functional.cross_entropy(
        logits,
        labels.long(),
        ignore_index=a["ignore_index"],
        reduction=a["reduction"],
        label_smoothing=a["label_smoothing"],
    )


def _gather(op: Operator, x: Tensor, indices: Tensor) -> Tensor:
    rows = x.index_select(op.attrs["axis"], indices.reshape(-1).long())
    axis = op.attrs["axis"]
    return rows.reshape(*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])


def _plain(function: Callable[..., Tensor]) -> Rule:
    return lambda _, *inputs: function(*inputs)


RULES: Mapping[str, Rule] = {
    "conv": _conv,
    "conv_transpose": _conv_transpose,
    "max_pool": _max_pool,
    "average_pool": _average_pool,
    "global_average_pool": _plain(lambda x: x.mean((2, 3), keepdim=True)),
    "batch_norm_training": _batch_norm,
    "gemm": _gemm,
    "matmul": _plain(torch.matmul),
    "layer_norm": _layer_norm,
    "gather": _gather,
    "slice": _slice,
    "clip": _clip,
    "softmax_cross_entropy": _cross_entropy,
    "softmax": lambda op, x: torch.softmax(x, op.attrs["axis"]),
    "gelu": lambda op, x: functional.gelu(x, approximate=op.attrs["approximate"]),
    "concat": lambda op, *xs: torch.cat(xs, op.attrs["axis"]),
    "reshape": lambda op, x: x.reshape(op.outputs[0].shape),
    "transpose": lambda op, x: x.permute(op.attrs["perm"]),
    "cast": lambda op, x: x.to(torch.from_numpy(np.empty(0, op.attrs["to"])).dtype),
    "reduce_mean": lambda op, x: x.mean(op.attrs["axes"] or tuple(range(x.ndim)), keepdim=op.attrs["keepdims"]),
    "lrn": lambda op, x: functional.local_response_norm(
        x, op.attrs["size"], op.attrs["alpha"], op.attrs["beta"], op.attrs["bias"]
    ),
    "relu": _plain(torch.relu),
    "tanh": _plain(torch.tanh),
    "sigmoid": _plain(torch.sigmoid),
    "add": _plain(torch.add),
    "sub": _plain(torch.sub),
    "mul": _plain(torch.mul),
    "div": _plain(torch.div),
    "assign": _plain(lambda _, new: new.detach()),
    "sum": _plain(lambda *xs: torch.stack(torch.broadcast_tensors(*xs)).sum(0)),
    "mean": _plain(lambda *xs: torch.stack(torch.broadcast_tensors(*xs)).mean(0)),
}
"""By name of the schema: what PyTorch computes for it."""
