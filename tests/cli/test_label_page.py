"""The server of the labelling page: who may ask, what is kept, and messages that are not ours."""

from __future__ import annotations

import http.client
import json
import threading
from urllib.parse import urlsplit

import numpy as np
import pytest

from gammagmm import GammaGMM
from gammagmm.cli.label import SheetFile
from gammagmm.cli.label_page import LabelServer, open_browser
from gammagmm.cli.sheet import read_sheet
from gammagmm.datasets import load_demo
from gammagmm.estimator.label_session import LabelSession
from gammagmm.report.label_view import LabelView


@pytest.fixture(scope="module")
def fit():
    return GammaGMM(["KNN", "LOF"], scale=None, n_runs=2, random_state=0).fit(load_demo().X).fit_


@pytest.fixture
def served(fit, tmp_path):
    session = LabelSession(fit, n=5, rng=np.random.default_rng(0))
    view = LabelView(session, save=SheetFile(tmp_path / "sheet.csv").save)
    view.extend()
    server = LabelServer(view)
    running = threading.Thread(target=server.run)
    running.start()
    yield server
    server.stop()
    running.join(20)
    assert not running.is_alive()


def ask(server, method="POST", path=None, message=None, **headers):
    """Status, headers and text of an answer; headers that are None are not sent."""
    address = urlsplit(server.address)
    origin = f"http://{address.netloc}"
    given = {"Host": address.netloc, "Origin": origin, "Content-Type": "application/json"}
    given |= {name.replace("_", "-"): value for name, value in headers.items()}
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=20)
    body = json.dumps(message or {"kind": "open"})
    path = f"{address.path}api" if path is None else path
    sent = {name: value for name, value in given.items() if value is not None}
    connection.request(method, path, body if method == "POST" else None, sent)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, dict(answer.getheaders()), text


def test_the_page_has_all_it_needs_and_allows_nothing_else(served):
    token = urlsplit(served.address).path
    for name, kind in (("", "html"), ("label.js", "javascript"), ("style.css", "css")):
        status, headers, text = ask(served, "GET", f"{token}{name}", Origin=None)
        assert status == 200
        assert kind in headers["Content-Type"]
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert headers["Cache-Control"] == "no-store"
        assert "https:" not in text
    assert ask(served, "GET", f"{token}secret", Origin=None)[0] == 404


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "https://stranger.example"},
        {"Origin": "null"},
        {"Origin": None},
        {"Host": "stranger.example:80"},
        {"Host": "stranger.example:80", "Origin": "http://stranger.example:80"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Content_Type": "text/plain"},
        {"Content_Type": "application/x-www-form-urlencoded"},
    ],
)
def test_requests_of_strangers_are_refused(served, headers):
    status, _, text = ask(served, **headers)
    assert (status, text) == (403, "Forbidden")


@pytest.mark.parametrize("token", ["", "x" * 32, "%C3%A4"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_wrong_token_is_refused(served, token, method):
    assert ask(served, method, f"/{token}/api")[0] == 403
    assert ask(served, method, "/api")[0] == 403


def test_another_token_each_time(served, fit):
    other = LabelServer(LabelView(LabelSession(fit), save=lambda _: None))
    assert len(other.token) >= 32
    assert other.token != served.token
    other._http.server_close()


@pytest.mark.parametrize(
    "message",
    [
        {"kind": "other"},
        {"kind": "answer", "row": -1, "label": 1},
        {"kind": "answer", "row": "1", "label": 1},
        {"kind": "answer", "label": 1},
        {"kind": "ask", "asking": "everything"},
        {"kind": "ask", "asking": "check"},
        [1],
        "text",
    ],
)
def test_messages_that_are_not_ours_change_nothing(served, message):
    before = served.view.session.sheet
    assert ask(served, message=message)[0] == 400
    assert served.view.session.sheet is before


@pytest.mark.parametrize("label", [2, -1, True, 0.5, "1"])
def test_labels_are_0_1_or_none(served, label):
    row = served.view.session.waiting("share")[0]
    message = {"kind": "answer", "row": row, "label": label}
    assert ask(served, message=message)[0] == 400
    assert served.view.session.sheet.n_answers == 0


def test_messages_have_a_size(served):
    assert ask(served, message={"kind": "x" * 20_000})[0] == 413


def test_each_answer_is_on_disk_before_it_is_confirmed(served, fit, tmp_path):
    session = served.view.session
    for label in (0, 1, None):
        row = session.waiting("share")[0]
        _, _, text = ask(served, message={"kind": "answer", "row": row, "label": label})
        state = json.loads(text)
        assert row not in [card["row"] for card in state["cards"]]
        read = read_sheet(tmp_path / "sheet.csv", fit.table)
        assert read.label_of(row) == label
        assert (row in read.unsure) == (label is None)
    ask(served, message={"kind": "undo"})
    assert read_sheet(tmp_path / "sheet.csv", fit.table).unsure == frozenset()


def test_an_answer_that_cannot_be_saved_is_taken_back(fit):
    def full(session):
        raise OSError(28, "No space left on device", "sheet.csv")

    session = LabelSession(fit, n=5, rng=np.random.default_rng(0))
    session.extend("share", 0)
    view = LabelView(session, save=full)
    row = session.waiting("share")[0]
    state = view.handle({"kind": "answer", "row": row, "label": 1})
    assert state["error"] == "No space left on device: sheet.csv"
    assert state["progress"]["n_answers"] == session.sheet.n_answers == 0
    assert state["cards"][0]["row"] == row


def test_the_share_and_what_is_left_are_of_one_kind(fit):
    """The interval of the share, in rows, is what is found and what is left."""
    session = LabelSession(fit, n=5, rng=np.random.default_rng(0))
    view = LabelView(session, save=lambda session: None)
    view.extend()
    for label in (1, 0, 0, 0, 0):
        row = session.waiting("share")[0]
        state = view.handle({"kind": "answer", "row": row, "label": label})
    share, left = state["progress"]["share"], session.progress.left
    for name in ("low", "mean", "high"):
        assert share[name] * fit.n_rows == pytest.approx(1 + getattr(left, name), abs=1.0)
    assert str(round(100 * left.recall)) in state["progress"]["left"]["words"]


def test_the_ranking_is_learned_beside(served):
    session = served.view.session
    session.n["share"] = 40
    session.extend("share", 0)
    y = load_demo().y
    for row in session.waiting("share"):
        ask(served, message={"kind": "answer", "row": row, "label": int(y[row])})
    expected = session.labelled.rows_to_find(3).tolist()
    for _ in range(100):
        served._new.wait(0.1)
        if session._ranked[:3] == expected:
            break
    state = json.loads(ask(served, message={"kind": "ask", "asking": "find"})[2])
    assert [card["row"] for card in state["cards"]] == expected


def test_a_browser_is_opened_only_where_windows_are(monkeypatch):
    opened = threading.Event()
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    open_browser("address", lambda _: opened.set())
    assert not opened.wait(0.2)
    monkeypatch.setenv("DISPLAY", ":0")
    open_browser("address", lambda _: opened.set())
    assert opened.wait(5)
