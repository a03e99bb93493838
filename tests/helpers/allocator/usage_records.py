"""Tensor usage records of three networks (float32, channels padded to multiples of 4; Pisarchyk and Lee 2020).

Operator i writes tensor i; its last reader is operator i + 1, unless another one is listed. Inputs and outputs of the
network are left out.
"""

from collections.abc import Mapping

import numpy as np
from attrs import frozen

from allocator.problem import FREE, Problem


@frozen
class Records:
    """The bytes of each tensor, and the last readers of those that are read later than by the next operator."""

    size: tuple[int, ...]
    last: Mapping[int, int]

    def problem(self) -> Problem:
        """Returns the records as chunks."""
        first = np.arange(len(self.size))
        last = np.array([self.last.get(i, i + 1) for i in first.tolist()])
        return Problem(first, last + 1, self.size, np.ones(len(first)), np.full(len(first), FREE))


# fmt: off
MOBILENET_V1 = Records(
    size=(
        1605632, 1605632, 3211264, 802816, 1605632, 1605632, 1605632, 401408, 802816, 802816, 802816, 200704,
        401408, 401408, 401408, 401408, 401408, 401408, 401408, 401408, 401408, 401408, 401408, 100352,
        200704, 200704, 200704, 4096, 4016, 4016,
    ),
    last={},
)

MOBILENET_V2 = Records(
    size=(
        1605632, 1605632, 802816, 4816896, 1204224, 301056, 1806336, 1806336, 301056, 301056, 1806336, 451584,
        100352, 602112, 602112, 100352, 100352, 602112, 602112, 100352, 100352, 602112, 150528, 50176, 301056,
        301056, 50176, 50176, 301056, 301056, 50176, 50176, 301056, 301056, 50176, 50176, 301056, 301056,
        75264, 451584, 451584, 75264, 75264, 451584, 451584, 75264, 75264, 451584, 112896, 31360, 188160,
        188160, 31360, 31360, 188160, 188160, 31360, 31360, 188160, 188160, 62720, 250880, 5120, 4016, 4016,
    ),
    last={
        5: 9, 12: 16, 16: 20, 23: 27, 27: 31, 31: 35, 38: 42, 42: 46, 49: 53, 53: 57,
    },
)

DEEPLAB_V3 = Records(
    size=(
        1065024, 1065024, 532512, 3195072, 811200, 202800, 1216800, 1216800, 202800, 202800, 1216800, 313632,
        69696, 418176, 418176, 69696, 69696, 418176, 418176, 69696, 69696, 418176, 418176, 139392, 836352,
        836352, 139392, 139392, 836352, 836352, 139392, 139392, 836352, 836352, 139392, 139392, 836352,
        836352, 209088, 1254528, 1254528, 209088, 209088, 1254528, 1254528, 209088, 209088, 1254528, 1254528,
        348480, 2090880, 2090880, 348480, 348480, 2090880, 2090880, 348480, 348480, 2090880, 2090880, 696960,
        640, 1024, 1115136, 1115136, 2230272, 1115136, 104544,
    ),
    last={
        5: 9, 12: 16, 16: 20, 23: 27, 27: 31, 31: 35, 38: 42, 42: 46, 49: 53, 53: 57, 60: 64, 63: 65,
    },
)
# fmt: on

NETWORKS = {"MobileNet v1": MOBILENET_V1, "MobileNet v2": MOBILENET_V2, "DeepLab v3": DEEPLAB_V3}

PAPER_RECORDS = ((0, 1, 32), (1, 4, 28), (2, 5, 36), (3, 5, 16), (4, 5, 8), (5, 7, 64), (6, 8, 10), (7, 8, 40))
"""Tensor usage records (first operator, last operator, bytes) of the example in Pisarchyk and Lee 2020."""


def paper_example() -> Problem:
    """Returns the example of the paper as a problem."""
    first, last, size = (np.array(c) for c in zip(*PAPER_RECORDS, strict=True))
    return Problem(first, last + 1, size, np.ones(8), np.full(8, FREE))
