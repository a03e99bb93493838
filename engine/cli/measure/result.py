"""What fresh processes measured of a network, beside what its plan predicted, and why the two differ."""

import statistics
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import asdict, fields, frozen

from allocator.derive.refcount import refcount_peak
from engine.cli.measure.processes import GROUP, MODES, ModeReadings, in_turn
from engine.executor.arenas import file_bytes
from engine.planning.placed import PlacedPlan
from engine.system.process_memory import PAGE, whole_pages
from engine.text.screen import UNBOUNDED
from engine.text.tables import in_columns, joined
from engine.text.units import format_bytes

TOLERANCE = 0.05
"""The share of a prediction beyond which a difference is shown with its reason."""
SMALL_BYTES = 128 * 1024
"""glibc's M_MMAP_THRESHOLD (man 3 mallopt): smaller blocks may lie on pages that the heap holds anyway."""
_UNTOUCHED = "some pages were never touched: a workspace or a padding that the kernels did not use in full"
_LEFT = "pages of files were never touched, or left the memory again; what must stay are the anonymous bytes"
_UNKNOWN = "-"
_DASH = f"{_UNKNOWN}: neither this system nor memory-profiler (pip install -e '.[measure]') tells"


@frozen
class Prediction:
    """Bytes above what the process held before its first run: at the peak, behind the run, and in numpy's arrays.

    Static: the pages of the arena and of the copies of the outputs that the caller gets. Dynamic: reference counting.
    `anonymous_bytes` are those of the peak that are no pages of files.
    """

    peak_bytes: int
    held_bytes: int
    numpy_bytes: int
    anonymous_bytes: int


@frozen(eq=False)
class Mode:
    """Predicted and measured needs of one mode. Faults and seconds are medians over all processes.

    `difference` is measured peak / predicted peak - 1, by the system's peak or else by sampling. `reason` is empty
    where it is within the tolerance. The bytes of the process are its whole resident set. The anonymous ones are no
    pages of files, such as those of memories with a folder. None: unknown here.

    `failed` says why the mode did not run within the limit; then nothing is measured.
    """

    predicted_bytes: int
    peak_bytes: int | None
    difference: float | None
    reason: str
    sampled_bytes: int | None
    samples: int
    held_bytes: int | None
    huge_bytes: int | None
    predicted_numpy_bytes: int
    numpy_bytes: int | None
    traced_bytes: int | None
    first_minor_faults: float | None
    first_major_faults: float | None
    minor_faults: float | None
    major_faults: float | None
    first_seconds: float | None
    seconds: float | None
    seconds_min: float | None
    predicted_process_bytes: int | None
    process_bytes: int | None
    process_difference: float | None
    predicted_anonymous_bytes: int
    anonymous_bytes: int | None
    anonymous_difference: float | None
    failed: str = ""


@frozen(eq=False)
class Measured:
    """Both modes. `noise_bytes`: below it, no difference means anything.

    Runs got at most `limit_bytes`, 0 for no limit, which `limited_by` kept: a control group, or RLIMIT_DATA.
    """

    model: str
    runs: int
    pairs: int
    page_bytes: int
    noise_bytes: int
    outputs_equal: bool
    static: Mode
    dynamic: Mode
    limit_bytes: int = 0
    limited_by: str = ""

    def to_json(self) -> dict[str, Any]:
        """Returns plain data with stable keys."""
        return asdict(self)

    def text(self, width: int = UNBOUNDED) -> str:
        """Returns a table, and a line for each prediction that is off."""
        verdict = "equal to the bit" if self.outputs_equal else "DIFFERENT"
        processes = "process" if self.pairs == 1 else "processes"
        modes = {name: getattr(self, name) for name in MODES}
        head = (
            f"{self.model}: {self.pairs} {processes} of each mode in turn, {self.runs} runs after a first one in each; "
            f"outputs {verdict}"
        )
        rows = [("above the baseline", *MODES), *(_row(name, tell, modes.values()) for name, tell in _ROWS)]
        reasons = [_off(name, mode) for name, mode in modes.items() if mode.reason]
        ran = [column for column, mode in enumerate(modes.values(), 1) if not mode.failed]
        is_unknown = any(row[column] == _UNKNOWN for row in rows for column in ran)
        dash = [_DASH] if is_unknown else []
        floor = f"noise floor {format_bytes(self.noise_bytes)}; pages of {format_bytes(self.page_bytes)}"
        limit = [self._limit()] if self.limit_bytes else []
        failed = [
            f"{name}: does not run within the limit: the process {m.failed}" for name, m in modes.items() if m.failed
        ]
        return joined((head, *limit, *in_columns(rows, {1, 2}, width), floor, *dash, *reasons, *failed))

    def _limit(self) -> str:
        why = "" if self.limited_by == GROUP else ", as no control group can be made here"
        return f"runs get at most {format_bytes(self.limit_bytes)} beyond the baseline, by {self.limited_by}{why}"


def measure_plan(plan: PlacedPlan, arguments: Namespace, runs: int, pairs: int) -> Measured:
    """Runs both modes in processes of their own. Raises MeasureError."""
    readings, limited_by = in_turn(arguments, runs, pairs)
    noise = max([SMALL_BYTES, *(read.counted.get("noise_bytes") or 0 for read in readings.values())])
    digests = set().union(*(read.digests for read in readings.values()))
    results = {mode: _mode(predict(plan, mode), readings[mode], noise) for mode in MODES}
    model = plan.lowered.graph.name
    modes = len(digests) <= 1, results["static"], results["dynamic"]
    return Measured(model, runs, pairs, PAGE, noise, *modes, arguments.limit, limited_by)


def predict(plan: PlacedPlan, mode: str) -> Prediction:
    """Predicts the bytes that a run of a mode needs."""
    if mode == "dynamic":
        peak = refcount_peak(plan.program)
        return Prediction(whole_pages(peak), 0, peak, whole_pages(peak))
    arena, lowered = whole_pages(plan.arena_bytes), plan.lowered
    copies = sum(whole_pages(lowered.values[v].spec.nbytes) for v in lowered.outputs.values())
    return Prediction(arena + copies, arena, 0, whole_pages(plan.arena_bytes - file_bytes(plan)) + copies)


def explain(predicted: Prediction, counted: Mapping[str, Any], noise: int) -> str:
    """Explains why the measured peak is not the predicted one, as far as that is known; "" within the tolerance."""
    peak = _peak(counted)
    if peak is None or abs(peak - predicted.peak_bytes) <= TOLERANCE * predicted.peak_bytes:
        return ""
    excess, kept = peak - predicted.peak_bytes, (counted["held_bytes"] or 0) - predicted.held_bytes
    if (counted["huge_bytes"] or 0) > noise:
        return f"{format_bytes(counted['huge_bytes'])} lay in huge pages, which are resident as a whole"
    if abs(excess) <= noise:
        least = format_bytes(int(noise / TOLERANCE))
        return f"the difference is within the noise floor, as it may be for all models that need less than {least}"
    if excess < 0:
        of_files = peak >= predicted.anonymous_bytes < predicted.peak_bytes
        return _LEFT if of_files else _UNTOUCHED
    if kept >= excess / 2:
        return f"malloc kept freed blocks ({format_bytes(kept)} of them behind the run) that later tensors did not fit"
    return "not explained"


def _peak(counted: Mapping[str, Any]) -> int | None:
    exact: int | None = counted["peak_bytes"]
    sampled: int | None = counted["sampled_bytes"]
    return sampled if exact is None else exact


def _mode(predicted: Prediction, read: ModeReadings, noise: int) -> Mode:
    if read.failed:
        return _not_run(predicted, read.failed)
    counted, timed, expected = read.counted, read.timed, read.whole["predicted_bytes"]
    firsts, later = [part["first"] for part in timed], [run for part in timed for run in part["later"]]
    peak, seconds = _peak(counted), [run["seconds"] for run in later]
    return Mode(
        predicted_bytes=predicted.peak_bytes,
        peak_bytes=counted["peak_bytes"],
        difference=_difference(peak, predicted.peak_bytes),
        reason=explain(predicted, counted, noise),
        sampled_bytes=counted["sampled_bytes"],
        samples=counted["samples"],
        held_bytes=counted["held_bytes"],
        huge_bytes=counted["huge_bytes"],
        predicted_numpy_bytes=predicted.numpy_bytes,
        numpy_bytes=counted["numpy_bytes"],
        traced_bytes=counted["traced_bytes"],
        first_minor_faults=_faults(firsts, "minor"),
        first_major_faults=_faults(firsts, "major"),
        minor_faults=_faults(later, "minor"),
        major_faults=_faults(later, "major"),
        first_seconds=statistics.median(run["seconds"] for run in firsts),
        seconds=statistics.median(seconds),
        seconds_min=min(seconds),
        predicted_process_bytes=expected,
        process_bytes=read.whole["peak_bytes"],
        process_difference=_difference(read.whole["peak_bytes"], expected),
        predicted_anonymous_bytes=predicted.anonymous_bytes,
        anonymous_bytes=counted["anonymous_bytes"],
        anonymous_difference=_difference(counted["anonymous_bytes"], predicted.anonymous_bytes),
    )


def _not_run(predicted: Prediction, why: str) -> Mode:
    unknown: dict[str, Any] = {each.name: None for each in fields(Mode)}
    predictions: dict[str, Any] = {
        "predicted_bytes": predicted.peak_bytes,
        "predicted_numpy_bytes": predicted.numpy_bytes,
        "predicted_anonymous_bytes": predicted.anonymous_bytes,
    }
    return Mode(**unknown | predictions | {"reason": "", "samples": 0, "failed": why})


def _difference(measured: int | None, predicted: int | None) -> float | None:
    return measured / predicted - 1 if measured is not None and predicted else None


def _faults(runs: Sequence[Mapping[str, Any]], kind: str) -> float | None:
    if any(run["faults"] is None for run in runs):
        return None
    return float(statistics.median(run["faults"][kind] for run in runs))


def _bytes(size: int | None) -> str:
    return _UNKNOWN if size is None else f"{size} B {format_bytes(size):>10}"


def _number(number: float | None) -> str:
    return _UNKNOWN if number is None else f"{number:g}"


def _percent(part: float | None) -> str:
    return _UNKNOWN if part is None else f"{part:+.1%}"


def _pair(minor: float | None, major: float | None) -> str:
    return f"{_number(minor)} / {_number(major)}" if minor is not None else _UNKNOWN


def _milliseconds(seconds: float | None) -> str:
    return _UNKNOWN if seconds is None else f"{seconds * 1e3:.2f} ms"


_ROWS: tuple[tuple[str, Callable[[Mode], str]], ...] = (
    ("peak, predicted", lambda mode: _bytes(mode.predicted_bytes)),
    ("peak, measured", lambda mode: _bytes(mode.peak_bytes)),
    ("peak, sampled", lambda mode: _bytes(mode.sampled_bytes)),
    ("  samples", lambda mode: str(mode.samples)),
    ("measured over predicted", lambda mode: _percent(mode.difference)),
    ("anonymous, predicted", lambda mode: _bytes(mode.predicted_anonymous_bytes)),
    ("anonymous, measured", lambda mode: _bytes(mode.anonymous_bytes)),
    ("anonymous, off by", lambda mode: _percent(mode.anonymous_difference)),
    ("held behind the run", lambda mode: _bytes(mode.held_bytes)),
    ("numpy's arrays, predicted", lambda mode: _bytes(mode.predicted_numpy_bytes)),
    ("numpy's arrays, traced", lambda mode: _bytes(mode.numpy_bytes)),
    ("all that Python allocated", lambda mode: _bytes(mode.traced_bytes)),
    ("faults of the first run", lambda mode: _pair(mode.first_minor_faults, mode.first_major_faults)),
    ("faults of a later run", lambda mode: _pair(mode.minor_faults, mode.major_faults)),
    ("first run", lambda mode: _milliseconds(mode.first_seconds)),
    ("later run, median", lambda mode: _milliseconds(mode.seconds)),
    ("later run, least", lambda mode: _milliseconds(mode.seconds_min)),
    ("whole process, predicted", lambda mode: _bytes(mode.predicted_process_bytes)),
    ("whole process, measured", lambda mode: _bytes(mode.process_bytes)),
    ("whole process, off by", lambda mode: _percent(mode.process_difference)),
)


def _row(name: str, tell: Callable[[Mode], str], modes: Any) -> tuple[str, ...]:
    return (name, *(tell(mode) for mode in modes))


def _off(name: str, mode: Mode) -> str:
    difference = "by all of it" if mode.difference is None else f"by {abs(mode.difference):.0%}"
    return f"{name}: off {difference}: {mode.reason}"
