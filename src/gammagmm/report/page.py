"""Findings -> one HTML page that needs nothing else: no request, no other file."""

from __future__ import annotations

import base64
import hashlib
import json
from importlib.resources import files
from typing import Any

import numpy as np

from gammagmm._support.documents import write_document
from gammagmm._support.text import html_safe, percent, rows_sentence, sentence, shape_words, visible
from gammagmm.report.findings import N_STEPS, Cut, Findings, find
from gammagmm.report.origin import Origin
from gammagmm.report.sections import SECTIONS

__all__ = ["render", "write_report"]


def write_report(
    estimator: Any,
    path: Any,
    X: Any = None,
    origin: Origin | None = None,
    overwrite: bool = False,
) -> None:
    """Write the report of a fitted `GammaGMM` to `path`, whole or not at all."""
    write_document(render(find(estimator, X, origin)), path, overwrite)


def render(findings: Findings) -> str:
    """The report as HTML."""
    style = files("gammagmm.report").joinpath("page.css").read_text(encoding="utf-8")
    script = files("gammagmm.report").joinpath("page.js").read_text(encoding="utf-8")
    policy = (
        "default-src 'none'; base-uri 'none'; form-action 'none'; "
        f"style-src {_hash(style)}; script-src {_hash(script)}"
    )
    title = f"Anomalies in {findings.origin.name}"
    body = "".join(section(findings) for section in SECTIONS)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{html_safe(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        f"{_header(findings)}<main>{body}</main>\n"
        f'<script type="application/json" id="data">{_data(findings)}</script>\n'
        f"<script>{script}</script>\n</body>\n</html>\n"
    )


def _hash(text: str) -> str:
    """The text's hash as a content security policy names it."""
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


def _data(findings: Findings) -> str:
    """What the page's script shows, as JSON that cannot end the element it stands in."""
    data = {
        "n_rows": findings.summary.n_rows,
        # By the cut alone, as the control counts: known rows may have another label.
        "n_flagged": findings.cuts[0].n_flagged,
        "n_steps": N_STEPS,
        "max_step": findings.steps[-1].gamma,
        "cuts": [_cut_data(cut) for cut in findings.cuts],
        "steps": [_cut_data(cut) for cut in findings.steps],
        "costs": [n for _, n in findings.costs],
        "ranked": [visible(name) for name in findings.ranked],
    }
    text = json.dumps(data, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
    return text.replace("<", "\\u003c").replace("&", "\\u0026").replace("\u2028", "\\u2028")


def _cut_data(cut: Cut) -> list[Any]:
    # Ten digits show more than the page does, and take half the room.
    own = [float(f"{value:.10g}") for value in cut.thresholds]
    return [cut.gamma, cut.n_flagged, float(f"{cut.threshold:.10g}"), own, percent(cut.gamma)]


def _header(findings: Findings) -> str:
    """The answer: the sentence, the numbers, and a word on the shape."""
    summary, posterior = findings.summary, findings.summary.posterior
    low, high = posterior.interval()
    numbers = {
        "estimated share": percent(posterior.mean),
        "90% interval": f"{percent(low)} to {percent(high)}",
        "P(none at all)": percent(posterior.prob_zero),
        "rows flagged": f"{summary.n_anomalies:,} of {summary.n_rows:,}",
    }
    items = "".join(f"<li><b>{html_safe(v)}</b> <span>{k}</span></li>" for k, v in numbers.items())
    shape = shape_words(posterior)
    word = f'<p class="word">{html_safe(shape)}</p>' if shape else ""
    return (
        f'<header><p class="kind">Contamination report · {html_safe(findings.origin.name)}</p>'
        f"<h1>{html_safe(_headline(findings))}</h1>{word}"
        f'<ul class="big">{items}</ul>'
        f"<p>{html_safe(sentence(posterior))} "
        f"{html_safe(rows_sentence(summary.n_anomalies, summary.n_rows))}"
        f"{_truth_words(findings)}</p></header>"
    )


def _headline(findings: Findings) -> str:
    posterior = findings.summary.posterior
    if posterior.is_degenerate:
        return "There is no answer for these data"
    low, high = posterior.interval()
    return f"About {percent(posterior.mean)} anomalies, between {percent(low)} and {percent(high)}"


def _truth_words(findings: Findings) -> str:
    """How the answer compares with labels that the method did not see."""
    truth = findings.origin.truth
    if truth is None:
        return ""
    posterior, share = findings.summary.posterior, float(np.mean(truth))
    low, high = posterior.interval()
    place = "inside" if low <= share <= high else "outside"
    return (
        f" The labels in the file, which the method did not see, have {percent(share)} anomalies: "
        f"{place} the interval."
    )
