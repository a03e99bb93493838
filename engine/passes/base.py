"""The interface of a pass, and passes that apply one rewriting rule."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress

from attrs import frozen

from engine.graph.graph import Graph
from engine.graph.operator import Operator
from engine.passes.edit import Edit
from engine.text.faults import name_operator
from ops.symbolic.exact import UnknownLengthError

MOST_ROUNDS = 16
"""A bound on how often passes run on their own results, so that passes that undo each other end."""

LAST_BITS = 1e-4
"""What passes that compute in another order may move an output by, in parts of its largest value."""


class Pass(ABC):
    """A change to graphs that compute the same afterwards, under the same names.

    Where dimensions are open, only what is proved for all lengths counts as equal, and to ask which of two lengths is
    less raises UnknownLengthError: the pass passes by. `name` is for people, such as "constant folding". `tolerance` is
    what the pass may move an output by, in parts of its largest value; 0.0 where it keeps every bit.
    """

    name: str
    tolerance: float = LAST_BITS

    @abstractmethod
    def apply(self, edit: Edit) -> None:
        """Changes the graph where the pass applies."""

    def apply_to(self, edit: Edit) -> None:
        """Applies the pass once. It ends where it asks for a length that is not known; earlier changes stay."""
        with edit.undecided(), suppress(UnknownLengthError):
            self.apply(edit)

    def __call__(self, graph: Graph) -> Graph:
        """Applies the pass until it changes nothing. Returns the very graph where it changes nothing at all.

        A pass that always changes something is cut off.
        """
        for _ in range(MOST_ROUNDS):
            edit = Edit(graph)
            self.apply_to(edit)
            if not edit.changes:
                break
            graph = edit.graph()
        return graph


Rule = Callable[[Edit, Operator], object]
"""A rewriting rule: examines one operator of an edit, and may change the operators around it."""
_MOST_SWEEPS = 1000
"""A bound on the sweeps of one pass, so that two rules that undo each other end. Rules of this project need few."""


@frozen(eq=False)
class RulePass(Pass):
    """A pass that applies a rule to every operator, in order, until a whole sweep changes nothing."""

    name: str
    rule: Rule
    tolerance: float = LAST_BITS

    def apply(self, edit: Edit) -> None:
        """Sweeps over the operators."""
        for _ in range(_MOST_SWEEPS):
            before = edit.changes
            for operator_id in edit.operator_ids():
                if edit.has_operator(operator_id):
                    edit.insert_behind(operator_id)
                    self._apply_at(edit, edit.operator(operator_id))
            if edit.changes == before:
                return

    def _apply_at(self, edit: Edit, operator: Operator) -> None:
        try:
            self.rule(edit, operator)
        except UnknownLengthError:
            pass
        except Exception as error:
            name_operator(error, operator.name)
            raise


def rewrite(graph: Graph, rule: Rule) -> Graph:
    """Returns the graph after sweeps of a rule until one changes nothing; the very graph where the first does not."""
    return RulePass("rewrite", rule)(graph)
