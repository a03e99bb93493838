"""Linear models and scalings of `ai.onnx.ml`, against onnxruntime."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
from engine.text.errors import ModelError, UnsupportedError
from tests.helpers.onnx.contributed import all_runs, check
from tests.helpers.onnx.ml_models import LABEL_AND_SCORES, ml_model
from tests.helpers.ops.sample_arrays import SEEDS

FEW = settings(max_examples=10, deadline=None)
TRANSFORMS = st.sampled_from(["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"])
TYPES = st.sampled_from(["float32", "float64", "int64", "int32"])


def _numbers(seed: int, *shape: int) -> Any:
    return (np.random.default_rng(seed).integers(-8, 9, shape) / 4).astype(np.float32)


@FEW
@given(SEEDS, st.integers(2, 4), TRANSFORMS.filter(lambda t: t != "PROBIT"), TYPES)
def test_linear_classifiers(seed: int, classes: int, transform: str, dtype: str) -> None:
    x, attrs = (_numbers(seed, 6, 3) * 4).astype(dtype), {"coefficients": _numbers(seed + 1, classes * 3).tolist()}
    attrs |= {"intercepts": [0.3 + 0.01 * i for i in range(classes)], "classlabels_ints": [9, 4, 7, 1][:classes]}
    check(*ml_model("LinearClassifier", [x], LABEL_AND_SCORES, post_transform=transform, **attrs))


@FEW
@given(SEEDS, TRANSFORMS.filter(lambda t: t != "PROBIT"))
def test_linear_classifiers_with_one_score_for_two_classes(seed: int, transform: str) -> None:
    x, coefficients = _numbers(seed, 6, 3), _numbers(seed + 1, 3).tolist()
    attrs: dict[str, Any] = {"coefficients": coefficients, "intercepts": [0.3], "classlabels_ints": [9, 4]}
    check(*ml_model("LinearClassifier", [x], LABEL_AND_SCORES, dims={0: ("n", 3)}, post_transform=transform, **attrs))


@FEW
@given(SEEDS, st.integers(1, 3), st.sampled_from(["NONE", "SOFTMAX", "LOGISTIC"]), st.booleans())
def test_linear_regressors(seed: int, targets: int, transform: str, based: bool) -> None:
    attrs: dict[str, Any] = {"coefficients": _numbers(seed + 1, targets * 3).tolist(), "targets": targets}
    attrs |= {"intercepts": [0.5] * targets} if based else {}
    check(*ml_model("LinearRegressor", [_numbers(seed, 5, 3)], post_transform=transform, **attrs))


@FEW
@given(SEEDS, st.sampled_from(["MAX", "L1", "L2"]), TYPES)
def test_normalizers(seed: int, norm: str, dtype: str) -> None:
    x = (_numbers(seed, 6, 3) * 4).astype(dtype)
    x[1] = 0
    check(*ml_model("Normalizer", [x], norm=norm))


@FEW
@given(SEEDS, TYPES, st.booleans())
def test_scalers(seed: int, dtype: str, is_common: bool) -> None:
    offset, scale = _numbers(seed, 2, 1 if is_common else 3).tolist()
    x = (_numbers(seed + 1, 4, 3) * 4).astype(dtype)
    for width in (3, "width"):
        check(*ml_model("Scaler", [x], dims={0: ("n", width)}, offset=offset, scale=scale))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32"])
@pytest.mark.parametrize("count", [1, 3])
def test_imputers(dtype: str, count: int) -> None:
    x, values = np.array([[0, 1, 2], [3, 0, 0]]).astype(dtype), [7.0, 8.0, 9.0][:count]
    if dtype.startswith("f"):
        x[1, 1] = np.nan
        attrs: list[dict[str, Any]] = [
            {"imputed_value_floats": values, "replaced_value_float": number} for number in (0.0, float("nan"))
        ]
    else:
        attrs = [{"imputed_value_int64s": list(map(int, values)), "replaced_value_int64": 0}]
    for given_ in attrs:
        proto, feeds = ml_model("Imputer", [x], **given_)
        if dtype in ("float32", "int64"):
            check(proto, feeds)
        replaced = np.isnan(x) if "nan" in str(given_) else x == 0
        for (y,) in all_runs(proto, feeds):
            np.testing.assert_array_equal(y, np.where(replaced, values, x).astype(dtype))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_binarizers(dtype: str) -> None:
    x = np.array([[-1, 0, 1, 2]]).astype(dtype)
    proto, feeds = ml_model("Binarizer", [x], threshold=1.0)
    for (y,) in all_runs(proto, feeds):
        assert y.dtype == x.dtype
        assert y.tolist() == [[0, 0, 0, 1]]


@pytest.mark.parametrize(
    ("op_type", "attrs", "message"),
    [
        ("LinearRegressor", {"coefficients": [1.0, 2.0], "targets": 3}, "2 coefficients are not as many for each of 3"),
        ("LinearRegressor", {"coefficients": [1.0, 2.0], "targets": 0}, "for each of 0 targets"),
        ("LinearRegressor", {"coefficients": [1.0, 2.0], "intercepts": [1.0, 2.0]}, "2 intercepts for 1 targets"),
        ("LinearRegressor", {"coefficients": [1.0, 2.0], "post_transform": "X"}, "post_transform is 'X'"),
        ("LinearClassifier", {"coefficients": [1.0, 2.0], "intercepts": [1.0]}, "the classes are named by"),
        ("Scaler", {"scale": [1.0, 2.0, 3.0]}, "scale has 3 numbers; x has 2 features"),
        ("Normalizer", {"norm": "L3"}, "norm is 'L3'"),
        ("Imputer", {"imputed_value_int64s": [1]}, "attribute 'imputed_value_floats' is missing"),
    ],
)
def test_wrong_attributes_are_one_clear_error(op_type: str, attrs: dict[str, Any], message: str) -> None:
    outputs = LABEL_AND_SCORES if op_type == "LinearClassifier" else ("y",)
    with pytest.raises((ModelError, UnsupportedError), match=rf"\({op_type}\): .*{message}"):
        engine.load_onnx(ml_model(op_type, [np.zeros((2, 2), np.float32)], outputs, **attrs)[0])


def test_imputed_integers_that_do_not_fit_are_refused() -> None:
    proto, _ = ml_model("Imputer", [np.zeros((2, 2), np.int32)], imputed_value_int64s=[2**40], replaced_value_int64=0)
    with pytest.raises(ModelError, match="numbers that int32 cannot hold"):
        engine.load_onnx(proto)
