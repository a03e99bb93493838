"""Seeds that Hypothesis draws: arrays of a generator with such a seed are the same when an example is replayed."""

from hypothesis import strategies as st

SEEDS = st.integers(0, 2**32 - 1)
