"""What a run of tests left out, in one line."""

from collections import Counter
from collections.abc import Iterable

from pytest import CollectReport, TestReport


def skipped(reports: Iterable[TestReport | CollectReport]) -> str:
    """Returns how many tests and whole files were skipped for each reason, the most frequent first; "" for none."""
    counts = Counter((_reason(report), isinstance(report, CollectReport)) for report in reports)
    parts = [f"{count}{' files' if whole else ''} ({reason})" for (reason, whole), count in counts.most_common()]
    return f"skipped: {', '.join(parts)}" if parts else ""


def _reason(report: TestReport | CollectReport) -> str:
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return text.removeprefix("Skipped: ")
