"""Einsum against the sum written out, label by label."""

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
import ops
from ops.products.einsum import EINSUM
from ops.schema.schema import evaluate
from ops.tensor.errors import OpError
from ops.tensor.spec import Array
from tests.helpers.onnx.onnxruntime_node import onnxruntime_node
from tests.helpers.ops.kernel_checks import check_kernels, check_no_allocation, check_results, kernels, sign

Case = tuple[str, list[list[str]], list[str], list[Array], dict[str, int]]
"""The equation, labels of its terms and of its result, operands, and how long each label is."""
CLOSE = {"float16": 1e-2, "float32": 1e-4, "float64": 1e-12, "int32": 0.0, "uint8": 0.0}
SIZES = {"a": 2, "b": 3, "c": 1, "d": 4, "E": 2}
LENGTHS = SIZES | {".1": 3, ".2": 2}
"""The axes of an ellipsis have numbers, from the last one on."""


def written_out(terms: list[list[str]], result: list[str], arrays: list[Array], sizes: dict[str, int]) -> Array:
    """Adds every product of elements where it belongs; an axis of length 1 serves all values of its label."""
    labels = list(sizes)
    y = np.zeros([sizes[n] for n in result], np.float64 if arrays[0].dtype.kind == "f" else np.int64)
    for values in product(*(range(sizes[n]) for n in labels)):
        at = dict(zip(labels, values, strict=True))
        places = (tuple(at[n] % a.shape[i] for i, n in enumerate(t)) for t, a in zip(terms, arrays, strict=True))
        y[tuple(at[n] for n in result)] += math.prod(a[p].item() for a, p in zip(arrays, places, strict=True))
    return y


@st.composite
def equations(draw: Any) -> Case:
    """Draws terms of some labels, some with an ellipsis of up to two axes; some axes of length 1 broadcast."""
    dtype, rng = draw(st.sampled_from(list(CLOSE))), np.random.default_rng(draw(st.integers(0, 99)))
    texts, terms, arrays = [], [], []
    for _ in range(draw(st.integers(1, 3))):
        names = draw(st.lists(st.sampled_from(list(SIZES)), max_size=3))
        dots = draw(st.sampled_from([None, None, 0, 1, 2])) if len(names) < 3 else None
        at = draw(st.integers(0, len(names)))
        inside = [] if dots is None else [f".{i}" for i in range(dots, 0, -1)]
        labels = [*names[:at], *inside, *names[at:]]
        texts.append("".join(names[:at]) + ("" if dots is None else "...") + "".join(names[at:]))
        once = [labels.count(n) == 1 and draw(st.integers(0, 5)) == 0 for n in labels]
        lengths = [1 if o else LENGTHS[n] for n, o in zip(labels, once, strict=True)]
        terms.append(labels)
        low, high = (1, 4) if dtype == "uint8" else (-3, 4)
        arrays.append(rng.integers(low, high, lengths).astype(dtype))
    sizes: dict[str, int] = {}
    for labels, array in zip(terms, arrays, strict=True):
        for n, size in zip(labels, array.shape, strict=True):
            sizes[n] = max(sizes.get(n, 1), size)
    dotted = sorted((n for n in sizes if n[0] == "."), reverse=True)
    letters = [n for n in sizes if n[0] != "."]
    text = ",".join(texts)
    if draw(st.booleans()):
        every = [n for labels in terms for n in labels]
        return text, terms, [*dotted, *sorted(n for n in letters if every.count(n) == 1)], arrays, sizes
    kept = draw(st.permutations([n for n in letters if draw(st.booleans())]))
    at, with_dots = draw(st.integers(0, len(kept))), bool(dotted) or draw(st.booleans())
    text = f"{text} -> {''.join(kept[:at])}{'...' if with_dots else ''}{''.join(kept[at:])}"
    return text, terms, [*kept[:at], *dotted, *kept[at:]], arrays, sizes


@settings(max_examples=120, deadline=None)
@given(equations())
def test_einsum_of_any_equation_is_the_sum_of_its_products(
    case: tuple[str, list[list[str]], list[str], list[Array], Any],
) -> None:
    text, terms, result, arrays, sizes = case
    dtype = arrays[0].dtype
    close = CLOSE[dtype.name]
    wanted = written_out(terms, result, arrays, sizes).astype(dtype)
    check_kernels(EINSUM, arrays, [wanted], rtol=close, atol=close, equation=text)


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        ("bij,bjk->bik", [(4, 50, 80), (4, 80, 60)]),
        ("bhid,bhjd->bhij", [(2, 3, 70, 40), (2, 3, 50, 40)]),
        ("bhij,bjhd->bihd", [(2, 3, 70, 50), (2, 50, 3, 40)]),
        ("bihd,hdo->bio", [(2, 90, 4, 30), (4, 30, 50)]),
        ("ij,ij->i", [(200, 300), (200, 300)]),
        ("ijk->kj", [(30, 40, 50)]),
        ("iji->ji", [(40, 30, 40)]),
        ("ij,jk,kl->il", [(200, 30), (30, 200), (200, 20)]),
        ("...ij,...jk->...ki", [(3, 5, 40, 50), (3, 5, 50, 60)]),
        ("i,j->ij", [(300,), (200,)]),
        ("bi,bi->b", [(200, 300), (200, 300)]),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
def test_large_einsum_is_right_and_allocates_nothing(text: str, shapes: list[tuple[int, ...]], dtype: str) -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.integers(-2, 3, s).astype(dtype) for s in shapes]
    wanted = np.einsum(text, *(a.astype(np.float64) for a in arrays)).astype(dtype)
    check_results(EINSUM, arrays, [wanted], rtol=1e-3, equation=text)
    if dtype == "float32":
        check_results(EINSUM, arrays, onnxruntime_node("Einsum", arrays, equation=text), rtol=1e-5, equation=text)
    if max(a.nbytes for a in arrays) >= 128 << 10:
        check_no_allocation(EINSUM, arrays, equation=text)


def test_einsum_matrix_products_need_no_workspace() -> None:
    for text in ("bij,bjk->bik", "bij,bkj->bik", "bji,bjk->bik", "bij,bkj->bki", "bhij,bjhd->bihd", "ij,ij->"):
        left, right = text.split("->", maxsplit=1)[0].split(",")
        arrays = [np.ones([5] * len(t), np.float32) for t in (left, right)]
        signature = sign(EINSUM, arrays, {"equation": text})
        (kernel,) = kernels(EINSUM, signature)
        assert kernel.workspace(signature) == 0, text


def test_a_chain_begins_where_the_product_is_smallest() -> None:
    arrays = [np.ones(s, np.float32) for s in ((100, 1000), (1000, 100), (100, 2))]
    signature = sign(EINSUM, arrays, {"equation": "ij,jk,kl->il"})
    assert EINSUM.cost(signature).flops == 2 * 1000 * 100 * 2 * 2


def test_einsum_agrees_in_all_modes() -> None:
    graph = engine.Graph("einsum")
    q, k, v = (graph.input(n, (2, 6, 3, 4)) for n in "qkv")
    scores = ops.einsum("bihd,bjhd->bhij", q, k)
    graph.output(ops.einsum("bhij,bjhd->bihd", ops.softmax(scores), v), "y")
    graph.output(ops.einsum("bhii->bh", scores), "traces")
    rng = np.random.default_rng(0)
    feeds = {n: rng.standard_normal((2, 6, 3, 4)).astype(np.float32) for n in "qkv"}
    ours, watched = (
        engine.compile(graph, optimise=0).run(feeds),
        engine.compile(graph, debug="poison", optimise=0).run(feeds),
    )
    assert all(np.array_equal(ours[n], watched[n]) for n in ours)
    wanted = np.einsum("bihd,bihd->bh", feeds["q"], feeds["k"])
    np.testing.assert_allclose(ours["traces"], wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("text", "shapes", "message"),
    [
        ("ij,jk", [(2, 3)], "1 operands for the 2 terms"),
        ("ij->i", [(2, 3, 4)], "does not fit 3 dimensions"),
        ("ij...->i", [(2,)], "does not fit 1 dimensions"),
        ("ij,jk->ik", [(2, 3), (4, 5)], "label 'j' is 3 and 4"),
        ("ij->k", [(2, 3)], "names 'k', which no operand has"),
        ("ij->ii", [(2, 3)], "names a label twice"),
        ("i1->i", [(2, 3)], "terms have letters"),
        ("i......->i", [(2, 3)], "terms have letters"),
        ("i->i->i", [(2,)], "terms have letters"),
    ],
)
def test_einsum_refuses_operands_that_do_not_fit(text: str, shapes: list[tuple[int, ...]], message: str) -> None:
    with pytest.raises(OpError, match=message):
        evaluate(EINSUM, *(np.ones(s, np.float32) for s in shapes), equation=text)


def test_einsum_refuses_operands_of_two_types() -> None:
    with pytest.raises(OpError, match="one element type, not float32, float64"):
        evaluate(EINSUM, np.ones(3, np.float32), np.ones(3), equation="i,i")
