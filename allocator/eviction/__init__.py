"""Reference counting within a budget: chunks are evicted where a heap has no room, and computed again when read.

Kirisame et al., "Dynamic tensor rematerialization" (ICLR 2021); Zhang et al., "Coop: memory is not a commodity"
(NeurIPS 2023).
"""
