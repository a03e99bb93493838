"""The table of planted faults: one line of the project gone wrong in each row, and the judge that must see it.

`tests/test_faults.py` puts each of them in, and fails where another judge sees it, or none.
"""

from tests.helpers.faults.base import Fault
from tests.helpers.faults.bounds import IN_BOUNDS
from tests.helpers.faults.memories import MEMORY_FAULTS
from tests.helpers.faults.memory import MEMORY
from tests.helpers.faults.order import ORDER
from tests.helpers.faults.passes import PASSES
from tests.helpers.faults.places import PLACES
from tests.helpers.faults.runs import RUNS
from tests.helpers.faults.stages import STAGES

FAULTS: tuple[Fault, ...] = (*MEMORY, *IN_BOUNDS, *PLACES, *MEMORY_FAULTS, *ORDER, *STAGES, *PASSES, *RUNS)
