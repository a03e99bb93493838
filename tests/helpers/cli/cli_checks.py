"""Calls of the command line, and the files that they read."""

import base64
import gzip
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from engine.cli.main import main

Capture = pytest.CaptureFixture[str]
BUFFERS = "id,lower,upper,size\na,0,2,10\nb,1,3,20\nc,2,4,10\n"
PLACED = "id,lower,upper,size,offset\na,0,2,10,20\nb,1,3,20,0\nc,2,4,10,20\n"
SOLVED = {
    "file",
    "buffers",
    "arena_bytes",
    "lower_bound",
    "bound_reason",
    "witness",
    "gap",
    "strategy",
    "status",
    "seconds",
    "offsets",
}
"""The keys of what `solve` tells as JSON."""


def save(folder: Path, text: str, name: str = "buffers.csv") -> str:
    """Writes a text to a new file, and returns its path."""
    (folder / name).write_text(text)
    return str(folder / name)


def data(arguments: Sequence[str], capsys: Capture) -> dict[str, Any]:
    """Returns the JSON object that a command prints."""
    assert main([*arguments, "--json"]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    printed: dict[str, Any] = json.loads(shown.out, parse_constant=pytest.fail)
    return printed


def planned(arguments: Sequence[str], capsys: Capture) -> dict[str, Any]:
    """Returns the JSON object of `plan`, but for what it measures of its process."""
    printed = data(["plan", *arguments], capsys)
    del printed["resident_set"]
    return printed


def error(arguments: Sequence[str], code: int, capsys: Capture) -> str:
    """Returns the one line on stderr of a command that ends with `code` and prints nothing else."""
    assert main(arguments) == code
    shown = capsys.readouterr()
    lines = shown.err.splitlines()
    assert len(lines) == 1 and lines[0].startswith("arenaplan: error: ")
    assert shown.out == ""
    return lines[0]


def page_headers(page: Path) -> list[dict[str, Any]]:
    """Returns the headers of the payloads of a page."""
    headers = []
    for text in re.findall(r'<script class="payload" type="text/plain">([^<]*)</script>', page.read_text()):
        raw = gzip.decompress(base64.b64decode(text))
        headers.append(json.loads(raw[4 : 4 + int.from_bytes(raw[:4], "little")]))
    return headers
