"""Carried plans that lie: texts of saved plans, mutated, followed and run; and models with such a plan inside."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import engine
from allocator.solvers import STRATEGIES
from engine import Graph
from engine.onnx.embedded import PREFIX, plan_of, texts_of
from engine.saved.embedded import EmbeddedPlan
from engine.saved.fingerprint import digest_of
from engine.saved.replay import embed
from tests.fuzz.base import MUTANTS, Kind, Tried
from tests.fuzz.bytes_mutations import mutated_text, number
from tests.fuzz.modes import same_bits
from tests.helpers.graphs.random_graphs import build, seeded
from tests.helpers.graphs.training_graphs import chain
from tests.helpers.graphs.unplanned_run import random_feeds, run_unplanned

_BASES = 24
_REMAT = 7
"""The graph whose plan computes values again."""


def make(rng: np.random.Generator) -> bytes:
    """Makes the number of a graph, and the texts of its plan after one to three changes."""
    seed = int(rng.integers(_BASES))
    texts = dict(texts_of(saved(seed)))
    for _ in range(1 + rng.integers(3)):
        key = sorted(texts)[rng.integers(len(texts))]
        texts[key] = _changed(texts[key], rng)
    if rng.random() < 0.7:
        _sign(texts)
    return json.dumps({"graph": seed, "texts": texts}).encode()


def _changed(text: str, rng: np.random.Generator) -> str:
    """Changes a text as a text, or as the data in it."""
    try:
        data = json.loads(text)
    except ValueError:
        names = list(STRATEGIES)
        return names[rng.integers(len(names))] if rng.random() < 0.5 else _garbled(text, rng)
    return _garbled(text, rng) if rng.random() < 0.2 else json.dumps(_lie(data, rng))


def _garbled(text: str, rng: np.random.Generator) -> str:
    return mutated_text(text.encode(), rng).decode(errors="replace")


def _lie(data: Any, rng: np.random.Generator) -> Any:
    """Changes one number, one place or one name somewhere inside."""
    if isinstance(data, list) and data:
        at, other = (int(rng.integers(len(data))) for _ in range(2))
        kind = rng.random()
        if kind < 0.2:
            data[at], data[other] = data[other], data[at]
        elif kind < 0.3:
            data[at:at] = [data[other]] if rng.random() < 0.5 else []
        elif kind < 0.4:
            del data[at]
        else:
            data[at] = _lie(data[at], rng)
        return data
    if isinstance(data, dict) and data:
        key = sorted(data)[rng.integers(len(data))]
        return data | {key: _lie(data[key], rng)}
    if isinstance(data, bool) or not isinstance(data, (int, float)):
        return (None, True, False, "x", -1, [], {}, 0)[rng.integers(8)]
    return data + 64 * int(rng.integers(-8, 9)) if rng.random() < 0.7 else number(rng)


def _sign(texts: dict[str, str]) -> None:
    """Makes the digest right again, so that a lie is not seen by that alone."""
    try:
        calls, order, again = (json.loads(texts[PREFIX + key]) for key in ("calls", "order", "again"))
    except ValueError:
        return
    texts[PREFIX + "digest"] = digest_of([calls, order, again])


@cache
def graph_of(seed: int) -> Graph:
    """Returns a small graph; one trains, and is planned within a budget."""
    return chain(4) if seed == _REMAT else build(seeded(seed), 10)


@cache
def saved(seed: int) -> EmbeddedPlan:
    """Returns the plan of that graph."""
    return embed(engine.make_plan(graph_of(seed), **_options(seed)))


def _options(seed: int) -> dict[str, Any]:
    options: dict[str, Any] = {"optimise": 0, "nodes": 100}
    if seed == _REMAT:
        options["budget"] = engine.make_plan(graph_of(seed), **options).arena_bytes * 4 // 5
    elif seed % 3 == 1:
        options["order"] = "memory"
    return options


def attempt(path: Path) -> Tried:
    """Follows the plan; what runs must be right, or the plan refused."""
    content = json.loads(path.read_bytes())
    graph, options = graph_of(content["graph"]), _options(content["graph"])
    exe = engine.compile(graph, embedded=plan_of(content["texts"], "the plan", False), threads=1, **options)
    if graph.parameters:
        wanted = engine.compile(graph, threads=1, **options).run(random_feeds(graph))
    else:
        wanted = run_unplanned(graph, random_feeds(graph))
    same_bits(wanted, exe.run(random_feeds(graph)), what="a carried plan")
    return Tried("followed" if exe.plan.is_followed else "made anew", exe.arena_bytes)


PLANS = Kind("plans", MUTANTS, "plan.json", make, attempt)
