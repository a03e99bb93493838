"""Operators on channels-last tensors (N, spatial..., C), which a pass makes of those on (N, C, spatial...)."""
