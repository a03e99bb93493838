"""What picks, joins and encodes features, against onnxruntime."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
from engine.text.errors import KernelError, ModelError, UnsupportedError
from tests.helpers.onnx.contributed import all_runs, check
from tests.helpers.onnx.ml_models import ml_model
from tests.helpers.onnx.small_models import run_onnxruntime

FEW = settings(max_examples=10, deadline=None)


@pytest.mark.parametrize("shape", [(5,), (2, 5), (2, 3, 5)])
@pytest.mark.parametrize("places", [[3], [0, 4, 4], [[1, 2]]])
def test_array_feature_extractor(shape: tuple[int, ...], places: Any) -> None:
    x = np.arange(np.prod(shape)).reshape(shape).astype(np.float32)
    check(*ml_model("ArrayFeatureExtractor", [x, np.array(places)]))


def test_feature_vectorizer() -> None:
    arrays: list[Any] = [np.arange(6).reshape(2, 3), np.ones((2, 1), np.float32), np.zeros((2, 2), np.float64)]
    proto, feeds = ml_model("FeatureVectorizer", arrays, inputdimensions=[3, 1, 2])
    wanted = np.concatenate(arrays, axis=1).astype(np.float32)
    for (y,) in all_runs(proto, feeds):
        assert y.dtype == np.float32
        assert (y == wanted).all()
    with pytest.raises(ModelError, match="input 1 has 4 columns; it has 1"):
        engine.load_onnx(ml_model("FeatureVectorizer", arrays, inputdimensions=[3, 4, 2])[0])


@pytest.mark.slow
@FEW
@given(st.lists(st.integers(-3, 3), min_size=1, max_size=5, unique=True), st.sampled_from(["int64", "float32"]))
def test_one_hot_encoder(categories: list[int], dtype: str) -> None:
    x = np.array([[-2.0, 0.0, 1.75], [3.0, -3.0, 2.0]]).astype(dtype)
    check(*ml_model("OneHotEncoder", [x], dims={0: ("n", 3)}, cats_int64s=categories))


def test_one_hot_encoder_refuses_what_is_no_category() -> None:
    proto, feeds = ml_model("OneHotEncoder", [np.array([2, 5, 2])], cats_int64s=[5, 2], zeros=0)
    check(proto, feeds)
    with pytest.raises(KernelError, match=r"OneHotEncoder.* index 2 is outside"):
        engine.compile(engine.load_onnx(proto)).run({"i0": np.array([2, 5, 4])})


@FEW
@given(
    st.lists(st.tuples(st.integers(-3, 3), st.integers(-9, 9)), min_size=1, max_size=6), st.booleans(), st.booleans()
)
def test_label_encoder(pairs: list[tuple[int, int]], from_floats: bool, to_floats: bool) -> None:
    x = np.array([[-3, -1, 0], [1, 2, 3]]).astype(np.float32 if from_floats else np.int64)
    kinds = [("floats", float) if flag else ("int64s", int) for flag in (from_floats, to_floats)]
    attrs: dict[str, Any] = {
        f"{name}_{kind}": [cast(pair[i]) for pair in pairs]
        for i, (name, (kind, cast)) in enumerate(zip(("keys", "values"), kinds, strict=True))
    }
    proto, feeds = ml_model("LabelEncoder", [x], **attrs)
    values: dict[Any, Any] = dict(pairs)
    wanted = np.array([[values.get(int(n), -0.0 if to_floats else -1) for n in row] for row in x])
    for (y,) in all_runs(proto, feeds):
        assert y.dtype == (np.float32 if to_floats else np.int64)
        np.testing.assert_array_equal(y, wanted)
    if len(values) == len(pairs):
        check(proto, feeds)


def test_label_encoder_with_tensors_and_nan() -> None:
    x = np.array([1.5, np.nan, 2.0, 7.0])
    proto, feeds = ml_model(
        "LabelEncoder", [x], version=4, keys_tensor=np.array([1.5, np.nan, 2.0]),
        values_tensor=np.array([3, 4, 5], np.int16), default_tensor=np.array([9], np.int16),
    )  # fmt: skip
    for (y,) in all_runs(proto, feeds):
        assert y.dtype == np.int16
        assert y.tolist() == [3, 4, 5, 9]


@pytest.mark.parametrize(
    ("version", "keys", "ours", "theirs"),
    [
        (2, [1.5, np.nan, 2.0], [3, 4, 5, -1], [3, -1, 5, -1]),
        (4, [1.5, np.nan, 2.0], [3, 4, 5, -1], [3, 4, 5, -1]),
        (2, [1.5, 2.0, 2.0], [3, -1, 5, -1], [3, -1, 4, -1]),
        (4, [1.5, np.nan, np.nan], [3, 5, -1, -1], [3, 4, -1, -1]),
    ],
)
def test_keys_that_are_nan_or_equal(version: int, keys: list[float], ours: list[int], theirs: list[int]) -> None:
    x = np.array([1.5, np.nan, 2.0, 7.0], np.float32)
    proto, feeds = ml_model("LabelEncoder", [x], version=version, keys_floats=keys, values_int64s=[3, 4, 5])
    for (y,) in all_runs(proto, feeds):
        assert y.tolist() == ours
    (y,) = run_onnxruntime(proto, feeds)
    assert y.tolist() == theirs


def test_texts_are_refused_with_what_to_do() -> None:
    x = np.zeros(3, np.int64)
    for op_type, attrs in (
        ("OneHotEncoder", {"cats_strings": ["a"]}),
        ("LabelEncoder", {"keys_strings": ["a"], "values_int64s": [1]}),
        ("LabelEncoder", {"keys_int64s": [1], "values_strings": ["a"]}),
    ):
        with pytest.raises(UnsupportedError, match=rf"\({op_type}\): .*texts are not supported; encode them"):
            engine.load_onnx(ml_model(op_type, [x], **attrs)[0])


def test_a_zip_map_hands_on_its_columns() -> None:
    x = np.array([[0.25, 0.75], [0.5, 0.5]], np.float32)
    proto, feeds = ml_model("ZipMap", [x], classlabels_int64s=[0, 1])
    assert all((y == x).all() for (y,) in all_runs(proto, feeds))
