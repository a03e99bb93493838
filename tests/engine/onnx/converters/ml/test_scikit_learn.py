"""Models and pipelines of scikit-learn, as skl2onnx exports them, against onnxruntime and scikit-learn."""

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Binarizer, MinMaxScaler, Normalizer, OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from tests.helpers.onnx.contributed import all_runs, check

skl2onnx = pytest.importorskip("skl2onnx", reason="skl2onnx, which exports models of scikit-learn, is not installed")
data_types = pytest.importorskip("skl2onnx.common.data_types")

IRIS, DIABETES = load_iris(return_X_y=True), load_diabetes(return_X_y=True)
TWO = IRIS[0][50:], (IRIS[1][50:] > 1).astype(np.int64) * 3
"""Two of the three kinds, labelled 0 and 3."""
SCALED = StandardScaler()
MODELS: dict[str, tuple[Any, Any]] = {
    "scaled boosted trees": (make_pipeline(SCALED, GradientBoostingClassifier(n_estimators=20)), IRIS),
    "boosted trees of two classes": (GradientBoostingClassifier(n_estimators=20), TWO),
    "scaled boosted regression": (
        make_pipeline(SCALED, GradientBoostingRegressor(n_estimators=20)),
        DIABETES,
    ),
    "boosted histograms": (HistGradientBoostingRegressor(max_iter=20), DIABETES),
    "random forest": (RandomForestClassifier(n_estimators=10, max_depth=5, random_state=0), IRIS),
    "random forest of two classes": (RandomForestClassifier(n_estimators=10, max_depth=5, random_state=0), TWO),
    "decision tree": (DecisionTreeClassifier(max_depth=4, random_state=0), IRIS),
    "logistic regression": (make_pipeline(MinMaxScaler(), LogisticRegression()), IRIS),
    "logistic regression of two classes": (LogisticRegression(), TWO),
    "linear regression": (make_pipeline(SimpleImputer(), Normalizer(), LinearRegression()), DIABETES),
    "perceptron": (make_pipeline(SCALED, MLPClassifier(hidden_layer_sizes=(8,), max_iter=50, random_state=0)), IRIS),
    "perceptron for numbers": (MLPRegressor(hidden_layer_sizes=(8,), max_iter=20, random_state=0), DIABETES),
    "binary features": (make_pipeline(Binarizer(threshold=2.5), LogisticRegression()), IRIS),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.filterwarnings("ignore")
def test_a_model_of_scikit_learn(name: str) -> None:
    model, (x, y) = MODELS[name]
    model.fit(x, y)
    kind = [("x", data_types.FloatTensorType([None, x.shape[1]]))]
    options = {id(model): {"zipmap": False}} if hasattr(model, "predict_proba") else None
    proto = skl2onnx.convert_sklearn(model, initial_types=kind, options=options, target_opset={"": 17, "ai.onnx.ml": 3})
    for rows in (1, len(x)):
        feed = x[:rows].astype(np.float32)
        check(proto, {"x": feed}, atol=1e-4)
        for outputs in all_runs(proto, {"x": feed})[:1]:
            assert np.mean(np.isclose(outputs[0].reshape(-1), model.predict(feed), rtol=1e-3)) > 0.95


@pytest.mark.filterwarnings("ignore")
def test_columns_of_categories() -> None:
    x = np.random.default_rng(0).integers(0, 4, (40, 2))
    model = make_pipeline(OneHotEncoder(), LogisticRegression()).fit(x, x.sum(1) > 3)
    kind = [("x", data_types.Int64TensorType([None, 2]))]
    options = {id(model): {"zipmap": False}}
    proto = skl2onnx.convert_sklearn(model, initial_types=kind, options=options, target_opset={"": 17, "ai.onnx.ml": 3})
    check(proto, {"x": x}, atol=1e-4)


@pytest.mark.filterwarnings("ignore")
def test_a_classifier_as_it_is_exported_by_default_gives_labels_and_a_matrix() -> None:
    names = np.array(["setosa", "versicolor", "virginica"])
    model = LogisticRegression().fit(IRIS[0], names[IRIS[1]])
    kind = [("x", data_types.FloatTensorType([None, 4]))]
    proto = skl2onnx.convert_sklearn(model, initial_types=kind, target_opset={"": 17, "ai.onnx.ml": 3})
    x = IRIS[0].astype(np.float32)
    for label, probabilities in all_runs(proto, {"x": x}):
        assert (names[label] == model.predict(x)).all()
        np.testing.assert_allclose(probabilities, model.predict_proba(x), atol=1e-5)
