"""Files that other tools open. One format a module."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from engine.exporters.chrome import to_chrome
from engine.exporters.csv import to_csv
from engine.exporters.json import to_json
from engine.exporters.table import to_table
from engine.trace import Event

FORMATS: Mapping[str, Callable[[Sequence[Event]], str]] = MappingProxyType(
    {"table": to_table, "csv": to_csv, "json": to_json, "chrome": to_chrome}
)
"""Exporter by the name that the command line knows."""
