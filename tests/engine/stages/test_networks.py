"""Networks of realistic sizes in stages: right, and within 10 % of a plan that knew all sizes."""

import numpy as np
import pytest

import engine
from ops.tensor.spec import Array
from tests.helpers.graphs.unplanned_run import assert_same
from tools.staged_networks import CLASSES, WORDS, Decoder, detector, tail

MOST_LOSS = 0.10


def thresholds(least: float, sure: float) -> dict[str, Array]:
    return {"least": np.asarray(least, np.float32), "sure": np.asarray(sure, np.float32)}


def detections(count: int, seed: int) -> dict[str, Array]:
    """Returns feeds of the tail of a detector."""
    rng = np.random.default_rng(seed)
    arrays = rng.standard_normal((1, count, 4)) * 4, rng.random((1, CLASSES, count)), rng.standard_normal((count, 64))
    return {n: a.astype(np.float32) for n, a in zip(("boxes", "scores", "features"), arrays, strict=True)}


@pytest.mark.parametrize(
    ("count", "least", "sure"),
    [(500, 0.3, 0.6), (500, 0.7, 0.8), (4000, 0.3, 0.6), (4000, 0.5, 0.99), (4000, 0.9, 0.9), (700, 1.0, 1.0)],
)
def test_the_staged_tail_of_a_detector_equals_one_of_known_sizes(count: int, least: float, sure: float) -> None:
    exe, feeds = engine.compile(tail()), detections(count, count) | thresholds(least, sure)
    outputs = exe.run(feeds)
    assert_same(outputs, engine.compile(tail(), mode="dynamic").run(feeds))
    kept, scores = outputs["kept"], feeds["scores"]
    seen = scores[kept[:, 0], kept[:, 1], kept[:, 2]]
    assert (seen > least).all() and len(outputs["shown"]) == len(outputs["classes"]) == (seen > sure).sum()
    np.testing.assert_array_equal(outputs["scores"], np.sort(seen)[::-1][: len(outputs["scores"])])
    assert len(exe.stages) == 3
    assert exe.stage_report().loss <= MOST_LOSS


@pytest.mark.parametrize(("side", "least", "sure"), [(64, 0.5, 0.9), (96, 0.9, 0.99), (128, 0.6, 0.8), (128, 1.0, 1.0)])
def test_a_staged_detector_equals_one_of_known_sizes(side: int, least: float, sure: float) -> None:
    image = np.random.default_rng(side).standard_normal((1, 3, side, side)).astype(np.float32)
    feeds, exe = {"image": image} | thresholds(least, sure), engine.compile(detector("side"))
    assert_same(exe.run(feeds), engine.compile(detector(side)).run(feeds))
    assert exe.stage_report().loss <= MOST_LOSS


def test_a_staged_greedy_decoder() -> None:
    """Attention over all tokens so far, logits of 5,000 words; the token that is likeliest goes behind the others."""
    decoder, lengths = Decoder.drawn(), set[int]()
    exe = engine.compile(decoder.graph())
    for seed, (count, most, turns) in enumerate([(1, 12, 12), (5, 30, 7), (12, 40, 3), (3, 20, 10)]):
        prompt = np.random.default_rng(seed).integers(0, WORDS, count)
        end = decoder.numpy(prompt, -1, count + turns)[-1]
        wanted = decoder.numpy(prompt, end, most)
        tokens = exe.run({"prompt": prompt, "end": np.asarray(end), "most": np.asarray(most)})["tokens"]
        assert tokens.tolist() == wanted
        assert len(exe.stages) == len(wanted) - count + 2
        assert exe.stage_report().loss <= MOST_LOSS
        lengths.add(len(wanted))
    assert len(lengths) > 2


def test_a_decoder_that_has_nothing_to_do_gives_the_prompt() -> None:
    exe, prompt = engine.compile(Decoder.drawn().graph()), np.array([7, 9])
    for end, most in ((9, 50), (-1, 2), (-1, 0)):
        tokens = exe.run({"prompt": prompt, "end": np.asarray(end), "most": np.asarray(most)})["tokens"]
        assert tokens.tolist() == [7, 9]
