"""Files that other tools open. One format a module, and the one door to them: `FORMATS`."""

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
    """What no person reads is the same everywhere."""
    return lambda trace, out, _: of.write(trace, out)


@frozen(eq=False)
class Format:
    """`write` streams a trace to a file that is open for bytes; `suffix` is what such files are called.

    `show` does it for a screen, where that makes a difference. What is no text is of no use on a terminal.
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
        "megengine": Format(megengine.write, ".json", "MegEngine's StaticMemoryInfo.json, and `arenaplan solve`"),
        **{
            f"model-explorer-{name}": Format(model_explorer.writer_of(name), ".json", f"Model Explorer: {known.title}")
            for name, known in model_explorer.MEASURES.items()
        },
        "html": Format(
            html.write, ".html", "a page to look at, search and zoom; from disk, in any browser", is_text=False
        ),
        "svg": Format(svg.write, ".svg", "a picture for documents; light or dark"),
        "png": Format(png.write, ".png", "a picture for slides", is_text=False),
    }
)
"""Format by the name that the command line knows."""


def named_like(file: Path) -> tuple[str, ...]:
    """The formats whose files are called as this one is; of "a.trace.json" not those of ".json"."""
    fitting = {name: known.suffix for name, known in FORMATS.items() if file.name.lower().endswith(known.suffix)}
    longest = max((len(suffix) for suffix in fitting.values()), default=0)
    return tuple(name for name, suffix in fitting.items() if len(suffix) == longest)
