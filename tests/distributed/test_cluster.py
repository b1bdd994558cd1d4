"""Clear errors of a cluster, without one."""

from __future__ import annotations

from concurrent.futures import CancelledError
from types import SimpleNamespace

import pytest

from gammagmm.distributed.cluster import clear_errors, open_cluster
from gammagmm.errors import ClusterError

distributed = pytest.importorskip("distributed")

RUNNING, CLOSED = SimpleNamespace(status="running"), SimpleNamespace(status="closed")


def failing(error, client):
    with clear_errors(client):
        raise error


def test_a_closed_client_is_not_used():
    with pytest.raises(ClusterError, match=r"is lost \(it was closed\)"), clear_errors(CLOSED):
        pytest.fail("no work without a cluster")
    for client in (None, RUNNING):
        with clear_errors(client):
            pass


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (CancelledError("lost\n  key: a."), "lost key: a"),
        (CancelledError(), "CancelledError"),
        (CancelledError("x" * 300), "x" * 200),
    ],
)
def test_a_task_that_is_cancelled_says_that_the_scheduler_is_lost(error, reason):
    with pytest.raises(ClusterError) as caught:
        failing(error, RUNNING)
    assert caught.value.what == f"The connection to the Dask scheduler is lost ({reason})"


def test_an_error_of_reading_is_that_of_the_cluster_only_if_it_is_lost():
    for client in (None, RUNNING):
        with pytest.raises(OSError, match="no such file"):
            failing(OSError("no such file"), client)
    client = SimpleNamespace(status="running")

    def lose():
        client.status = "closed"
        return OSError("broken pipe")

    with pytest.raises(ClusterError, match=r"\(broken pipe\)"), clear_errors(client):
        raise lose()


@pytest.mark.parametrize(
    ("scheduler_after", "worker_after", "message"),
    [
        (1.0, 1.0, None),
        (3600.0, 1.0, "No Dask scheduler answers at tcp://there"),
        (1.0, 3600.0, "The Dask scheduler at tcp://there has no workers"),
    ],
)
def test_a_scheduler_and_a_worker_may_take_a_second(
    scheduler_after, worker_after, message, monkeypatch
):
    class Client:
        """A client whose scheduler and first worker answer after so many seconds."""

        def __init__(self, address, timeout):
            self.address, self.is_open = address, True
            if timeout < scheduler_after:
                raise OSError("timed out")

        def __enter__(self):
            return self

        def __exit__(self, *error):
            self.is_open = False

        def wait_for_workers(self, n_workers, timeout):
            assert n_workers == 1
            if timeout < worker_after:
                raise TimeoutError

    monkeypatch.setattr("dask.distributed.Client", Client)
    if message is None:
        with open_cluster("tcp://there") as client:
            assert (client.address, client.is_open) == ("tcp://there", True)
        assert not client.is_open
        return
    with pytest.raises(ClusterError, match=message), open_cluster("tcp://there"):
        pytest.fail("no work without a cluster")
