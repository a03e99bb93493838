"""Networks of texts: sizes as published, and the numbers of the same networks in plain numpy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
from engine.executor.dynamic import DynamicExecutor
from engine.graph.graph import Graph
from engine.text.errors import KernelError
from engine.zoo import TEXT_NETWORKS, lstm_classifier
from engine.zoo.bert import BertSize, Text, bert
from engine.zoo.gpt2 import GptSize, Steps, decoder
from ops.tensor.spec import Array
from tests.helpers.graphs.numpy_networks import ByHand, lstm_last, pieces
from tests.helpers.graphs.unplanned_run import assert_same, run_modes

PUBLISHED = {"bert_base": 109_482_240, "minilm": 22_713_216, "gpt2": 124_439_808}
"""Parameters, as Hugging Face's transformers tells them: BertModel with its pooler, GPT2Model."""
SMALL_BERT = BertSize(2, 24, 3, vocabulary=50, positions=12)
SMALL_GPT = GptSize(2, 24, 3, vocabulary=50, positions=12)
LEARNED = ("/weight", "/bias", "/scale")


def close(actual: Array, wanted: Array) -> bool:
    return bool(np.abs(actual - wanted).max() <= 1e-4 * np.abs(wanted).max())


@pytest.mark.usefixtures("without_numbers")
@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_are_as_many_as_published(name: str) -> None:
    graph = TEXT_NETWORKS[name]()
    assert graph.name == name
    assert sum(var.spec.size for var in graph.constants if var.name.endswith(LEARNED)) == PUBLISHED[name]


@pytest.mark.usefixtures("without_numbers")
@pytest.mark.parametrize("name", ["lstm_classifier", "minilm", "bert_base"])
def test_batch_and_sequence_may_be_names(name: str) -> None:
    graph = TEXT_NETWORKS[name]("texts", "words")
    assert str(graph.inputs["ids"].spec) == "int64[texts,words]"
    assert str(graph.outputs["y"].shape[0]) == "texts"
    assert len(graph.operators) == len(TEXT_NETWORKS[name](2, 16).operators)


@settings(max_examples=10, deadline=None)
@given(batch=st.integers(1, 3), sequence=st.integers(1, 12), seed=st.integers(0, 99))
def test_a_small_bert_is_what_numpy_computes(batch: int, sequence: int, seed: int) -> None:
    rng, size = np.random.default_rng(seed), SMALL_BERT
    graph = bert(size, "bert", Text(batch, sequence), seed)
    ids, types = rng.integers(0, 50, (batch, sequence)), rng.integers(0, 2, (batch, sequence))
    mask = rng.integers(0, 2, (batch, sequence))
    mask[:, 0] = 1
    hand = ByHand.of(graph)
    token, position, kind = (hand.arrays[f"{n}/weight"] for n in ("token", "position", "type"))
    x = hand.norm(token[ids] + position[:sequence] + kind[types], 1e-12)
    for _ in range(size.layers):
        x = hand.encoder_layer(x, size.heads, mask[:, None, None, :] == 1, 1e-12)
    outputs = run_modes(graph, {"ids": ids, "mask": mask, "types": types})
    assert close(outputs["y"], x)
    assert close(outputs["pooled"], np.tanh(hand.dense(x[:, 0], "pooler")))


def decoded(graph: Graph, ids: Array, size: GptSize) -> Array:
    """Returns logits behind each token, every one of which reads all before it."""
    hand = ByHand.of(graph)
    token, x = hand.arrays["token/weight"], hand.arrays["position/weight"][: ids.shape[1]]
    x = token[ids] + x
    for _ in range(size.layers):
        x = hand.decoder_layer(x, size.heads)
    y: Array = hand.norm(x) @ token.T
    return y


@settings(max_examples=10, deadline=None)
@given(batch=st.integers(1, 3), tokens=st.integers(1, 4), rounds=st.integers(1, 3), seed=st.integers(0, 99))
def test_piece_by_piece_a_decoder_gives_what_the_whole_text_gives(
    batch: int, tokens: int, rounds: int, seed: int
) -> None:
    graph = decoder(SMALL_GPT, "gpt", Steps(batch, tokens, capacity=12), seed)
    ids = np.random.default_rng(seed).integers(0, 50, (batch, tokens * rounds))
    wanted = decoded(graph, ids, SMALL_GPT)
    planned, counted = engine.compile(graph), engine.compile(graph, mode="dynamic")
    for part in pieces(ids.shape[1], tokens):
        feeds = {"ids": ids[:, part], "position": np.array([part.start])}
        outputs = planned.run(feeds)
        assert close(outputs["y"], wanted[:, part.stop - 1])
        assert_same(counted.run(feeds), outputs)


def test_a_decoder_starts_a_second_text_with_no_trace_of_the_first() -> None:
    exe = engine.compile(decoder(SMALL_GPT, "gpt", Steps(capacity=8)))
    one, other = np.random.default_rng(0).integers(0, 50, (2, 8, 1, 1))
    fresh = [exe(ids=t, position=np.array([i]))["y"].copy() for i, t in enumerate(one)]
    for i, t in enumerate(other):
        exe(ids=t, position=np.array([i]))
    again = [exe(ids=t, position=np.array([i]))["y"].copy() for i, t in enumerate(one)]
    assert np.array_equal(fresh, again)


def test_a_decoder_refuses_what_does_not_fit_into_its_memory() -> None:
    exe = engine.compile(decoder(SMALL_GPT, "gpt", Steps(capacity=8)))
    with pytest.raises(KernelError, match=r"index 8 is outside \[-8, 8\)"):
        exe(ids=np.zeros((1, 1), np.int64), position=np.array([8]))


def test_keys_and_values_are_written_in_place() -> None:
    steps = Steps(batch=2, capacity=12)
    caches = 2 * SMALL_GPT.layers * steps.capacity * steps.batch * SMALL_GPT.width * 4
    graph = decoder(SMALL_GPT, "gpt", steps)
    assert sum(var.spec.nbytes for var in graph.parameters) == caches
    assert len(graph.updates) == 2 * SMALL_GPT.layers
    assert not any(op.schema.name == "assign" for op in graph.operators)
    assert engine.compile(graph).arena_bytes < 1.5 * caches


@pytest.mark.parametrize("layers", [1, 3])
def test_the_peak_of_a_dynamic_run_is_the_predicted_one(layers: int) -> None:
    graph = decoder(GptSize(layers, 24, 3, vocabulary=50, positions=12), "gpt", Steps(capacity=8))
    counted = engine.compile(graph, mode="dynamic")
    counted(ids=np.zeros((1, 1), np.int64), position=np.zeros(1, np.int64))
    assert isinstance(counted.executor, DynamicExecutor)
    assert counted.executor.peak_bytes == engine.make_plan(graph).report().dynamic_peak_bytes


@settings(max_examples=10, deadline=None)
@given(lengths=st.lists(st.integers(1, 7), min_size=1, max_size=3), seed=st.integers(0, 99))
def test_an_lstm_classifier_is_what_numpy_computes(lengths: list[int], seed: int) -> None:
    graph = lstm_classifier(len(lengths), 7, seed, vocabulary=30, width=5, hidden=4, classes=3)
    ids = np.random.default_rng(seed).integers(0, 30, (len(lengths), 7))
    arrays = ByHand.of(graph).arrays
    parts = [arrays[f"lstm_0/{n}"] for n in ("weight", "recurrent", "bias")]
    rows = [
        [lstm_last(arrays["token/weight"][text[:length]][:: 1 - 2 * d], *(p[d] for p in parts)) for d in (0, 1)]
        for text, length in zip(ids, lengths, strict=True)
    ]
    wanted: Array = np.reshape(rows, (len(lengths), 8)) @ arrays["gemm_0/weight"].T + arrays["gemm_0/bias"]
    outputs = run_modes(graph, {"ids": ids, "lengths": np.array(lengths, np.int32)})
    assert close(outputs["y"], wanted)


@pytest.mark.slow
@pytest.mark.parametrize("name", TEXT_NETWORKS)
def test_text_networks_of_full_size_run_as_planned(name: str) -> None:
    graph = TEXT_NETWORKS[name]()
    feeds = {n: np.ones(v.shape, v.dtype) for n, v in graph.inputs.items()}
    assert 0.01 < run_modes(graph, feeds)["y"].std() < 50
