"""Findings -> one HTML page that needs nothing else: no request, no other file."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Sequence
from importlib.resources import files
from typing import Any

import numpy as np

from gammagmm._support.files import write_document
from gammagmm._support.text import html_safe, percent, visible
from gammagmm.estimator.fit_result import Fit
from gammagmm.posterior.sentences import known_sentence, rows_sentence, sentence, shape_words
from gammagmm.report.findings import MAX_RANKED, N_STEPS, Cut, Findings, feature_words, find
from gammagmm.report.origin import Origin
from gammagmm.report.svg import posterior_svg

__all__ = ["SECTIONS", "render", "write_report"]

PYOD_DEFAULT = 0.1
RANKING_LIMIT = (
    "The method decides where to cut the ranking of the rows. It does not improve the ranking: a "
    "row that every detector overlooks is overlooked at every cut."
)
LIMITS = (
    "The share of anomalies is hardly identifiable without labels. On labelled benchmark sets the "
    "estimate is no better on average than a constant 5%, and it does not follow the truth from "
    "one dataset to the next.",
    "The 90% interval is too narrow on many real datasets: it does not know whether these "
    "detectors suit these data.",
    "P(none) is the probability that was put in beforehand (p0). The data do not change it.",
    RANKING_LIMIT,
    "If you can have a random sample of the rows labelled by a person, do: the share among them "
    "has a known error.",
)
LABELLED_LIMITS = (
    "A few looks cannot exclude a few per cent of anomalies that hide among rows which look like "
    "all others.",
    "The labels tell of other rows only if they were chosen as suggested. Rows that were picked "
    "for what they are make the share look larger, unless they were given as known.",
    RANKING_LIMIT,
)
"""Once a person has looked at rows."""


def _posterior(findings: Findings) -> str:
    summary = findings.summary
    high_gamma, p_high = summary.parameters["high_gamma"], summary.parameters["p_high"]
    p0 = summary.parameters["p0"]
    reached = summary.posterior.prob_above(float(high_gamma))  # type: ignore[arg-type]
    marks = {
        "PyOD's default": PYOD_DEFAULT,
        f"P(γ ≥ {high_gamma:.0%}) = p_high": high_gamma,
    }
    asked = (
        f"Held likely beforehand: no anomalies at all with probability p0 = {p0:.1%}, at least "
        f"{high_gamma:.0%} of them with probability p_high = {p_high:.1%}; the posterior has "
        f"{reached:.1%} there."
    )
    picture = posterior_svg(summary.posterior, marks)  # type: ignore[arg-type]
    return _section(
        "The posterior of the share",
        f'<figure class="posterior">{picture}<figcaption>{html_safe(asked)}</figcaption></figure>'
        f"{_before(findings)}",
    )


def _before(findings: Findings) -> str:
    """The posterior before the labels of single rows."""
    if findings.fitted is None:
        return ""
    words = known_sentence(findings.n_known, findings.n_found, findings.fitted)
    if findings.fitted.is_degenerate:
        return f"<p>{html_safe(words)}</p>"
    caption = f"The same before a person looked at {findings.n_known:,} rows."
    return (
        f"<p>{html_safe(words)}</p><figure>{posterior_svg(findings.fitted)}"
        f"<figcaption>{html_safe(caption)}</figcaption></figure>"
    )


def _control(findings: Findings) -> str:
    """The control over gamma; what it shows is in the data element."""
    start = round(findings.cuts[0].gamma / findings.steps[-1].gamma * N_STEPS)
    names = [d.name for d in findings.summary.detectors if d.status == "ok"]
    rows = [[html_safe(name), f'<span id="t{i}"></span>'] for i, name in enumerate(names)]
    thresholds = _table(["detector", "threshold of its raw score"], rows, numeric={1})
    known = (
        "The band in the picture above is at the share chosen here. "
        f"Rows are named by {html_safe(_row_names(findings))}."
    )
    return _section(
        "What if the share were another?",
        "<noscript><p>This part needs JavaScript; the others do not.</p></noscript>"
        '<div class="panel"><label for="gamma">Share of anomalies: <b id="chosen"></b>'
        f'</label><input type="range" id="gamma" min="0" max="{N_STEPS}" value="{start}">'
        f'<div class="row">{_choices(findings)}</div>'
        '<p>Flagged: <output id="flagged"></output> rows, those whose consensus score exceeds '
        '<b id="threshold"></b>.</p><p id="changed"></p>'
        f'{thresholds}</div><p class="note noprint">{known}</p>',
    )


def _choices(findings: Findings) -> str:
    """Buttons for the mean and the ends of the interval, and a list of costs."""
    buttons = "".join(
        f'<button type="button" data-cut="{i}">{cut.name} ({percent(cut.gamma)})</button>'
        for i, cut in enumerate(findings.cuts)
    )
    options = "".join(
        f'<option value="{i}">a miss costs {cost:g} false alarms</option>'
        for i, (cost, _) in enumerate(findings.costs)
    )
    return (
        f'{buttons}<span><label for="costs">or by costs</label> '
        f'<select id="costs"><option value="">choose</option>{options}</select></span>'
    )


def _row_names(findings: Findings) -> str:
    names = "their number in the table" if findings.origin.ids is None else "their id"
    if findings.summary.n_rows > MAX_RANKED:
        return f"{names}; the {MAX_RANKED:,} most anomalous ones are listed"
    return names


def _detectors(findings: Findings) -> str:
    heads = ["detector", "status", "rows fitted", "seconds", "agreement", "threshold"]
    rows = []
    for d in findings.summary.detectors:
        status = "used" if d.status == "ok" else f'<span class="bad">left out: {d.status}</span>'
        agreement = findings.agreement.get(d.name)
        shown = "" if agreement is None else f"{agreement:.2f}"
        threshold = "" if np.isnan(d.threshold) else f"{d.threshold:.4g}"
        reason = f" ({html_safe(d.reason)})" if d.reason else ""
        cells = [html_safe(d.name), status + reason, f"{d.n_rows:,}", f"{d.seconds:.1f}"]
        rows.append([*cells, shown, threshold])
    words = "Agreement is the rank correlation of the detector's scores with the consensus."
    table = _table(heads, rows, numeric={2, 3, 4, 5}, name="detectors")
    return _section("Detectors", f"{table}<p class='note'>{words}</p>")


def _components(findings: Findings) -> str:
    rows = [
        [str(rank), percent(share), percent(p)]
        for rank, (share, p) in enumerate(findings.components, start=1)
        if rank <= 12
    ]
    n = len(findings.components)
    words = f"{n} components of the mixture, the most anomalous {len(rows)} of them."
    table = _table(["rank", "share of the rows", "P(anomalous)"], rows, numeric={0, 1, 2})
    return _section("Components of the mixture", f"<p>{words}</p>{table}")


def _health(findings: Findings) -> str:
    runs = findings.summary.runs
    n_unsolved = sum(run.status == "unsolved" for run in runs)
    n_capped = sum(not run.converged for run in runs)
    if n_unsolved == len(runs):
        word, kind = "No run found a solution: the numbers above are no estimate.", ""
    elif n_unsolved or n_capped:
        word, kind = f"{n_unsolved} runs had no solution, {n_capped} did not converge.", ""
    else:
        word, kind = "Every run converged and found a solution.", " good"
    heads = ["run", "status", "iterations", "converged", "restarts", "P(γ high)", "mean"]
    rows = [
        [
            *(str(i), run.status, str(run.n_iter), "yes" if run.converged else "no"),
            *(str(run.n_restarts), percent(run.reached), percent(run.mean)),
        ]
        for i, run in enumerate(runs, start=1)
    ]
    notes = [*findings.origin.notes, *findings.summary.notes]
    told = "".join(f"<li>{html_safe(n.subject)}: {html_safe(n.message)}</li>" for n in notes)
    listed = f'<p>Changed or left out on the way:</p><ul class="plain">{told}</ul>' if told else ""
    table = _table(heads, rows, numeric={0, 2, 4, 5, 6})
    return _section("Health of the fit", f'<p class="word{kind}">{word}</p>{table}{listed}')


def _sensitivity(findings: Findings) -> str:
    rows = []
    for what, value, posterior in findings.sensitivity:
        low, high = posterior.interval()
        answer = "no solution" if posterior.is_degenerate else percent(posterior.mean)
        between = "" if posterior.is_degenerate else f"{percent(low)} to {percent(high)}"
        rows.append([html_safe(what), html_safe(value), answer, between])
    words = "The same mixtures under other values of p0 and p_high, and each start by itself."
    if findings.n_known:
        words += " All of this is before the labels, which the answer above rests on."
    if any(what == "detectors" for what, _, _ in findings.sensitivity):
        words += (
            " Then one run without each detector in turn, on 1,000 rows at most, beside one run "
            "with all; with the default prior and 100 components."
        )
    table = _table(["changed", "to", "estimate", "90% interval"], rows, numeric={2})
    return _section("What the answer hangs on", f"<p>{words}</p>{table}")


def _rows(findings: Findings) -> str:
    rows = []
    for standout in findings.standouts:
        cells = [html_safe(standout.row), f"{standout.score:.2f}", percent(standout.probability)]
        rows.append([*cells, html_safe(feature_words(standout.features)) or "–"])
    heads = ["row", "consensus score", "probability", "what stands out"]
    table = _table(heads, rows, numeric={1, 2}, name="most_anomalous_rows")
    words = (
        "In brackets: the distance from the column's median in robust standard deviations. The "
        "probability holds if the ranking is right."
    )
    save = (
        '<p class="noprint"><button type="button" data-save="most_anomalous_rows">'
        "Save as CSV</button></p>"
    )
    return _section("The most anomalous rows", f"{table}<p class='note'>{words}</p>{save}")


def _inspect(findings: Findings) -> str:
    """Rows for the reader to look at, with a place for each answer."""
    if not findings.to_inspect:
        return ""
    has_ids = findings.origin.ids is not None
    rows = []
    for number, name, features in findings.to_inspect:
        answer = (
            f'<select aria-label="Is row {number} an anomaly?"><option value=""></option>'
            '<option value="1">anomaly</option><option value="0">normal</option></select>'
        )
        named = [html_safe(name)] if has_ids else []
        rows.append([number, *named, html_safe(feature_words(features)) or "–", answer])
    heads = ["row", *(["name of the row"] if has_ids else []), "what stands out", "anomaly"]
    words = (
        "A person who looks at some of these rows, from the top and as many as there is time for, "
        "tells more of the share than any method does. They are spread evenly over the ranking. "
        "Save the answers, and give them to gammagmm estimate --inspected to_label.csv."
    )
    save = '<p class="noprint"><button type="button" data-save="to_label">Save as CSV</button></p>'
    table = _table(heads, rows, numeric={0}, name="to_label", sortable=False)
    return _section("Rows to look at", f"<p>{words}</p>{table}{save}")


def _limits(findings: Findings) -> str:
    limits = LABELLED_LIMITS if findings.n_known else LIMITS
    items = "".join(f"<li>{html_safe(words)}</li>" for words in limits)
    return _section("What this method cannot tell", f'<ul class="plain">{items}</ul>')


def _origin(findings: Findings) -> str:
    summary, origin = findings.summary, findings.origin
    facts = {
        "input": f"{origin.name}, {summary.n_rows:,} rows, {summary.n_features:,} columns",
        "SHA-256 of the input": origin.digest,
        "seed": str(summary.parameters["random_state"]),
        **{f"version of {name}": value for name, value in summary.versions.items()},
        "method": "gammaGMM (Perini, Bürkner, Klami, ICML 2023)",
    }
    rows = [[html_safe(k), f"<code>{html_safe(v)}</code>"] for k, v in facts.items() if v]
    return _section("Where this comes from", _table(["what", "value"], rows))


def _section(title: str, content: str) -> str:
    return f"<section><h2>{title}</h2>{content}</section>\n"


def _table(
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    numeric: frozenset[int] | set[int] = frozenset(),
    name: str = "",
    sortable: bool = True,
) -> str:
    """A table of cells that are HTML already; one with a `name` can be saved, and sorted."""
    kinds = [' class="n"' if j in numeric else "" for j in range(len(heads))]
    is_sortable = bool(name) and sortable
    shown = [f'<button type="button">{head}</button>' if is_sortable else head for head in heads]
    top = "".join(f'<th scope="col"{k}>{h}</th>' for k, h in zip(kinds, shown, strict=True))
    lines = "".join(
        "<tr>" + "".join(f"<td{k}>{c}</td>" for k, c in zip(kinds, row, strict=True)) + "</tr>"
        for row in rows
    )
    named = f' id="{name}"' if name else ""
    named += ' class="sortable"' if is_sortable else ""
    label = f"Table of {heads[0]} and {heads[1]}"
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{label}"><table{named}>'
        f"<thead><tr>{top}</tr></thead><tbody>{lines}</tbody></table></div>"
    )


SECTIONS: tuple[Callable[[Findings], str], ...] = (
    _posterior,
    _control,
    _detectors,
    _components,
    _health,
    _sensitivity,
    _rows,
    _inspect,
    _limits,
    _origin,
)
"""In the order of the page."""


def write_report(
    fit: Fit,
    path: Any,
    X: Any = None,
    origin: Origin | None = None,
    overwrite: bool = False,
) -> None:
    """Write the report of a fitted `GammaGMM` to `path`, whole or not at all."""
    write_document(render(find(fit, X, origin)), path, overwrite)


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
