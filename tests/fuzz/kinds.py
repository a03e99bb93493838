"""All kinds of inputs that are fuzzed."""

from collections.abc import Mapping

from tests.fuzz.base import Kind
from tests.fuzz.graphs import LENGTHS, PROJECT_GRAPHS, TRAINING
from tests.fuzz.interrupts import INTERRUPTS
from tests.fuzz.kills import KILLS
from tests.fuzz.models import MODELS
from tests.fuzz.pages import PAGES
from tests.fuzz.plans import PLANS
from tests.fuzz.reference import SLOPES, VALUES
from tests.fuzz.texts import TEXTS
from tests.fuzz.traces import TRACES

KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        *(MODELS, TEXTS, TRACES, PLANS, PROJECT_GRAPHS, TRAINING, LENGTHS, VALUES, SLOPES, PAGES),
        *(INTERRUPTS, KILLS),
    )
}
"""By name, in the order in which they take turns."""
