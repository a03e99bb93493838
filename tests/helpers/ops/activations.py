"""Activations that fused operators apply, as attributes of these operators."""

from typing import Any

PIECEWISE_LINEAR: list[dict[str, Any]] = [
    {},
    {"activation": "clip", "low": 0.0},
    {"activation": "clip", "low": -0.5, "high": 0.75},
    {"activation": "leaky_relu", "slope": 0.1},
    {"activation": "leaky_relu", "slope": 1.5},
]
"""Those of convolutions and of products of matrices."""
ACTIVATIONS: list[dict[str, Any]] = [
    *PIECEWISE_LINEAR,
    {"activation": "gelu_erf"},
    {"activation": "gelu_tanh"},
    {"activation": "silu"},
]
"""Those of products of matrices."""
