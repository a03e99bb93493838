"""The page's script: its modules as one, and what they compute, run in Node."""

import json
import random
import re
import shutil
import subprocess
from typing import Any

import pytest

from engine.text.names import printable
from engine.text.units import format_bytes
from engine.viewer.page import modules
from engine.viewer.script import flatten

Sizes = list[list[int]]

needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed")


def _run(main: str, data: Any) -> Any:
    """Returns what `main`, a module among those of the page, makes of `data`."""
    script = flatten(dict(modules()) | {"main": main})
    done = subprocess.run(
        ["node", "-e", script], input=json.dumps(data), text=True, capture_output=True, check=True, timeout=60
    )
    return json.loads(done.stdout)


_READ = 'const data = JSON.parse(require("fs").readFileSync(0, "utf8"));\n'


def test_a_module_stands_behind_those_that_it_imports() -> None:
    script = flatten(
        {
            "main": 'import { b } from "./two.js";\nimport { a } from "./one.js";\nuse(a, b);\n',
            "one": "export const a = 1;\n",
            "two": 'import { a } from "./one.js";\nexport function b() {\n  return a;\n}\n',
        }
    )
    assert script.count("const $one") == 1
    assert script.index("const $one") < script.index("const $two") < script.index("const $main")
    assert "const { a } = $one;" in script and "return { b };" in script


def test_each_module_of_the_page_is_in_its_script() -> None:
    script = flatten(modules())
    assert all(f"const ${name} = " in script for name in modules())


@pytest.mark.parametrize(
    ("sources", "said"),
    [
        ({"main": 'import { a } from "./one.js";\n'}, "main.js imports one.js, which does not exist"),
        (
            {"main": 'import { a } from "./one.js";\n', "one": 'import { b } from "./main.js";\n'},
            "modules import each other: main -> one -> main",
        ),
        ({"main": 'import a from "./one.js";\n', "one": ""}, "main.js: import a from"),
        ({"main": "export { a };\n"}, "main.js: export { a }; is no plain import or export"),
        ({"main": "export default 1;\n"}, "main.js: export default 1; is no plain import or export"),
    ],
)
def test_flatten_refuses_imports_it_does_not_understand(sources: dict[str, str], said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        flatten(sources)


@needs_node
def test_towers_have_no_gaps_and_no_overlaps() -> None:
    chance = random.Random(1)
    main = (
        'import { stack } from "./stacking.js";\n'
        + _READ
        + "console.log(JSON.stringify(data.map(([from, to, size]) => { const p = stack(from, to, size);"
        + " return [...p.chunk].map((c, k) => [c, p.from[k], p.to[k], p.low[k]]); })));\n"
    )
    asked = [_lifetimes(chance, count) for count in (1, 2, 5, 20, 60)]
    for (begin, end, size), pieces in zip(asked, _run(main, asked), strict=True):
        for tick in range(max(end)):
            standing = sorted((low, size[c], c) for c, start, stop, low in pieces if start <= tick < stop and size[c])
            assert sorted(c for _, _, c in standing) == [
                i for i in range(len(size)) if begin[i] <= tick < end[i] and size[i]
            ]
            height = 0
            for low, high, _ in standing:
                assert low == height
                height += high


@needs_node
@pytest.mark.parametrize("patience", [0, 30])
def test_a_tower_that_seldom_sinks_stays_low_and_holds_all(patience: int) -> None:
    chance = random.Random(6)
    main = (
        'import { stack } from "./stacking.js";\n'
        + _READ
        + "console.log(JSON.stringify(data.asked.map(([from, to, size]) => {"
        + " const p = stack(from, to, size, data.patience);"
        + " return [...p.chunk].map((c, k) => [c, p.from[k], p.to[k], p.low[k]]); })));\n"
    )
    many = 400
    queue = [list(range(many)), [i + 20 for i in range(many)], [chance.randint(1, 9) for _ in range(many)]]
    asked = [_lifetimes(chance, 60), _lifetimes(chance, 200), queue]
    for (begin, end, size), pieces in zip(asked, _run(main, {"asked": asked, "patience": patience}), strict=True):
        alive = [[i for i in range(len(size)) if begin[i] <= t < end[i] and size[i]] for t in range(max(end))]
        ceiling = 1.25 * max(sum(size[i] for i in those) for those in alive)
        for tick, those in enumerate(alive):
            standing = sorted((low, size[c], c) for c, start, stop, low in pieces if start <= tick < stop and size[c])
            assert sorted(c for _, _, c in standing) == those
            tops = [low + high for low, high, _ in standing]
            assert all(top <= low for top, (low, _, _) in zip(tops, standing[1:], strict=False))
            assert max(tops, default=0) <= ceiling


@needs_node
def test_a_long_queue_is_stacked_at_once() -> None:
    """Closing each gap of this queue at once would take billions of steps."""
    main = (
        'import { stack } from "./stacking.js";\n'
        + "const n = 100000;\n"
        + "const from = Array.from({ length: n }, (_, i) => i);\n"
        + "const pieces = stack(from, from.map((i) => i + n), from.map(() => 8));\n"
        + "console.log(JSON.stringify([pieces.count, pieces.way]));\n"
    )
    count, way = _run(main, 0)
    assert count < 10 * 100_000
    assert way == "arrival, late"


@needs_node
def test_the_grid_finds_what_asking_all_rectangles_finds() -> None:
    chance = random.Random(2)
    begin, end, size = _lifetimes(chance, 40)
    low = [sum(size[:i]) for i in range(len(size))]
    points = [[chance.uniform(0, max(end)), chance.uniform(0, sum(size))] for _ in range(3000)]
    main = (
        'import { Grid } from "./grid.js";\n'
        + _READ
        + "const { from, to, low, size, points } = data;\n"
        + "const chunk = size.map((_, i) => i);\n"
        + "const [ends, top] = [Math.max(...to), low.at(-1) + size.at(-1)];\n"
        + "const grid = new Grid({ count: size.length, chunk, from, to, low }, size, ends, top);\n"
        + "console.log(JSON.stringify(points.map(([t, b]) => grid.at(t, b))));\n"
    )
    answers = _run(main, {"from": begin, "to": end, "low": low, "size": size, "points": points})
    for (time, address), piece in zip(points, answers, strict=True):
        hits = [i for i in range(len(size)) if begin[i] <= time < end[i] and low[i] <= address < low[i] + size[i]]
        assert piece == (hits[0] if hits else -1)


@needs_node
def test_zooming_keeps_its_point_and_stays_inside() -> None:
    chance = random.Random(3)
    home = {"t0": 0, "t1": 100, "b0": 0, "b1": 1000}
    asked = [[chance.uniform(0, 100), chance.uniform(0, 1000), chance.uniform(0.2, 3)] for _ in range(200)]
    main = (
        'import { zoomed } from "./scale.js";\n'
        + _READ
        + "let view = data.home;\n"
        + "console.log(JSON.stringify(data.asked.map(([t, b, f]) => { const old = view;"
        + " view = zoomed(view, data.home, { t, b }, { t: f, b: f }, { t: 0.5, b: 16 }); return [old, view]; })));\n"
    )
    for (time, _, factor), (old, new) in zip(asked, _run(main, {"home": home, "asked": asked}), strict=True):
        assert home["t0"] - 1e-6 <= new["t0"] < new["t1"] <= home["t1"] + 1e-6
        assert home["b0"] - 1e-6 <= new["b0"] < new["b1"] <= home["b1"] + 1e-6
        assert new["t1"] - new["t0"] >= 0.5 - 1e-9 and new["b1"] - new["b0"] >= 16 - 1e-9
        if factor < 1 and old["t0"] <= time <= old["t1"]:
            share = [(time - v["t0"]) / (v["t1"] - v["t0"]) for v in (old, new)]
            assert share[0] == pytest.approx(share[1], abs=1e-6)


@needs_node
def test_letters_are_seen_on_every_colour() -> None:
    """WCAG 2.2, 1.4.3: a contrast of 4.5 or more."""
    main = (
        'import { STEPS, inkOn } from "./colours.js";\nimport { KINDS, OTHER } from "./palette.js";\n'
        + "console.log(JSON.stringify([...KINDS, OTHER, ...STEPS].map((fill) => [fill, inkOn(fill)])));\n"
    )
    for fill, ink in _run(main, 0):
        light, dark = sorted((_luminance(fill), _luminance(ink)), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5, fill


@needs_node
def test_names_and_sizes_are_written_as_in_python() -> None:
    main = (
        'import { bytes, shown, xml } from "./text.js";\n'
        + _READ
        + "const { names, sizes } = data;\n"
        + "const found = { shown: names.map((n) => shown(n, 20)), xml: names.map(xml), bytes: sizes.map(bytes) };\n"
        + "console.log(JSON.stringify(found));\n"
    )
    unseen = [chr(c) for c in (*range(32), 0x7F, 0xAD, 0x61C, 0x200B, 0x200E, 0x2028, 0x202E, 0xFEFF, 0xD800, 0xE000)]
    names = [f"a{c}b" for c in unseen] + ["x" * 50, "batch_normalization_12", "🙂" * 30, "<b a=\"1\" c='2'>&", "日本語"]
    chance = random.Random(5)
    sizes = [0, 1, 1023, 1024, 1152, 1536, 2**20 - 1, 2**40 - 1, 2**40, 2**51]
    sizes += [128 * chance.randint(0, 2**16) for _ in range(300)] + [chance.randint(0, 2**45) for _ in range(300)]
    written = _run(main, {"names": [*names, ""], "sizes": sizes})
    assert written["shown"] == [*(printable(name, 20) for name in names), "(no name)"]
    assert written["xml"][names.index("<b a=\"1\" c='2'>&")] == "&lt;b a=&quot;1&quot; c=&#39;2&#39;&gt;&amp;"
    assert written["bytes"] == [format_bytes(size) for size in sizes]


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _lifetimes(chance: random.Random, count: int) -> Sizes:
    begin = [chance.randint(0, 30) for _ in range(count)]
    return [begin, [b + chance.randint(1, 12) for b in begin], [chance.randint(0, 9) for _ in range(count)]]
