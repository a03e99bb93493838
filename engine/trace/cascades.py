"""When the stripes of cascades run: which ticks are those of which stripe."""

from collections import Counter
from collections.abc import Iterator

from attrs import evolve

from engine.planning.placed import CascadeStripe, PlacedPlan
from engine.trace.details import StripeRun
from ops.common.tiling import ROWS


def stripe_runs(plan: PlacedPlan) -> tuple[StripeRun, ...]:
    """Returns the ticks of each stripe. What runs between two operators of a stripe, such as a cast, counts to it."""
    runs = list[StripeRun]()
    for tick, run in _marked(plan):
        last = runs[-1] if runs else run
        if runs and (last.number, last.stripe) == (run.number, run.stripe):
            runs[-1] = evolve(last, end=tick + 1)
        else:
            runs.append(run)
    return tuple(runs)


def _marked(plan: PlacedPlan) -> Iterator[tuple[int, StripeRun]]:
    """Yields the ticks of calls that are in a stripe, each as a run of its own."""
    stripe_of = dict[str, tuple[CascadeStripe, str, int]]()
    for cascaded in (each for done in plan.optimisation for each in done.cascades):
        counts = Counter(stripe.cascade for stripe in cascaded.stripes)
        for stripe in cascaded.stripes:
            first, last, _ = cascaded.runs[stripe.cascade]
            about = stripe, f"{first} to {last}", counts[stripe.cascade]
            stripe_of |= dict.fromkeys(stripe.operators, about)
    for call in plan.lowered.calls if stripe_of else ():
        if call.name in stripe_of:
            stripe, cascade, count = stripe_of[call.name]
            begin, end, is_columns = call.tick, call.tick + 1, stripe.axis != ROWS
            yield begin, StripeRun(stripe.cascade, cascade, stripe.stripe, count, stripe.rows, begin, end, is_columns)
