"""Results -> HTML for notebooks: a small picture and the answer, without script or style sheet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from gammagmm._support.text import percent, visible
from gammagmm.labels.sentences import recall_sentence
from gammagmm.monitoring.sentences import state_sentence
from gammagmm.posterior.sentences import NOT_KNOWN, record_sentence, reference_sentence, sentence
from gammagmm.posterior.track_record import load_track_record
from gammagmm.report.curves import rank_curve, share_end
from gammagmm.report.svg import (
    ShareLine,
    bar_svg,
    found_svg,
    left_svg,
    series_svg,
    share_scale,
    share_svg,
)

if TYPE_CHECKING:
    from gammagmm.estimator.fit_result import Fit
    from gammagmm.labels.group_shares import GroupShare
    from gammagmm.labels.known_rows import KnownRows
    from gammagmm.labels.labelled_rows import LabelledRows
    from gammagmm.monitoring.history import History
    from gammagmm.posterior.evidence import Evidence
    from gammagmm.posterior.gamma_posterior import GammaPosterior

__all__ = [
    "answer_html",
    "evidence_html",
    "fit_html",
    "groups_html",
    "history_html",
    "known_html",
    "labelled_html",
    "posterior_html",
    "posterior_numbers",
]

LEFT = ' style="text-align: left"'
MAX_LINES, MAX_PERIODS = 30, 60
"""Most lines of a table, and most periods in the picture of a history."""


def posterior_numbers(posterior: GammaPosterior) -> dict[str, str]:
    """The numbers of a posterior in words, by their names; those that do not exist are left out."""
    low, high = posterior.interval()
    numbers = {
        "mean": percent(posterior.mean),
        "median": percent(posterior.median),
        "standard deviation": percent(posterior.std),
        posterior.range_name: f"{percent(low)} to {percent(high)}",
        "P(γ = 0)": percent(posterior.prob_zero),
        "P(γ > 15%)": percent(posterior.prob_above(0.15)),
        "Monte Carlo error of the mean": percent(posterior.standard_error),
        "spread of the mean over runs": percent(posterior.between_runs),
    }
    return {name: words for name, words in numbers.items() if words}


def posterior_html(posterior: GammaPosterior) -> str:
    """The estimate, what the share can be, and the numbers.

    If it is the model's, the shares in labelled tables come before it, and how often it was right
    comes after it.
    """
    lines, record = [sentence(posterior)], load_track_record()
    if posterior.is_model:
        lines.insert(0, f"{NOT_KNOWN}. {reference_sentence(record)}")
        lines += [record_sentence(record)] if posterior.has_estimate else []
    table = _table((), posterior_numbers(posterior).items())
    return _block("posterior", _words(lines), share_svg(posterior), table)


def answer_html(fit: Fit) -> str:
    """The answer of a fit: the rows by their scores, what the share can be, and the lines."""
    curve = rank_curve(fit, share_end(fit.posterior))
    return _block("answer", _words(fit.lines), share_svg(fit.posterior, curve))


def fit_html(fit: Fit) -> str:
    """The first line of the answer, and the detectors with their seconds."""
    longest = max(info.seconds for info in fit.detector_info)
    lines = []
    for info in fit.detector_info:
        parts = (("seconds", "accent", info.seconds), ("", "line", longest - info.seconds))
        picture = Drawn(bar_svg(parts)) if longest > 0.0 else ""
        counts = (f"{info.n_rows:,}", f"{info.seconds:.1f}")
        lines.append((info.name, info.status, *counts, picture))
    heads = ("detector", "status", "rows fitted", "seconds", "")
    return _block("fit", _words(fit.lines[:1]), _table(heads, lines))


def evidence_html(evidence: Evidence) -> str:
    """The estimate for each other assumption, and how often its ranges were right."""
    record = evidence.track_record
    shares = [each.mean for each in evidence.assumptions if not np.isnan(each.mean)]
    lines = [ShareLine("", 1, 0, share, share, share) for share in shares]
    scale = share_scale(lines or [ShareLine("", 1, 0, 0.1, 0.1, 0.1)])
    told = []
    for each in evidence.assumptions:
        value = percent(each.mean) or "no solution"
        line = ShareLine("", 0, 0, each.mean, each.mean, each.mean)
        picture = "" if np.isnan(each.mean) else scale.picture(line)
        told.append((each.words, value, Drawn(picture)))
    words = [
        record_sentence(record),
        f"{evidence.n_unsolved_starts:,} of {evidence.n_starts:,} starts had no solution.",
    ]
    if (separate := evidence.separate_rows) is not None:
        share = percent(separate.share)
        words.append(f"{separate.n_rows:,} rows ({share}) are separate from the rest.")
    else:
        words.append("No rows are separate from the rest.")
    right = [
        (
            f"ranges of {level.mass:.0%} that were right",
            f"{level.held:.0%}",
            Drawn(bar_svg((("right", "accent", level.held), ("wrong", "line", 1.0 - level.held)))),
        )
        for level in record.levels
    ]
    heads = ("other settings of the model", "value", Drawn(scale.axis()))
    return _block("evidence", _words(words), _table(heads, told), _table((), right))


def known_html(known: KnownRows) -> str:
    """How many rows are known, by how they were chosen."""
    lines = []
    for name, chosen in (
        ("chosen at random", known.at_random),
        ("picked from the top", known.picked),
        ("in lists", known.listed),
    ):
        n, n_anomalies = int(chosen.sum()), int(known.labels[chosen].sum())
        if n:
            parts = (("anomalies", "alarm", n_anomalies), ("normal", "reference", n - n_anomalies))
            lines.append((name, f"{n:,}", f"{n_anomalies:,}", Drawn(bar_svg(parts))))
    words = [f"{len(known):,} rows have labels; {int(known.labels.sum()):,} are anomalies."]
    heads = ("rows", "labels", "anomalies", "")
    return _block("known", _words(words), _table(heads, lines) if lines else "")


def labelled_html(rows: LabelledRows) -> str:
    """The share by the labels, what is found and left, and found against looked at."""
    lines, found = [sentence(rows.posterior)], rows.found_in_order.tolist()
    if rows.posterior.is_model:
        lines.insert(0, f"{NOT_KNOWN}. {reference_sentence(load_track_record())}")
    parts = [_words(lines), share_svg(rows.posterior)]
    if len(rows.known_rows):
        left = rows.left
        parts += [_words([recall_sentence(left)]), left_svg(left)]
        if found and found[-1]:
            parts.append(found_svg((("ranking", "accent", found),), "random labelled rows"))
        elif found:
            parts.append(
                _words([f"None of the {len(found):,} random labelled rows is an anomaly."])
            )
    return _block("labels", *parts)


def groups_html(groups: Sequence[GroupShare]) -> str:
    """The flagged rows of the largest groups and, where there are labels, their shares."""
    shown = groups[:MAX_LINES]
    if not shown:
        return _block("groups", _words(["There is no group."]))
    has_labels = any(each.n_labels for each in shown)
    lines = [
        ShareLine(g.group, g.n_rows, g.n_flagged, g.share_flagged, g.low_flagged, g.high_flagged)
        for g in shown
    ]
    n_rows = sum(each.n_rows for each in groups)
    scale = share_scale(lines, sum(each.n_flagged for each in groups) / n_rows)
    told = []
    for each, line in zip(shown, lines, strict=True):
        labels = (f"{each.n_anomalies:,} of {each.n_labels:,}",) if has_labels else ()
        counts = (f"{each.n_rows:,}", f"{each.n_flagged:,}", percent(each.share_flagged))
        told.append((str(each.group), *counts, *labels, Drawn(scale.picture(line))))
    heads = ("group", "rows", "flagged", "share", *(("anomalies of labels",) * has_labels))
    n_left = len(groups) - len(shown)
    words = _words([f"{n_left:,} smaller groups are not shown."]) if n_left else ""
    return _block("groups", _table((*heads, Drawn(scale.axis())), told), words)


def history_html(history: History) -> str:
    """The shares of the periods, and the state after the newest one."""
    if not history.periods:
        return _block("history", _words(["The history has no period yet."]))
    name, count = history.newest.name, history.newest.count
    words = f"{name} has no rows."
    if count.n_rows:
        words = (
            f"{name}: {count.n_above:,} of {count.n_rows:,} rows are above the threshold "
            f"({percent(count.share)}; training rows {percent(history.reference.share)})."
        )
    lines = _words([words, state_sentence(history)])
    return _block("history", lines, series_svg(history, MAX_PERIODS))


class Drawn(str):
    """HTML that stays as it is."""

    __slots__ = ()


def _html(cell: str) -> str:
    return cell if isinstance(cell, Drawn) else escape(visible(cell))


def _words(lines: Iterable[str]) -> str:
    return "".join(f"<p>{_html(line)}</p>" for line in lines)


def _table(heads: Sequence[str], lines: Iterable[Iterable[str]]) -> str:
    """A table whose first cells are the names of its lines; pictures have a width of their own."""
    top = "".join(f'<th scope="col"{_width(head)}>{_html(head)}</th>' for head in heads)
    body = ""
    for first, *cells in lines:
        rest = "".join(f"<td{_width(cell)}>{_html(cell)}</td>" for cell in cells)
        body += f'<tr><th scope="row"{LEFT}>{_html(first)}</th>{rest}</tr>'
    return f"<table>{f'<thead><tr>{top}</tr></thead>' * bool(heads)}<tbody>{body}</tbody></table>"


def _width(cell: str) -> str:
    return ' width="200"' if isinstance(cell, Drawn) else ""


def _block(kind: str, *parts: str) -> str:
    return f'<div class="gammagmm-{kind}" style="max-width: 40rem">{"".join(parts)}</div>'
