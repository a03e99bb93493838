"""Workers that carry out tasks: processes of this machine, those of a Dask scheduler, and anything with an Executor."""
