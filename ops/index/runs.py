"""Runs of equal keys in sorted order: how many there are, and of each where it begins and how long it is."""

import numpy as np
from attrs import frozen

from ops.common.indices import INT64
from ops.index.sorting import count_up
from ops.tensor.spec import Array


@frozen(eq=False)
class Runs:
    """Sorted keys (n, bytes) of slices, and the places of these slices, of equals the first one first; n is 1 or more.

    `rooms` are four temporaries of int64[n + 1], `marks` is one of bool[n].
    """

    keys: Array
    places: Array
    rooms: tuple[Array, ...]
    marks: Array

    def write(self, first: Array, inverse: Array, counts: Array, *, in_order: bool) -> int:
        """Writes where each number first occurs, the number of each slice, and how often each occurs.

        Numbers ascend with the keys where `in_order` is set, else with the places. Returns how many there are.
        """
        numbers, lengths, starts, firsts = self.rooms
        total = self._number(inverse)
        np.put(firsts, numbers[:-1], self.places)
        for step in count_up(lengths[:-1]):
            step()
        np.put(starts, numbers[:-1], lengths[:-1])
        starts[total] = len(self.places)
        np.subtract(starts[1 : total + 1], starts[:total], lengths[:total])
        first.fill(0)
        counts.fill(0)
        if in_order:
            np.copyto(first[:total], firsts[:total])
            np.copyto(counts[:total], lengths[:total])
        else:
            self._rename(total, first, inverse, counts)
        return total

    def _number(self, inverse: Array) -> int:
        """Writes the number of each slice; then, in the first room, that of each run where it begins, elsewhere n."""
        numbers, spare, *_ = (room[:-1] for room in self.rooms)
        self.marks[0] = True
        self.marks[1:] = False
        if self.keys.size:
            keys = self.keys.view(f"S{self.keys.shape[1]}")[:, 0]
            np.not_equal(keys[1:], keys[:-1], self.marks[1:])
        np.copyto(spare, self.marks)
        np.add.accumulate(spare, 0, None, numbers)
        np.subtract(numbers, np.ones((), INT64), numbers)
        np.put(inverse, self.places, numbers)
        total = int(numbers[-1]) + 1
        np.logical_not(self.marks, self.marks)
        np.copyto(numbers, np.asarray(len(numbers), INT64), where=self.marks)
        return total

    def _rename(self, total: int, first: Array, inverse: Array, counts: Array) -> None:
        """Gives each run a new number, in the order of first places."""
        names, lengths, by_place, firsts = self.rooms
        names.fill(0)
        np.put(names, firsts[:total], 1)
        np.add.accumulate(names, 0, None, by_place)
        np.subtract(by_place, np.ones((), INT64), by_place)
        np.take(by_place, firsts[:total], None, names[:total], "clip")
        np.put(first, names[:total], firsts[:total])
        np.put(counts, names[:total], lengths[:total])
        np.copyto(lengths[:-1], inverse)
        np.take(names, lengths[:-1], None, inverse, "clip")
