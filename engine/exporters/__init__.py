"""Files that other tools open. One format a module, and the one door to them: `FORMATS`."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import BinaryIO

from attrs import frozen

from engine.exporters import chrome, csv, html, json, massif, perfetto, png, pytorch, speedscope, svg, table
from engine.trace import Trace


@frozen(eq=False)
class Format:
    """`write` streams a trace to a file that is open for bytes; `suffix` is what such files are called."""

    write: Callable[[Trace, BinaryIO], None]
    suffix: str
    use: str
    is_text: bool = True


FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        "table": Format(table.write, ".txt", "a line an event, for people"),
        "csv": Format(csv.write, ".csv", "spreadsheets and pandas"),
        "json": Format(json.write, ".json", "programs"),
        "chrome": Format(chrome.write, ".trace.json", "ui.perfetto.dev and chrome://tracing"),
        "perfetto": Format(perfetto.write, ".pftrace", "ui.perfetto.dev and its trace processor", is_text=False),
        "pytorch": Format(pytorch.write, ".pickle", "pytorch.org/memory_viz, a memory snapshot", is_text=False),
        "massif": Format(massif.write, ".massif", "ms_print and massif-visualizer"),
        "speedscope": Format(speedscope.write, ".speedscope.json", "speedscope.app: what the peak is made of"),
        "html": Format(html.write, ".html", "a page to look at, search and zoom; from disk, in any browser"),
        "svg": Format(svg.write, ".svg", "a picture for documents; light or dark"),
        "png": Format(png.write, ".png", "a picture for slides", is_text=False),
    }
)
"""Format by the name that the command line knows."""
