"""Tables on Dask: a sample of the rows, and maps over the parts; only this room imports Dask."""
