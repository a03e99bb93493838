"""Why an arena is as large as it is, one tensor, one operator, and what other ways to plan would cost."""

from typing import TYPE_CHECKING

from ops.lazy import importer

if TYPE_CHECKING:  # most plans are never explained; at run time each name is imported when it is first used
    from engine.explain.alternatives import Alternatives, AlternativeSearch, FindAlternatives, no_alternatives
    from engine.explain.explanation import Explanation, explain
    from engine.explain.operator import OperatorExplanation, explain_operator
    from engine.explain.tensor import TensorExplanation, explain_tensor

__all__ = [
    "AlternativeSearch",
    "Alternatives",
    "Explanation",
    "FindAlternatives",
    "OperatorExplanation",
    "TensorExplanation",
    "explain",
    "explain_operator",
    "explain_tensor",
    "no_alternatives",
]

_HOMES = {
    "AlternativeSearch": "engine.explain.alternatives:AlternativeSearch",
    "Alternatives": "engine.explain.alternatives:Alternatives",
    "FindAlternatives": "engine.explain.alternatives:FindAlternatives",
    "no_alternatives": "engine.explain.alternatives:no_alternatives",
    "Explanation": "engine.explain.explanation:Explanation",
    "explain": "engine.explain.explanation:explain",
    "OperatorExplanation": "engine.explain.operator:OperatorExplanation",
    "explain_operator": "engine.explain.operator:explain_operator",
    "TensorExplanation": "engine.explain.tensor:TensorExplanation",
    "explain_tensor": "engine.explain.tensor:explain_tensor",
}

if not TYPE_CHECKING:  # a checker of types would take every name for one that exists
    __getattr__ = importer(__name__, _HOMES)
