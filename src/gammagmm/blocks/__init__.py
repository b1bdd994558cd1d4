"""The same steps for rows in blocks on Dask; the only subpackage that imports Dask."""
