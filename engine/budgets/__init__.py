"""Meeting a budget: the cheapest way to keep within it, and the largest lengths that do."""
