"""Findings -> one HTML page that needs no other file and sends no request."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from gammagmm._support.files import write_document
from gammagmm._support.text import percent, visible
from gammagmm.estimator.fit_result import Fit
from gammagmm.estimator.reasons import reason_words
from gammagmm.labels.group_shares import GroupShare
from gammagmm.labels.sentences import (
    exact_sentence,
    found_sentence,
    if_wrong_sentence,
    recall_sentence,
)
from gammagmm.posterior.gamma_posterior import GammaPosterior
from gammagmm.posterior.sentences import (
    NOT_KNOWN,
    below_half_sentence,
    first_row_words,
    probability_sentence,
    record_sentence,
    rows_sentence,
)
from gammagmm.report.findings import MAX_SHOWN, N_STEPS, Findings, ShareCut, find
from gammagmm.report.notebook import posterior_numbers
from gammagmm.report.svg import (
    ShareLine,
    column_svg,
    found_svg,
    left_svg,
    share_scale,
    share_svg,
    strip_svg,
)

if TYPE_CHECKING:
    from jinja2 import Template

__all__ = ["GroupLines", "asset", "group_lines", "render", "template", "write_report"]

N_FIRST = 10
"""Rows of the table of the most anomalous rows that are shown at first, as in page.css."""
N_ASKED = 5
"""Rows to label that are shown at first, as in page.css."""
MAX_COMPONENTS = 12
"""Most components that the page lists."""
MAX_GROUPS = 30
"""Most groups that the page lists."""


def write_report(fit: Fit, path: Any, overwrite: bool = False) -> None:
    """Write the report of a fit to `path`, completely or not at all."""
    write_document(render(find(fit.holding_first_rows(MAX_SHOWN))), path, overwrite)


def render(findings: Findings) -> str:
    """The report as HTML."""
    return template().render(
        findings=findings,
        style=asset("style.css") + asset("page.css"),
        script=asset("page.js"),
        data=_script_data(findings),
        start=round(findings.mean.gamma / findings.steps[-1].gamma * N_STEPS),
        reference=GammaPosterior.reference().interval(),
        max_components=MAX_COMPONENTS,
        groups=group_lines(findings.groups, MAX_GROUPS),
        n_first=N_FIRST,
        n_asked=N_ASKED,
    )


def template(name: str = "page.html") -> Template:
    """The template of a page: every value is escaped, control characters are written out."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True,
        finalize=_shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "code": _with_code,
        "count": lambda n: f"{n:,}",
        "percent": percent,
        "reasons": reason_words,
        "sha256": _sha256,
    }
    environment.globals |= {
        "NOT_KNOWN": NOT_KNOWN,
        "below_half_sentence": below_half_sentence,
        "column_svg": column_svg,
        "exact_sentence": exact_sentence,
        "first_row_words": first_row_words,
        "found_sentence": found_sentence,
        "found_svg": found_svg,
        "left_svg": left_svg,
        "posterior_numbers": posterior_numbers,
        "share_svg": share_svg,
        "strip_svg": strip_svg,
        "zip": zip,
        "if_wrong_sentence": if_wrong_sentence,
        "probability_sentence": probability_sentence,
        "recall_sentence": recall_sentence,
        "record_sentence": record_sentence,
        "rows_sentence": rows_sentence,
        "share_scale": share_scale,
    }
    compact = {"separators": (",", ":"), "allow_nan": False, "ensure_ascii": False}
    environment.policies["json.dumps_kwargs"] = compact
    return environment.from_string(asset(name))


def _shown(value: object) -> object:
    """The text of a value, with control characters written out; HTML as it is."""
    return value if hasattr(value, "__html__") else visible(str(value))


def _with_code(words: str) -> str:
    """Words as HTML, with those between backticks as code."""
    parts = [escape(visible(part)) for part in words.split("`")]
    return "".join(f"<code>{p}</code>" if i % 2 else p for i, p in enumerate(parts))


def asset(name: str) -> str:
    """The text of a file of this room."""
    return files("gammagmm.report").joinpath(name).read_text(encoding="utf-8")


def _sha256(text: str) -> str:
    """The hash of a text as a content security policy contains it."""
    return base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


@dataclass(frozen=True)
class GroupLines:
    """The lines of the tables of groups, the largest groups first."""

    flagged: tuple[ShareLine, ...]
    labelled: tuple[ShareLine, ...]  # groups with labels
    n_left: int  # groups that are not shown, and their rows
    n_rows_left: int


def group_lines(groups: Sequence[GroupShare], n: int) -> GroupLines:
    """The lines of the `n` largest groups."""
    shown, left = groups[:n], groups[n:]
    flagged = (
        ShareLine(g.group, g.n_rows, g.n_flagged, g.share_flagged, g.low_flagged, g.high_flagged)
        for g in shown
    )
    labelled = (
        ShareLine(
            g.group,
            g.n_labels,
            g.n_anomalies,
            g.mean,
            g.low,
            g.high,
            (g.low_exact, g.high_exact),
        )
        for g in shown
        if g.n_labels
    )
    n_rows_left = sum(group.n_rows for group in left)
    return GroupLines(tuple(flagged), tuple(labelled), len(left), n_rows_left)


def _script_data(findings: Findings) -> dict[str, Any]:
    """What the page's script shows."""
    return {
        "n_rows": findings.summary.n_rows,
        # By the cut alone, as the slider counts: the labels of known rows may differ from it.
        "n_flagged": findings.mean.n_flagged,
        "n_steps": N_STEPS,
        "max_step": findings.steps[-1].gamma,
        "cuts": [_cut_data(c) for c in (findings.mean, findings.lower_end, findings.upper_end)],
        "steps": [_cut_data(cut) for cut in findings.steps],
        "costs": [_cut_data(cost.cut) for cost in findings.costs],
        "ranked": list(findings.ranking),
        "answers_key": _answers_key(findings),
    }


def _answers_key(findings: Findings) -> str:
    """The name under which a browser keeps the answers to the rows to label."""
    # Reports that are opened as files share one storage. The key is a digest of the data and of the
    # rows in their order, so that a copy of this report finds the answers and no other report does.
    # Rows without a file, as in `GammaGMM.report`, are identified by the scores at the top.
    rows = [(row.number, row.name) for row in findings.to_label]
    table, scores = findings.table, [row.score for row in findings.top_rows]
    identity = json.dumps([table.digest or [table.name, scores], rows])
    return f"gammagmm {hashlib.sha256(identity.encode('ascii')).hexdigest()}"


def _cut_data(cut: ShareCut) -> list[Any]:
    # Ten digits are more than the page shows, and take half the space of all digits.
    own = [float(f"{value:.10g}") for value in cut.thresholds]
    return [cut.gamma, cut.n_flagged, float(f"{cut.threshold:.10g}"), own, percent(cut.gamma)]
