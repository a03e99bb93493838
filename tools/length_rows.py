"""What new lengths cost beside onnxruntime: first and later runs of an encoder, and the tokens of a greedy decoder.

Milliseconds of processor time on one thread, medians. "first" is a run with lengths that are new, "again" one with the
same lengths, "new" what the first takes more: the median of the differences. Lengths come in a random order, so that
none is expected. "kept_bytes" are those that a new length leaves behind. A token of the decoder is a mean, as some runs
plan for those that follow.
"""

import gc
import statistics
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from attrs import frozen

import engine
from ops.tensor.spec import Array
from tools.open_networks import MINILM, NARROW, TransformerSize, decoder_model, encoder_model

FIRST, COUNT = 8, 40
TOKENS = 64
WARM = 3
Feeds = Mapping[str, Array]
Run = Callable[[Feeds], Mapping[str, Array]]
ONNXRUNTIME = "onnxruntime"


@frozen
class LengthRow:
    """Forty sequence lengths of an encoder, in a random order."""

    network: str
    engine: str
    operators: int
    first: float
    again: float
    new: float
    kept_bytes: int


@frozen
class DecodingRow:
    """A greedy decoding: mean milliseconds a token, the first time and once more, and those of the slowest token."""

    network: str
    engine: str
    operators: int
    token: float
    token_again: float
    slowest: float


def _milliseconds(run: Run, feeds: Feeds) -> tuple[float, Mapping[str, Array]]:
    begin = time.process_time()
    outputs = run(feeds)
    return 1e3 * (time.process_time() - begin), outputs


def _session(path: Path) -> Run:
    import onnxruntime  # noqa: PLC0415 (heavy, optional)

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return lambda feeds: dict(zip(names, session.run(None, feeds), strict=True))


def _engines(model: onnx.ModelProto, ranges: Mapping[str, tuple[int, int]]) -> Iterator[tuple[str, int, Run]]:
    """Yields the name, the number of operators and the run of each way to run a model."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        onnx.save(model, path)
        if find_spec(ONNXRUNTIME):
            yield ONNXRUNTIME, len(model.graph.node), _session(path)
        graph = engine.load_onnx(path)
        for name, bounds in (("arenaplan", None), ("arenaplan, length_ranges", ranges)):
            exe = engine.compile(graph, threads=1, length_ranges=bounds)
            yield name, len(exe.graph.operators), exe.run


def length_rows(sizes: Mapping[str, TransformerSize] | None = None) -> list[LengthRow]:
    """Runs encoders with forty sequence lengths each. Returns their rows."""
    rows = []
    for network, size in (sizes or {"MiniLM": MINILM, "narrow": NARROW}).items():
        ranges = {"batch": (1, 1), "sequence": (1, FIRST + COUNT + WARM)}
        for name, operators, run in _engines(encoder_model(size), ranges):
            rng = np.random.default_rng(0)
            lengths = FIRST + rng.permutation(COUNT + WARM)
            fed = [{"tokens": rng.integers(0, size.words, (1, length))} for length in lengths]
            for feeds in fed[:WARM]:
                run(feeds)
            kept = _kept_bytes(run, fed[WARM : WARM + COUNT // 2])
            rows.append(LengthRow(network, name, operators, *_times(run, fed[WARM + COUNT // 2 :]), kept))
    return rows


def _times(run: Run, fed: Sequence[Feeds]) -> tuple[float, float, float]:
    """Returns the milliseconds of first runs, of later ones, and of what the first take more."""
    first, again = [], []
    for feeds in fed:
        first.append(_milliseconds(run, feeds)[0])
        again.append(min(_milliseconds(run, feeds)[0] for _ in range(2)))
    new = statistics.median(one - other for one, other in zip(first, again, strict=True))
    return round(statistics.median(first), 2), round(statistics.median(again), 2), round(new, 2)


def _kept_bytes(run: Run, fed: Sequence[Feeds]) -> int:
    """Returns the bytes that remain of each new length, as Python and numpy count them."""
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for feeds in fed:
            run(feeds)
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return (after - before) // len(fed)


def decoding_rows(size: TransformerSize = MINILM) -> list[DecodingRow]:
    """Decodes tokens greedily, twice. Returns a row for each way to run the decoder."""
    rows, texts = [], []
    for name, operators, run in _engines(decoder_model(size), {"past": (1, 2 * TOKENS)}):
        _decode(run, size, WARM)
        text, first = _decode(run, size, TOKENS)
        again = _decode(run, size, TOKENS)[1]
        texts.append(text)
        token, later = (round(statistics.mean(times), 2) for times in (first[WARM:], again))
        rows.append(DecodingRow("decoder", name, operators, token, later, round(max(first[WARM:]), 2)))
    assert all(text == texts[0] for text in texts), "the decoders give other tokens"
    return rows


def _decode(run: Run, size: TransformerSize, count: int) -> tuple[list[int], list[float]]:
    """Returns the tokens, and the milliseconds of each."""
    empty = np.zeros((1, size.heads, 1, size.width // size.heads), np.float32)
    kept: dict[str, Any] = {f"past_{i}": empty for i in range(2 * size.layers)}
    token, tokens, times = np.zeros((1, 1), np.int64), list[int](), list[float]()
    for _ in range(count):
        milliseconds, outputs = _milliseconds(run, {"token": token, **kept})
        token = outputs["scores"].argmax(-1).reshape(1, 1)
        tokens.append(int(token[0, 0]))
        times.append(milliseconds)
        kept = {name: outputs[name.replace("past", "kept")] for name in kept}
    return tokens, times
