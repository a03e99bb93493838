"""Ctrl-C while a network runs comes through within 100 ms in every mode, and the executable is as good as before.

`python -m tests.fuzz --only interrupts` tries as many moments as one likes.
"""

import random

import pytest

from tests.helpers.interrupts import DELAY, MODES, NOT_SENT, interrupted, python_handles_interrupts


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_an_interrupt_comes_through_in_every_mode_and_harms_nothing(mode: str) -> None:
    network, chance, delays = interrupted.__wrapped__(mode), random.Random(1), list[float]()
    with python_handles_interrupts():
        while len(delays) < 6:
            delay = network.delay(chance.random())
            if delay != NOT_SENT:
                delays.append(delay)
            assert network.is_as_before()
    assert max(delays) <= 2 * DELAY
