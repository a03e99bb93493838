"""Writes traces as files for other tools. Each module has one format; `FORMATS` lists them all."""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO

from attrs import Factory, field, frozen

from engine.exporters import (
    chrome,
    csv,
    html,
    json,
    massif,
    megengine,
    model_explorer,
    perfetto,
    png,
    pytorch,
    speedscope,
    svg,
    table,
)
from engine.exporters import map as address_map
from engine.text.screen import Screen
from engine.trace.trace import Trace

Writer = Callable[[Trace, BinaryIO], None]
Shower = Callable[[Trace, BinaryIO, Screen], None]


def _without_screen(of: "Format") -> Shower:
    """Returns a function that writes the same to a screen as to a file."""
    return lambda trace, out, _: of.write(trace, out)


@frozen(eq=False)
class Format:
    """A file format. `write` streams a trace to a file that is open for bytes; `suffix` ends the names of its files.

    `show` writes for a terminal of a certain width and colours. A format that is no text is not for terminals.
    """

    write: Writer
    suffix: str
    use: str
    is_text: bool = True
    show: Shower = field(default=Factory(_without_screen, takes_self=True))


FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        "table": Format(table.write, ".txt", "a line for all that comes and goes, for people", show=table.show),
        "map": Format(address_map.write, ".txt", "time and addresses, drawn in letters", show=address_map.show),
        "csv": Format(csv.write, ".csv", "spreadsheets and pandas"),
        "json": Format(json.write, ".json", "programs"),
        "chrome": Format(chrome.write, ".trace.json", "ui.perfetto.dev and chrome://tracing"),
        "perfetto": Format(perfetto.write, ".pftrace", "ui.perfetto.dev and its trace processor", is_text=False),
        "pytorch": Format(pytorch.write, ".pickle", "pytorch.org/memory_viz, a memory snapshot", is_text=False),
        "massif": Format(massif.write, ".massif", "ms_print and massif-visualizer"),
        "speedscope": Format(speedscope.write, ".speedscope.json", "speedscope.app: what the peak is made of"),
        "megengine": Format(
            megengine.write, ".megengine.json", "MegEngine's StaticMemoryInfo.json, and `arenaplan solve`"
        ),
        **{
            f"model-explorer-{name}": Format(
                model_explorer.writer_of(name), ".json", f"Model Explorer: {measure.title}"
            )
            for name, measure in model_explorer.MEASURES.items()
        },
        "html": Format(
            html.write, ".html", "a page to look at, search and zoom; from disk, in any browser", is_text=False
        ),
        "svg": Format(svg.write, ".svg", "a picture for documents; light or dark"),
        "png": Format(png.write, ".png", "a picture for slides", is_text=False),
    }
)
"""The formats by their names on the command line."""


def named_like(file: Path) -> tuple[str, ...]:
    """Returns the formats with the longest suffix that this file has; for "a.trace.json" not those of ".json"."""
    fitting = {name: form.suffix for name, form in FORMATS.items() if file.name.lower().endswith(form.suffix)}
    longest = max((len(suffix) for suffix in fitting.values()), default=0)
    return tuple(name for name, suffix in fitting.items() if len(suffix) == longest)
