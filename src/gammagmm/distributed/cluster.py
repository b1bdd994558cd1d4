"""A Dask cluster: opening one, computing on it, and clear errors when it is lost."""

from __future__ import annotations

import os
from asyncio import CancelledError as AsyncCancelled
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import Any

from gammagmm.errors import ClusterError, MissingExtraError

__all__ = [
    "clear_errors",
    "compute",
    "current_client",
    "import_dask",
    "open_cluster",
    "send",
]

CONNECT_SECONDS = 10
LOOPBACK = "127.0.0.1"

# Fitted detectors are part of the graph, so that a part lost with a worker can be scored again.
LARGE_GRAPHS = {"distributed.admin.large-graph-warning-threshold": "1TB"}


def import_dask() -> Any:
    """The package dask, with arrays and data frames."""
    try:
        import dask
        import dask.array
        import dask.dataframe
        import dask.distributed
    except ImportError as error:
        raise MissingExtraError("A table on Dask needs Dask", "dask", name=error.name) from error
    return dask


@contextmanager
def open_cluster(scheduler: str | None = None, n_workers: int | None = None) -> Iterator[Any]:
    """Client of the cluster at the address `scheduler`, or of a local one of `n_workers` processes.

    A local cluster ends with the context; `n_workers=None` starts one worker for each core.
    """
    distributed = import_dask().distributed
    if scheduler is None:
        n_workers = n_workers or os.cpu_count()
        with (
            # Without these addresses, the pages with the state of the cluster would be public. A
            # free port is found without a warning.
            distributed.LocalCluster(
                n_workers=n_workers,
                threads_per_worker=1,
                host=LOOPBACK,
                dashboard_address=f"{LOOPBACK}:0",
                worker_dashboard_address=f"{LOOPBACK}:0",
            ) as cluster,
            distributed.Client(cluster) as client,
        ):
            yield client
        return
    try:
        client = distributed.Client(scheduler, timeout=CONNECT_SECONDS)
    except (OSError, ValueError) as error:
        what = f"No Dask scheduler answers at {scheduler}"
        raise ClusterError(
            what, "Check the address, and check that the scheduler is running."
        ) from error
    with client:
        try:
            client.wait_for_workers(1, timeout=CONNECT_SECONDS)
        except TimeoutError as error:
            what = f"The Dask scheduler at {scheduler} has no workers"
            raise ClusterError(what, "Start some workers, and try again.") from error
        yield client


def current_client() -> Any:
    """The client of the cluster that is in use, or None where Dask uses threads."""
    try:
        return import_dask().distributed.get_client()
    except ValueError:
        return None


def send(arguments: Sequence[Any]) -> list[Any]:
    """Each argument as a delayed value of its own, which a worker receives once."""
    delayed = import_dask().delayed
    return [delayed(argument, traverse=False) for argument in arguments]


def compute(values: Sequence[Any], client: Any) -> tuple[Any, ...]:
    """The delayed `values`, computed by the cluster of `client` or by threads."""
    dask = import_dask()
    with clear_errors(client), dask.config.set(LARGE_GRAPHS):
        if client is None:
            return tuple(dask.compute(*values))
        return tuple(client.gather(client.compute(list(values))))


@contextmanager
def clear_errors(client: Any) -> Iterator[None]:
    """Raise a `ClusterError` in place of what Dask raises when the cluster is lost.

    A client that has lost its scheduler must not be used: Dask would silently use threads instead.
    """
    import distributed
    from distributed import KilledWorker

    # Older versions have no class for it.
    closed = getattr(distributed.client, "ClosedClientError", CancelledError)

    if _is_lost(client):
        raise _lost("it was closed")
    try:
        yield
    except KilledWorker as error:
        raise ClusterError(
            "A task on the Dask cluster failed because every worker that ran it died "
            f"({error.task})",
            "The usual cause is a lack of memory: use smaller parts, or give the workers more "
            "memory.",
        ) from error
    except (CancelledError, AsyncCancelled, closed) as error:
        raise _lost(_brief(error)) from error
    except OSError as error:  # of a connection, or of a task that reads a file
        if not _is_lost(client):
            raise
        raise _lost(_brief(error)) from error


def _is_lost(client: Any) -> bool:
    return client is not None and client.status != "running"


def _lost(reason: str) -> ClusterError:
    what = f"The connection to the Dask scheduler is lost ({reason})"
    return ClusterError(what, "Start the cluster and fit again.")


def _brief(error: BaseException) -> str:
    """The message of `error` on one line."""
    return " ".join(str(error).split()).rstrip(".")[:200] or type(error).__name__
