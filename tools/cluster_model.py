"""A model of one process that gives out tasks to many workers: how much they do together, by the lengths of tasks.

The sender handles one message at a time, on its way out and back. A worker has one task that runs and one that waits,
so a message that is on its way keeps nobody waiting unless the tasks are short.
"""

import heapq
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attrs import evolve, frozen

from engine.pictures.matplotlib import new_figure, to_png
from engine.text.palette import OKABE_ITO
from engine.text.units import format_bytes
from tools.benchmark_tables import markdown, seconds

SCALES = (1, 2, 4, 10, 20, 50, 100, 200, 500, 1000)
"""Numbers of workers that are simulated."""
SHOWN = (2, 10, 100, 1000)
EACH = 20
"""Tasks for each worker: all of them start and end within the time that counts."""
LENGTHS = (1.0, 10.0, 100.0)
"""Seconds of tasks, beside those that were measured."""
IMAGE_BYTES = 4 * 3 * 224 * 224
"""Bytes of the input of a run: one image in float32."""
NETWORK_LATENCY, NETWORK_BANDWIDTH = 5e-4, 125e6
"""Seconds one way and bytes a second of a network of 1 Gbit/s, where workers are on other machines. An assumption."""
_WAITING = 2
_ENOUGH = 0.9


@frozen
class Costs:
    """What a task costs besides its work.

    Seconds of the sender and of the worker for each task, seconds of a message on its way, and bytes a second.
    """

    sender: float
    worker: float
    latency: float
    bandwidth: float


def makespan(costs: Costs, lengths: Sequence[float], workers: int, nbytes: int) -> float:
    """Returns the seconds from the first message until the sender has the last answer.

    Tasks of these lengths are sent in their order, with `nbytes` to and from the worker together. A worker whose answer
    has come gets the next one.
    """
    handling = costs.sender / 2
    sender, free = 0.0, [0.0] * workers
    answers: list[tuple[float, int]] = []

    def send(worker: int, length: float) -> None:
        nonlocal sender
        sender += handling
        free[worker] = max(free[worker], sender + costs.latency) + costs.worker + length
        heapq.heappush(answers, (free[worker] + costs.latency, worker))

    left = iter(lengths)
    for number, length in zip(range(_WAITING * workers), left, strict=False):
        send(number % workers, length)
    while answers:
        came, worker = heapq.heappop(answers)
        sender = max(sender, came) + handling + nbytes / costs.bandwidth
        for length in left:
            send(worker, length)
            break
    return sender


def throughput(costs: Costs, length: float, workers: int, nbytes: int) -> float:
    """Returns how many times the work of one worker so many do, with tasks of one length."""

    def rate(number: int) -> float:
        return number * EACH / makespan(costs, [length] * (number * EACH), number, nbytes)

    return rate(workers) / rate(1)


def curves(costs: Costs, lengths: Sequence[float], sizes: Sequence[int]) -> Iterator[Mapping[str, Any]]:
    """Yields a row for each size of messages and length of tasks: the throughput of each number of workers."""
    far = evolve(costs, latency=max(costs.latency, NETWORK_LATENCY), bandwidth=min(costs.bandwidth, NETWORK_BANDWIDTH))
    for nbytes in sizes:
        for length in lengths:
            of = {n: throughput(far, length, n, nbytes) for n in SCALES}
            enough = max(n for n, times in of.items() if times >= _ENOUGH * n)
            yield {"message_bytes": nbytes, "task_seconds": length, "throughput": of, "enough": enough}


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Returns rows of `curves` in Markdown."""
    head = ["a task takes", "is sent", *(f"{n:,} workers" for n in SHOWN), "at least 0.9 a worker up to"]
    return markdown([head, *(_cells(row) for row in rows)])


def _cells(row: Mapping[str, Any]) -> Sequence[str]:
    times = (f"{row['throughput'][n]:.3g}" for n in SHOWN)
    return [seconds(row["task_seconds"]) + " s", format_bytes(row["message_bytes"]), *times, f"{row['enough']:,}"]


def chart(rows: Sequence[Mapping[str, Any]], place: str, measured: Mapping[int, float]) -> bytes:
    """Draws rows of `curves`, a panel for each size of messages, beside what was measured with the shortest tasks.

    The file holds the table as text.
    """
    figure = new_figure(10, 4.6)
    sizes = list(dict.fromkeys(row["message_bytes"] for row in rows))
    for axes, nbytes in zip(figure.subplots(1, len(sizes), sharey=True), sizes, strict=True):
        _draw(axes, [row for row in rows if row["message_bytes"] == nbytes])
        axes.set_title(f"messages of {format_bytes(nbytes)}", fontsize=11)
    first, *_ = figure.axes
    first.plot([*measured], [*measured.values()], "o", ms=6, color="black", label=f"measured ({place})")
    first.set_ylabel("times the work of one worker")
    handles, labels = first.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    figure.suptitle("What many workers do, by the model", fontsize=12, fontweight="bold")
    return to_png(figure, description=table(rows))


def _draw(axes: Any, rows: Sequence[Mapping[str, Any]]) -> None:
    axes.plot(SCALES, SCALES, "--", lw=1, color="#777777", label="as many times as workers")
    for row, colour in zip(rows, OKABE_ITO, strict=False):
        times = [row["throughput"][n] for n in SCALES]
        axes.plot(SCALES, times, "-", lw=2, color=colour, label=f"tasks of {seconds(row['task_seconds'])} s")
    axes.set(xscale="log", yscale="log", xlabel="workers")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter("{x:g}")
    axes.grid(color="#DDDDDD", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
