"""The names of places, for options and messages; places themselves take long to load."""

HERE, PROCESSES = "here", "processes"
PREFIX = "dask://"
ON = f"{PROCESSES}, {HERE}, or {PREFIX}HOST:PORT"
"""The names, for help texts and messages."""
AS_MANY_AS_PROCESSORS = 0
