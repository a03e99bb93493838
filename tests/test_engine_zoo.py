"""The encoder transformer, against the same network written in plain numpy."""

import math

import numpy as np

import engine
from engine.zoo import encoder
from engine.zoo.encoder import EncoderSize
from ops.spec import Array
from tests.unplanned import assert_same, random_feeds

SMALL = EncoderSize(layers=2, width=48, heads=4, sequence=16, batch=2)


def _normal(rng: np.random.Generator, *shape: int, scale: float) -> Array:
    return rng.normal(0.0, scale, shape).astype(np.float32).astype(np.float64)


def _linear(x: Array, outputs: int, rng: np.random.Generator) -> Array:
    w = _normal(rng, x.shape[-1], outputs, scale=x.shape[-1] ** -0.5)
    y: Array = x @ w + _normal(rng, outputs, scale=0.02)
    return y


def _norm(x: Array, rng: np.random.Generator) -> Array:
    scale, bias = 1 + _normal(rng, x.shape[-1], scale=0.1), _normal(rng, x.shape[-1], scale=0.1)
    centred = x - x.mean(-1, keepdims=True)
    y: Array = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * scale + bias
    return y


def _attention(x: Array, size: EncoderSize, rng: np.random.Generator) -> Array:
    head = size.width // size.heads
    q, k, v = (_linear(x, size.width, rng).reshape(*x.shape[:2], size.heads, head) for _ in range(3))
    scores = np.einsum("bshd,bthd->bhst", q, k) / math.sqrt(head)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    mixed = np.einsum("bhst,bthd->bshd", weights / weights.sum(-1, keepdims=True), v)
    return _linear(mixed.reshape(x.shape), size.width, rng)


def _gelu(x: Array) -> Array:
    y: Array = x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))
    return y


def by_hand(x: Array, size: EncoderSize, seed: int) -> Array:
    """The network in float64."""
    rng, x = np.random.default_rng(seed), x.astype(np.float64)
    for _ in range(size.layers):
        x = _norm(x + _attention(x, size, rng), rng)
        x = _norm(x + _linear(_gelu(_linear(x, size.width * size.expansion, rng)), size.width, rng), rng)
    return x


def _check(size: EncoderSize) -> engine.Executable:
    graph = encoder(size, seed=5)
    feeds = random_feeds(graph, seed=1)
    exe = engine.compile(graph)
    found = exe.run(feeds)
    wanted = by_hand(feeds["x"], size, 5)
    assert np.abs(found["y"] - wanted).max() <= 1e-4 * np.abs(wanted).max()
    assert_same(engine.compile(graph, mode="dynamic").run(feeds), found)
    assert_same(engine.compile(graph, debug="poison").run(feeds), found)
    return exe


def test_a_small_encoder_is_what_numpy_computes_in_every_mode() -> None:
    _check(SMALL)


def test_the_encoder_of_minilm_size_is_what_numpy_computes_and_needs_little() -> None:
    report = _check(EncoderSize()).report()
    assert report.arena_bytes <= 1.02 * report.lower_bound
    assert report.arena_bytes <= report.dynamic_peak_bytes + report.alignment_loss
