"""Clear errors of a cluster, without one."""

from __future__ import annotations

from concurrent.futures import CancelledError
from types import SimpleNamespace

import pytest

from gammagmm.blocks.cluster import clear_errors
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
