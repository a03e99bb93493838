"""Another engine's opinion of the same run. The one door onto onnxruntime, which is optional."""

from collections.abc import Callable, Mapping
from typing import Any

from attrs import frozen

from engine.system.arrays import largest_difference
from engine.system.threads import AS_THEY_ARE
from engine.text.errors import EngineError
from ops.tensor.spec import Array, spec_of

Runner = Callable[[], dict[str, Array]]
TOLERANCE = 1e-4
"""The largest difference of outputs over their largest value that is no error in float32."""


@frozen
class OracleComparison:
    """The outputs of a run beside those of another engine.

    `difference` is the largest absolute difference over the largest value. It is infinite where `mismatch` names an
    output of another shape.
    """

    oracle: str
    difference: float
    tolerance: float
    mismatch: str = ""

    @property
    def outputs_agree(self) -> bool:
        """True if no output differs by more than the tolerance."""
        return self.difference <= self.tolerance

    def to_json(self) -> dict[str, Any]:
        """Returns the keys that `compare --oracle` adds."""
        return {
            "oracle": self.oracle,
            "oracle_difference": self.difference,
            "oracle_tolerance": self.tolerance,
            "oracle_mismatch": self.mismatch,
        }

    def text(self) -> str:
        """Returns a line."""
        if self.mismatch:
            return f"{self.oracle} DIFFERS: {self.mismatch}\n"
        verdict = "of at most" if self.outputs_agree else "MORE than"
        return (
            f"largest difference from {self.oracle}: {self.difference:.1e} of the largest value, {verdict} "
            f"{self.tolerance:.1e}\n"
        )


def compare_with_oracle(
    ours: Mapping[str, Array], theirs: Mapping[str, Array], oracle: str, tolerance: float
) -> OracleComparison:
    """Compares shapes first, and then values."""
    for name, array in ours.items():
        if array.shape != theirs[name].shape:
            mismatch = f"output {name!r} is {spec_of(array)} here and {spec_of(theirs[name])} there"
            return OracleComparison(oracle, float("inf"), tolerance, mismatch)
    return OracleComparison(oracle, largest_difference(ours, theirs), tolerance)


def onnxruntime_runner(model: Any, feeds: Mapping[str, Array], threads: int = AS_THEY_ARE) -> Runner:
    """Returns a function that runs a model (path or onnx.ModelProto) on `threads` threads. Raises EngineError."""
    try:
        import onnxruntime  # noqa: PLC0415 (heavy, optional)
    except ImportError as error:
        raise EngineError("onnxruntime is not installed: pip install -e '.[bench]'") from error
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


class _Foreign:
    """Turns whatever onnxruntime raises into an EngineError of one line."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, Exception):
            first = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise EngineError(f"onnxruntime: {first}") from error
