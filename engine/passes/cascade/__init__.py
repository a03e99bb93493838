"""Cascades: runs of operators on images that are computed stripe after stripe of rows.

`rows` says which rows of each inner tensor a stripe needs, `search` which operators are cut and into how many stripes,
`rewrite` writes the graph, and `choose` takes the graph with the least bytes.
"""
