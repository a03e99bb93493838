"""Cards of plans, reports and traces in notebooks: totals as bars, the tensors of the peak, the arena."""

from engine.execution_plan import ExecutionPlan
from engine.exporters.svg import svg
from engine.notebook.html import Bar, bars, card, folded, note, scrolled, table
from engine.pictures.options import PictureOptions
from engine.report.memories import MemoryShare
from engine.report.peak import PeakTensor
from engine.report.report import Report
from engine.text.units import counted, format_bytes, format_small_seconds
from engine.trace.rectangles import rectangles_of
from engine.trace.trace import RunInfo, Trace

ARENA, BOUND, DYNAMIC, NAIVE, PEAK = "#4C86C6", "#3E9B73", "#C98B3A", "#9AA3AD", "#C8574A"
MOST_TICKS = 20_000
"""The most ticks of a trace that is drawn; a longer one would make the page slow to open."""
_TENSORS = 10
_HEAD = ("tensor", "operator", "shape", "bytes", "share", "lifetime", "offset")
_RIGHT = frozenset((3, 4, 6))
_OPTIONS = PictureOptions(title=False)
_DARK = (
    ':is(body[data-jp-theme-light="false"],body[data-vscode-theme-kind="vscode-dark"],'
    'body[data-vscode-theme-kind="vscode-high-contrast"],html[theme="dark"])'
)
"""Selects dark pages of JupyterLab, VS Code and Colab, which decide without the preference of the reader's system."""


def card_of(shown: ExecutionPlan | Report | Trace) -> str:
    """Returns the HTML of a card."""
    if isinstance(shown, ExecutionPlan):
        report = shown.report()
        picture = _picture(shown.trace())
        return card(*_title(report), _totals(report), _memories(report), _peak(report, is_open=False), picture)
    if isinstance(shown, Report):
        return card(*_title(shown), _totals(shown), _memories(shown), _peak(shown, is_open=True))
    return card(shown.facts.model, _about(shown.facts), _sizes(shown.facts) + _weights(shown.facts), _picture(shown))


def _title(report: Report) -> tuple[str, str]:
    operators = f"{report.operators:,} operators, {report.flops / 1e6:,.1f} million operations a run"
    policy = f"; safe for operators at once by {report.parallel}" if report.parallel else ""
    return report.model, f"{operators}; strategy {report.strategy}, {report.status}{policy}"


def _totals(report: Report) -> str:
    naive = max(report.naive_bytes, 1)
    gap = "met: no arena is smaller" if not report.gap else f"the arena is {report.gap:.2%} above it"
    return bars(
        [
            Bar("naive", report.naive_bytes, NAIVE, "every tensor has bytes of its own"),
            Bar("dynamic peak", report.dynamic_peak_bytes, DYNAMIC, "reference counting"),
            Bar("arena", report.arena_bytes, ARENA, f"{report.arena_bytes / naive:.1%} of naive"),
            Bar("lower bound", report.lower_bound, BOUND, gap),
        ]
    ) + _weights(report)


def _weights(of: Report | RunInfo) -> str:
    weights, packed, resident = map(format_bytes, (of.weights_bytes, of.prepacked_bytes, of.resident_weights_bytes))
    return note(f"outside of the arena: {weights} weights, {packed} prepacked; {resident} resident weights")


def _memories(report: Report) -> str:
    """Returns what lies in each of several memories, and what transfers take; nothing for one arena."""
    head = ("memory", "capacity", "used", "arena", "weights", "transfers")
    return "".join(
        folded(
            f"transfers take {format_small_seconds(transfers.seconds)}; {counted(len(transfers.moves), 'move')}",
            table(head, [_share(share) for share in transfers.memories], frozenset(range(1, len(head)))),
            is_open=True,
        )
        for transfers in report.transfers
    )


def _share(share: MemoryShare) -> tuple[str, ...]:
    sizes = share.capacity, share.used_bytes, share.arena_bytes, share.weights_bytes
    return (share.name, *map(format_bytes, sizes), format_small_seconds(share.seconds))


def _peak(report: Report, is_open: bool) -> str:
    where = f"tick {report.peak_tick} ({report.peak_operator} {report.peak_kind})".replace(" )", ")")
    rest = len(report.peak_tensors) - _TENSORS
    more = note(f"and {rest:,} smaller ones") if rest > 0 else ""
    rows = [_row(tensor) for tensor in report.peak_tensors[:_TENSORS]]
    many = len(report.peak_tensors)
    what = f"{many:,} tensor{'' if many == 1 else 's'}, {format_bytes(report.peak_bytes)}"
    summary = f"peak in {where}: {what} alive"
    if report.parallel:
        summary = f"peak: {what} may be alive at once, the last of them written in {where}"
    return folded(summary, table(_HEAD, rows, _RIGHT), more, is_open=is_open)


def _row(tensor: PeakTensor) -> tuple[str, ...]:
    shape = "x".join(map(str, tensor.shape)) or "scalar"
    lifetime = f"[{tensor.begin}, {tensor.end})"
    numbers = (f"{tensor.bytes:,}", f"{tensor.share:.1%}", lifetime, f"{tensor.offset:,}")
    return (tensor.name, f"{tensor.operator} {tensor.kind}".rstrip(), shape, *numbers)


def _about(facts: RunInfo) -> str:
    mode = "a run in one arena" if facts.mode == "static" else "a run with reference counting"
    heap = f" on the heap {facts.heap}" if facts.heap else ""
    policy = f", safe for operators at once by {facts.policy}" if facts.policy else ""
    times = f"; times are {facts.clock}" if facts.is_timed else ""
    return f"trace of {mode}{heap}{policy}, {facts.ticks:,} ticks{times}"


def _sizes(facts: RunInfo) -> str:
    reserved = Bar("reserved", facts.footprint_bytes, DYNAMIC, "by the heap, at most")
    arena = Bar("arena", facts.arena_bytes, ARENA, "" if facts.mode == "static" else "of a plan")
    peak = Bar("peak", facts.peak_bytes, PEAK, f"alive at once, in tick {facts.peak_tick} ({facts.peak_operator})")
    bound = Bar("lower bound", facts.lower_bound, BOUND)
    return bars([*([reserved] if facts.heap else []), arena, peak, *([bound] if facts.mode == "static" else [])])


def _picture(trace: Trace) -> str:
    if trace.facts.ticks > MOST_TICKS:
        return note(f"{trace.facts.ticks:,} ticks are too many for a picture here; arenaplan view makes a page of them")
    return scrolled(svg(rectangles_of(trace), _OPTIONS, _DARK))
