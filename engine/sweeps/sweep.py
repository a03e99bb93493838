"""Sweeps: the tasks of all models and all combinations of values, carried out by workers."""

import itertools
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import nullcontext
from os import PathLike
from pathlib import Path
from typing import Any, Unpack

from attrs import define, evolve

from allocator.progress import Activity
from engine.models.named import NamedModel
from engine.planning.options import FIELDS, Options, PlanOptions, parse_budget
from engine.sweeps.files import RowFile, check_output, opened_rows
from engine.sweeps.measures import MEASURES, PRESETS
from engine.sweeps.rows import TASK, Row, carry_out, columns_of, failed
from engine.sweeps.table import Table
from engine.sweeps.task import BUDGET, Task, file_digest, is_of_model, placed
from engine.system.threads import check_threads
from engine.text.errors import OptionError
from engine.text.faults import behind_door
from engine.text.options import check_flag, check_option_names
from engine.text.units import format_duration
from engine.workers.flow import as_they_come
from engine.workers.names import AS_MANY_AS_PROCESSORS, PROCESSES
from engine.workers.places import opened

_PLAIN = Task("", NamedModel(Path()), (), (), {})


@behind_door("sweeping")
def sweep(
    models: Iterable[str | PathLike[str]] = (),
    *,
    preset: str = "",
    vary: Mapping[str, Sequence[Any]] | None = None,
    output: str | PathLike[str] = "",
    on: str | Executor = PROCESSES,
    workers: int = AS_MANY_AS_PROCESSORS,
    runs: int = 0,
    threads: int = 1,
    shapes: Mapping[str, Sequence[int | str]] | None = None,
    lengths: Mapping[str, int] | None = None,
    budget: int | str = "",
    recompute: bool = True,
    **options: Unpack[PlanOptions],
) -> Table:
    """Plans all models with all combinations of values, and tells of each in a row.

    `models` are ONNX files and networks such as "zoo:resnet50". `vary` has values by name: of an option of planning, of
    "budget", of an option of a network of the zoo, or of a dimension. The first that there is counts. `shapes` of
    inputs and `lengths` of dimensions hold for all models, other options for all plans. With `runs`, each plan runs so
    many times more than once, on `threads` threads. `on` and `workers` say who works: "processes" of this machine, as
    many as processors unless `workers` is a number, "here", "dask://HOST:PORT", or an Executor.

    `preset` "placements" tells of static planning beside no reuse, dynamic allocators and TensorFlow Lite, "tricks" of
    what overwriting and sharing save in training and forward only. They plan in ways of their own, networks and
    batches of their own where `models` and `vary` say none.

    A model that cannot be planned is a row with its error. Rows are appended to `output` (.csv, .jsonl) as they come;
    those that it has already are not made again. Raises OptionError, and EngineError where workers are lost.
    """
    check_option_names("arenaplan.sweep", options, (*PlanOptions.__annotations__, BUDGET, "recompute"))
    check_flag("recompute", recompute)
    check_threads(threads, 1)
    if isinstance(runs, bool) or not isinstance(runs, int) or runs < 0:
        raise OptionError(f"runs {runs!r} is no number of runs, from 0 on")
    said = NamedModel(
        Path(),
        shapes=tuple((name, tuple(shape)) for name, shape in (shapes or {}).items()),
        lengths=tuple((lengths or {}).items()),
        seed=options.get("seed", 0),
    )
    most = parse_budget(budget)
    base = Task("", said, (), (), dict(options), budget=most, recompute=recompute, runs=runs, threads=threads)
    if isinstance(models, str | PathLike):
        raise OptionError(f"models are a list of names, such as [{str(models)!r}]")
    tasks = make_tasks([str(model) for model in models], vary or {}, base, preset)
    return swept(tasks, Path(output) if output else None, on=on, workers=workers)


def swept(tasks: Sequence[Task], output: Path | None, *, on: str | Executor, workers: int) -> Table:
    """Carries out tasks that have the same names of settings and the same measure; returns their rows.

    Raises OptionError for options that make no sense, and for no task at all.
    """
    if not tasks:
        raise OptionError(
            f"there is nothing to sweep: name a model, such as zoo:resnet50, or a preset: {', '.join(PRESETS)}"
        )
    if output is not None:
        check_output(output)
    varied = tuple(dict(tasks[0].settings))
    measure = tasks[0].measure
    columns = columns_of(measure, varied)
    unique = {task.digest: task for task in tasks}
    with nullcontext() if output is None else opened_rows(output, columns) as file:
        rows = dict(file.rows) if file is not None else {}
        left = [task for digest, task in unique.items() if digest not in rows]
        _carry_out(left, rows, file, on, workers)
    return Table(columns, varied, tuple(rows[digest] for digest in unique), measure)


def _carry_out(
    tasks: Sequence[Task], rows: dict[str, Row], file: RowFile | None, on: str | Executor, workers: int
) -> None:
    if not tasks:
        return
    with opened(on, workers) as place, Activity("sweeping", total=len(tasks), unit="tasks") as activity:
        pace = _Pace(len(tasks))
        for outcome in as_they_come(place, carry_out, tasks):
            row = outcome.value if outcome.value is not None else failed(outcome.task, _error(outcome.error))
            rows[row[TASK]] = row
            if file is not None:
                file.append(row)
            activity.done += 1
            activity.item = pace.told(activity.done)


def _error(error: BaseException | None) -> BaseException:
    return error or OptionError("a worker gave no row")


@define(eq=False)
class _Pace:
    """The number of tasks a second, and how long the rest takes at that rate."""

    total: int
    _began: float = 0.0

    def __attrs_post_init__(self) -> None:
        self._began = time.monotonic()

    def told(self, done: int) -> str:
        rate = done / max(time.monotonic() - self._began, 1e-9)
        return f"{rate:.2g} a second, {format_duration((self.total - done) / rate)} left"


def make_tasks(
    models: Sequence[str], vary: Mapping[str, Sequence[Any]], base: Task, preset: str = ""
) -> tuple[Task, ...]:
    """Returns a task for each model and each combination of values, models outermost; the rest is that of `base`.

    Values of options of planning are those that the planner takes. A preset says what is left out. Raises OptionError.
    """
    for name, values in vary.items():
        if isinstance(values, str) or not isinstance(values, Iterable):
            raise OptionError(f"vary has {values!r} for {name!r}; give a list of values, such as [1, 8]")
    if preset:
        _check_preset(preset, vary, base)
        measure, lengths = MEASURES[preset], dict(base.named.lengths)
        models = models or measure.models
        vary = {name: [lengths[name]] if name in lengths else own for name, own in measure.vary.items()} | dict(vary)
        base = evolve(base, measure=preset)
    combinations = list(itertools.product(*(tuple(values) for values in vary.values())))
    tasks = list[Task]()
    for model in models:
        of_model = evolve(base, title=model, named=evolve(base.named, model=placed(Path(model))))
        file = file_digest(of_model.named.model)
        pairs = (tuple(zip(vary, values, strict=True)) for values in combinations)
        tasks += (_with_settings(of_model, some).identified(file) for some in pairs)
    return tuple(filter(MEASURES[base.measure].fits, tasks)) or tuple(tasks)


def _check_preset(preset: str, vary: Mapping[str, Sequence[Any]], base: Task) -> None:
    """Raises OptionError for a preset that there is not, and for options of planning beside it but for the seed."""
    if preset not in PRESETS:
        raise OptionError(f"{preset!r} is no preset; one of: {', '.join(PRESETS)}")
    plain, said = Options(), Options(**base.options)
    refused = [name for name in FIELDS if name != "seed" and getattr(said, name) != getattr(plain, name)]
    refused += [name for name in vary if not is_of_model(name)]
    refused += [name for name in (BUDGET, "recompute", "runs") if getattr(base, name) != getattr(_PLAIN, name)]
    if refused:
        raise OptionError(f"preset {preset!r} plans in ways of its own; leave out {refused[0]!r}")


def _with_settings(base: Task, pairs: Sequence[tuple[str, Any]]) -> Task:
    settings, own = tuple((name, _text(value)) for name, value in pairs), MEASURES[base.measure].own
    return evolve(
        base,
        settings=settings,
        lengths=tuple((name, text) for name, text in settings if is_of_model(name) and name not in own),
        options={**base.options, **{name: value for name, value in pairs if name in FIELDS}},
        budget=next((parse_budget(value) for name, value in pairs if name == BUDGET), base.budget),
    )


def _text(value: object) -> str:
    """Returns a value as the command line has it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
