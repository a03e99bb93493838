"""Another engine's opinion of the same run. The one door onto onnxruntime, which is optional."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from engine.system.threads import AS_THEY_ARE
from engine.text.errors import EngineError
from ops.tensor.spec import Array

Runner = Callable[[], dict[str, Array]]


def onnxruntime_runner(model: Any, feeds: Mapping[str, Array], threads: int = AS_THEY_ARE) -> Runner:
    """Returns a function that runs a model (path or onnx.ModelProto) on so many threads. Raises EngineError."""
    try:
        import onnxruntime  # noqa: PLC0415 (heavy, optional)
    except ImportError as error:
        raise EngineError("onnxruntime is not installed: pip install 'arenaplan[bench]'") from error
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = options.inter_op_num_threads = threads
    source = model.SerializeToString() if hasattr(model, "SerializeToString") else str(model)
    with _Foreign():
        session = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
        wanted = {i.name: feeds[i.name] for i in session.get_inputs() if i.name in feeds}
        names = [o.name for o in session.get_outputs()]

    def run() -> dict[str, Array]:
        with _Foreign():
            return dict(zip(names, session.run(names, wanted), strict=True))

    return run


def largest_difference(ours: Mapping[str, Array], theirs: Mapping[str, Array]) -> float:
    """Returns the largest absolute difference of all outputs over their largest value; infinite where NaNs differ."""
    return max((_difference(ours[name], theirs[name]) for name in ours), default=0.0)


def _difference(ours: Array, theirs: Array) -> float:
    a, b = ours.astype(np.float64), theirs.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    if same.all():
        return 0.0
    with np.errstate(invalid="ignore"):
        apart = np.abs(a - b)[~same]
    scale = float(np.abs(b[np.isfinite(b)]).max(initial=0.0)) or 1.0
    return float(np.nan_to_num(apart, nan=np.inf).max()) / scale


class _Foreign:
    """Turns whatever onnxruntime raises into an EngineError of one line."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, Exception):
            first = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise EngineError(f"onnxruntime: {first}") from error
