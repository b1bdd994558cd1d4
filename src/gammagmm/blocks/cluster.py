"""A cluster to work on, and folders of Parquet files that its workers read and write."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gammagmm.blocks.collection import import_dask
from gammagmm.errors import ClusterError

__all__ = ["open_cluster"]

CONNECT_SECONDS = 10


@contextmanager
def open_cluster(scheduler: str | None = None, n_workers: int | None = None) -> Iterator[Any]:
    """Client of the cluster at the address `scheduler`, or of a local one of `n_workers` processes.

    A local cluster ends with the context; `n_workers` None is one for each core.
    """
    distributed = import_dask().distributed
    if scheduler is None:
        n_workers = n_workers or os.cpu_count()
        with (
            distributed.LocalCluster(n_workers=n_workers, threads_per_worker=1) as cluster,
            distributed.Client(cluster) as client,
        ):
            yield client
        return
    try:
        client = distributed.Client(scheduler, timeout=CONNECT_SECONDS)
    except (OSError, ValueError) as error:
        what = f"No Dask scheduler answers at {scheduler}"
        raise ClusterError(f"{what}. Check the address, and that it runs.") from error
    with client:
        try:
            client.wait_for_workers(1, timeout=CONNECT_SECONDS)
        except TimeoutError as error:
            what = f"The Dask scheduler at {scheduler} has no workers"
            raise ClusterError(f"{what}. Start some, and try again.") from error
        yield client
