"""Writes the HTML file that shows plans: style, script and data are in it, and it may load nothing else."""

import base64
import hashlib
import html
import json
import re
from collections.abc import Sequence
from importlib.resources import files
from typing import BinaryIO

from engine.text.palette import KIND_COLOURS, OTHER_COLOUR, PAINTS
from engine.viewer.script import flatten

_SLOT = re.compile(r"\{\{(\w+)\}\}")
_STEP = 3 * 2**16
"""Bytes that become base64 at once; a multiple of 3, so that the pieces join."""


def write_page(title: str, payloads: Sequence[bytes], out: BinaryIO) -> None:
    """Writes a page of one plan, or of two side by side; `engine.viewer.payload.pack` makes the `payloads`."""
    style, script = f"{_shared_colours()}\n{read('style.css')}", flatten(modules())
    texts = {"title": html.escape(_sound(title)), "style": style, "script": script, "policy": _policy(style, script)}
    pieces = _SLOT.split(read("page.html"))
    for text, slot in zip(pieces[::2], (*pieces[1::2], ""), strict=True):
        out.write(text.encode())
        if slot == "payloads":
            _write_payloads(payloads, out)
        elif slot:
            out.write(texts[slot].encode())


def read(name: str) -> str:
    """Returns the text of a file of this package."""
    return files("engine.viewer").joinpath(name).read_text("utf-8")


def modules() -> dict[str, str]:
    """Returns the JavaScript modules of the page by name: its files, and "palette", which is made of Python's."""
    sources = sorted(files("engine.viewer").joinpath("js").iterdir(), key=lambda f: f.name)
    texts = {f.name.removesuffix(".js"): f.read_text("utf-8") for f in sources if f.name.endswith(".js")}
    return texts | {"palette": _palette()}


def _shared_colours() -> str:
    """Returns the rules of the colours that the page shares with pictures, for light and for dark pages."""
    names = {
        "gap": "gap",
        "live": "live_line",
        "footprint": "footprint",
        "bound": "bound",
        "budget": "budget",
        "peak": "peak",
    }
    light = " ".join(f"--{name}: {PAINTS[paint].light.lower()};" for name, paint in names.items())
    dark = " ".join(f"--{name}: {PAINTS[paint].dark.lower()};" for name, paint in names.items())
    return f':root {{ {light} }}\n:root[data-theme="dark"] {{ {dark} }}'


def _palette() -> str:
    """Returns the JavaScript module of the colours of kinds of operators."""
    kinds, other = (json.dumps(colours).lower() for colours in (KIND_COLOURS, OTHER_COLOUR))
    return f"export const KINDS = {kinds};\nexport const OTHER = {other};\n"


def _policy(style: str, script: str) -> str:
    """Returns the policy: no network, and no script or style but the page's own (Content Security Policy, level 3)."""
    pictures = "img-src data: blob:"
    return (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; {pictures}; base-uri 'none'; "
        "form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _sound(text: str) -> str:
    """Returns a text without lone surrogates, which UTF-8 cannot encode."""
    return text.encode("utf-8", "replace").decode()


def _write_payloads(payloads: Sequence[bytes], out: BinaryIO) -> None:
    """Writes payloads in base64, so that no character of them can end an element."""
    for payload in payloads:
        out.write(b'<script class="payload" type="text/plain">')
        for at in range(0, len(payload), _STEP):
            out.write(base64.b64encode(payload[at : at + _STEP]))
        out.write(b"</script>\n")
