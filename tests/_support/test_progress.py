"""Progress: what the callback hears, and what the bar shows."""

from __future__ import annotations

import builtins

import pytest

from gammagmm._support.progress import check_progress, tell
from gammagmm.errors import MissingExtraError


def test_callback_alone_writes_nothing(capsys):
    heard = []
    with tell(lambda *event: heard.append(event), 0, "detectors", 1) as progress:
        progress("KNN", "started", 0.0)
        progress("KNN", "ok", 1.5)
    assert heard == [("KNN", "started", 0.0), ("KNN", "ok", 1.5)]
    assert capsys.readouterr() == ("", "")


def test_nobody_listens(capsys):
    with tell(None, 0, "detectors", 1) as progress:
        progress("KNN", "started", 0.0)
    assert capsys.readouterr() == ("", "")


def test_bar_on_standard_error_and_callback(capsys):
    heard = []
    with tell(lambda *event: heard.append(event), 1, "detectors", 2) as progress:
        for name, status in (("KNN", "ok"), ("LOF", "failed")):
            progress(name, "started", 0.0)
            progress(name, status, 1.0)
    out, err = capsys.readouterr()
    assert out == ""
    assert "detectors: 100%" in err
    assert "2/2" in err
    assert "LOF" in err
    assert len(heard) == 4


@pytest.mark.parametrize("progress", [3, "bar", True])
def test_progress_must_be_callable(progress):
    with pytest.raises(TypeError, match=r"progress must be a function or None, got"):
        check_progress(progress, 0)


def test_no_bar_without_tqdm(monkeypatch):
    real = builtins.__import__

    def without_tqdm(name, *args, **kwargs):
        if name.split(".")[0] == "tqdm":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_tqdm)
    check_progress(None, 0)
    with pytest.raises(MissingExtraError, match=r"verbose=1 needs tqdm: pip install tqdm\."):
        check_progress(None, 1)
