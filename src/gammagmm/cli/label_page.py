"""The page of ``gammagmm label``: a server on this machine only, for one session of labelling.

The address has a random token, so that only who sees the address can read the rows. Requests with
another token, for another host, or from a page of another origin are refused.
"""

from __future__ import annotations

import json
import os
import secrets
import sys
import threading
import webbrowser
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from gammagmm.report.label_view import LabelView, MessageError
from gammagmm.report.page import asset

if TYPE_CHECKING:
    from gammagmm.labels.sheet import Sheet

__all__ = ["LabelServer", "open_browser"]

HOSTS = frozenset({"127.0.0.1", "localhost"})
MAX_BYTES = 10_000
"""Size of a message; ours are much smaller."""
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Label rows</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="style.css">
<link rel="stylesheet" href="label.css">
</head>
<body class="gammagmm">
<main></main>
<script type="module" src="page.js"></script>
</body>
</html>
"""
START = """import { start, post } from "./label.js";
start(document.querySelector("main"), post("api"), { isPage: true });
"""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class LabelServer:
    """The server of one session, with a thread that learns the ranking from the answers.

    Parameters
    ----------
    view : LabelView
        What the page shows.
    learns : bool, default=True
        Whether the ranking is learned while the person labels.
    """

    def __init__(self, view: LabelView, *, learns: bool = True) -> None:
        self.view, self.learns = view, learns
        self.token = secrets.token_urlsafe(24)
        self._lock = threading.Lock()
        self._new = threading.Event()  # answers to learn from
        self._done = threading.Event()
        self._http = _Server(("127.0.0.1", 0), _Handler)
        self._http.labels = self
        self.files = {
            "": ("text/html", PAGE),
            "page.js": ("text/javascript", START),
            "label.js": ("text/javascript", asset("label.js")),
            "label.css": ("text/css", asset("label.css")),
            "style.css": ("text/css", asset("style.css")),
        }

    @property
    def address(self) -> str:
        """The address of the page, with its token."""
        return f"http://127.0.0.1:{self._http.server_address[1]}/{self.token}/"

    def run(self) -> None:
        """Answer until the person has finished."""
        if self.learns:
            threading.Thread(target=self._learn, daemon=True).start()
        serving = threading.Thread(target=self._http.serve_forever, daemon=True)
        serving.start()
        try:
            self._done.wait()
        finally:
            self._new.set()
            self._http.shutdown()
            self._http.server_close()

    def stop(self) -> None:
        """End `run`."""
        self._done.set()

    def answer(self, message: Any) -> dict[str, Any]:
        """The answer to a message of the page; one message is handled at a time."""
        with self._lock:
            sheet = self.view.session.sheet
            answer = self.view.handle(message)
            if self.view.session.sheet is not sheet:
                self._new.set()
        return answer

    def _learn(self) -> None:
        """Learn the ranking after the answers, those of the last ones together."""
        learned: Sheet | None = None
        while self._new.wait() and not self._done.is_set():
            self._new.clear()
            with self._lock:
                sheet = self.view.session.sheet
            if sheet is not learned and sheet.n_answers:
                self.view.session.learn(sheet)
                learned = sheet


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    labels: LabelServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that closes a connection is no error."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = 600
    server_version, sys_version = "gammagmm", ""

    def do_GET(self) -> None:
        """A file of the page."""
        name = self._allowed()
        if name is None:
            self._refuse(HTTPStatus.FORBIDDEN)
        elif name not in self.server.labels.files:
            self._refuse(HTTPStatus.NOT_FOUND)
        else:
            kind, text = self.server.labels.files[name]
            self._send(HTTPStatus.OK, kind, text)

    def do_POST(self) -> None:
        """The answer to a message of the page."""
        host, origin = self.headers.get("Host", ""), self.headers.get("Origin")
        is_ours = origin == f"http://{host}" and self._allowed() == "api"
        if not is_ours or self.headers.get("Content-Type") != "application/json":
            self._refuse(HTTPStatus.FORBIDDEN)
            return
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > MAX_BYTES:
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
            return
        try:
            answer = self.server.labels.answer(json.loads(self.rfile.read(int(length))))
        except (MessageError, ValueError):
            self._refuse(HTTPStatus.BAD_REQUEST)
            return
        self._send(HTTPStatus.OK, "application/json", json.dumps(answer, separators=(",", ":")))
        if answer.get("is_finished"):
            self.server.labels.stop()

    def _allowed(self) -> str | None:
        """The name of what is asked for; None if the request does not come from our page."""
        host = self.headers.get("Host", "").rpartition(":")[0]
        parts = self.path.split("/")
        is_strange = self.headers.get("Sec-Fetch-Site") == "cross-site"
        is_link = self.headers.get("Sec-Fetch-Mode") == "navigate"  # a person has followed a link
        if len(parts) != 3 or host not in HOSTS or (is_strange and not is_link):
            return None
        token = self.server.labels.token.encode()
        return parts[2] if secrets.compare_digest(parts[1].encode(), token) else None

    def _refuse(self, status: HTTPStatus) -> None:
        self.close_connection = True  # what the request has besides is not read
        self._send(status, "text/plain", status.phrase)

    def _send(self, status: HTTPStatus, kind: str, text: str) -> None:
        data = text.encode("utf-8")
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        for name, value in HEADERS.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are not logged: the token is in them."""


def open_browser(address: str, opens: Callable[[str], object] = webbrowser.open) -> None:
    """Open the address in a browser, if this machine shows windows."""
    has_windows = sys.platform in ("darwin", "win32")
    if has_windows or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")):
        threading.Thread(target=opens, args=(address,), daemon=True).start()
