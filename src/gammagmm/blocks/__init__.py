"""The same steps for rows in blocks on Dask; the only room that imports Dask."""
