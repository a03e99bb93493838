import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from allocator.cliques.aligned import bytes_in_cells
from allocator.cliques.clique import Crowd
from allocator.problem import FREE
from tests.helpers.allocator.random_cliques import crowds, stacked


@given(crowds())
def test_aligned_bound_of_a_clique_is_below_every_stack(crowd: Crowd) -> None:
    assert bytes_in_cells(crowd) <= stacked(crowd)


@given(crowds(), st.sampled_from((1, 4, 64)))
def test_aligned_bound_is_met_with_one_alignment_from_offset_zero(crowd: Crowd, alignment: int) -> None:
    zeros = np.zeros(len(crowd), np.int64)
    plain = Crowd(crowd.ids, crowd.root, crowd.size, zeros + alignment, zeros, zeros, zeros, zeros + FREE)
    assert bytes_in_cells(plain) == stacked(plain)
