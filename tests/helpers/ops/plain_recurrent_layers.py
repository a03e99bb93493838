"""LSTM, GRU and RNN as ONNX writes their equations: one sequence after the other, one direction after the other."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ops.tensor.spec import Array

Function = Callable[[Array], Array]


def sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


def functions(names: list[str], alpha: list[float], beta: list[float]) -> list[Function]:
    """Returns activations by their lower-case names, each with its own alpha and beta, which most ignore."""
    table: Mapping[str, Callable[[Array, float, float], Any]] = {
        "relu": lambda x, _, __: np.maximum(x, 0),
        "tanh": lambda x, _, __: np.tanh(x),
        "sigmoid": lambda x, _, __: sigmoid(x),
        "affine": lambda x, a, b: a * x + b,
        "leakyrelu": lambda x, a, _: np.where(x >= 0, x, a * x),
        "thresholdedrelu": lambda x, a, _: np.where(x >= a, x, 0),
        "scaledtanh": lambda x, a, b: a * np.tanh(b * x),
        "hardsigmoid": lambda x, a, b: np.clip(a * x + b, 0, 1),
        "elu": lambda x, a, _: np.where(x >= 0, x, a * (np.exp(np.minimum(x, 0)) - 1)),
        "softsign": lambda x, _, __: x / (1 + np.abs(x)),
        "softplus": lambda x, _, __: np.log(1 + np.exp(x)),
    }
    return [lambda x, n=n, a=a, b=b: table[n](x, a, b) for n, a, b in zip(names, alpha, beta, strict=True)]  # type: ignore[misc]


class Model:
    """A cell in one direction. `f` are its activations, `clip` bounds their inputs (not the cell of an LSTM)."""

    def __init__(self, kind: str, more: Mapping[str, Array], f: list[Function], attrs: Any) -> None:
        self.kind, self.w, self.r, self.f, self.attrs = kind, more["w"], more["r"], f, attrs
        self.hidden = self.r.shape[-1]
        self.bias = more.get("bias", np.zeros(2 * len(self.w)))
        self.peepholes = more.get("peepholes", np.zeros(3 * self.hidden)).reshape(3, -1)

    def part(self, weights: Array, gate: int) -> Array:
        return np.asarray(weights[gate * self.hidden : (gate + 1) * self.hidden])

    def x(self, gate: int, x: Array) -> Array:
        return np.asarray(self.part(self.w, gate) @ x + self.part(self.bias, gate))

    def h(self, gate: int, h: Array) -> Array:
        return np.asarray(self.part(self.r, gate) @ h + self.part(self.bias[len(self.w) :], gate))

    def act(self, which: int, x: Array) -> Array:
        limit = self.attrs.get("clip", np.inf)
        return self.f[which](np.clip(x, -limit, limit))

    def step(self, x: Array, h: Array, c: Array) -> tuple[Array, Array]:
        return {"rnn": self.rnn, "gru": self.gru, "lstm": self.lstm}[self.kind](x, h, c)

    def rnn(self, x: Array, h: Array, c: Array) -> tuple[Array, Array]:
        return self.act(0, self.x(0, x) + self.h(0, h)), c

    def gru(self, x: Array, h: Array, c: Array) -> tuple[Array, Array]:
        z, r = (self.act(0, self.x(g, x) + self.h(g, h)) for g in (0, 1))
        if self.attrs.get("linear_before_reset", 0):
            fresh = self.act(1, self.x(2, x) + r * self.h(2, h))
        else:
            fresh = self.act(1, self.x(2, x) + self.h(2, r * h))
        return (1 - z) * fresh + z * h, c

    def lstm(self, x: Array, h: Array, c: Array) -> tuple[Array, Array]:
        i = self.act(0, self.x(0, x) + self.h(0, h) + self.peepholes[0] * c)
        f = self.act(0, self.x(2, x) + self.h(2, h) + self.peepholes[2] * c)
        if self.attrs.get("input_forget", 0):
            f = 1 - i
        c = f * c + i * self.act(1, self.x(3, x) + self.h(3, h))
        o = self.act(0, self.x(1, x) + self.h(1, h) + self.peepholes[1] * c)
        return o * self.f[2](c), c


def run(kind: str, every: Mapping[str, Array], f: list[Function], attrs: Any) -> list[Array]:
    """Computes y, the last h and the last cell, in float64; layout 0, activations for all directions."""
    x = every["x"].astype(np.float64)
    (time, batch, _), (directions, _, hidden) = x.shape, every["r"].shape
    y = np.zeros((time, directions, batch, hidden))
    last_h, last_c = np.zeros((2, directions, batch, hidden))
    lengths = every.get("lengths", np.full(batch, time))
    for d in range(directions):
        own = {k: v[d].astype(np.float64) for k, v in every.items() if k not in ("x", "lengths")}
        each = len(f) // directions
        model = Model(kind, own, f[d * each : (d + 1) * each], attrs)
        for b in range(batch):
            h, c = (own[n][b] if n in own else np.zeros(hidden) for n in ("initial_h", "initial_c"))
            order = range(int(lengths[b]))
            for t in reversed(order) if d == 1 or attrs.get("direction") == "reverse" else order:
                h, c = model.step(x[t, b], h, c)
                y[t, d, b] = h
            last_h[d, b], last_c[d, b] = h, c
    return [y, last_h, last_c] if kind == "lstm" else [y, last_h]
