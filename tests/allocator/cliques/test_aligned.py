import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from allocator.cliques.aligned import bytes_in_cells
from allocator.cliques.clique import Clique
from allocator.problem import FREE
from tests.helpers.allocator.random_cliques import cliques, stacked


@given(cliques())
def test_aligned_bound_of_a_clique_is_below_every_stack(clique: Clique) -> None:
    assert bytes_in_cells(clique) <= stacked(clique)


@given(cliques(), st.sampled_from((1, 4, 64)))
def test_aligned_bound_is_met_with_one_alignment_from_offset_zero(clique: Clique, alignment: int) -> None:
    zeros = np.zeros(len(clique), np.int64)
    plain = Clique(clique.ids, clique.root, clique.size, zeros + alignment, zeros, zeros, zeros, zeros + FREE)
    assert bytes_in_cells(plain) == stacked(plain)
