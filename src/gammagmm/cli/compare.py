"""``gammagmm compare``: two saved posteriors, fits or histories of `monitor`, side by side."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gammagmm._support.documents import Form, Reader, read_document
from gammagmm._support.text import aligned, one_line, percent, visible
from gammagmm.cli.kept import open_kept
from gammagmm.cli.options import Pair, Request, kept_path
from gammagmm.cli.output import comparison_text, labels_words
from gammagmm.cli.request import UsageError, check_request

if TYPE_CHECKING:
    from gammagmm.monitoring.history import History
    from gammagmm.posterior.gamma_posterior import GammaPosterior

__all__ = ["compare_histories", "histories_text", "run_compare"]

ARCHIVE = b"PK"
"""The first bytes of a kept fit."""
CLEAR = 0.05
"""P-value up to which a difference is called clear."""
OTHER_FITS = (
    "They cannot be compared: the histories belong to different fits, so their cuts differ. Run "
    "`gammagmm monitor` with the same saved fit for both."
)


def run_compare(pair: Pair, request: Request) -> str:
    """The comparison as text or as JSON; the picture is written if it was asked for."""
    check_request(request, needs_files=False)
    from gammagmm.monitoring.history import History

    outputs, answer = request.outputs, request.answer
    paths, found = zip(_read(pair.first), _read(pair.second), strict=True)
    are_histories = [isinstance(each, History) for each in found]
    if all(are_histories):
        return _histories_answer(paths, found, request)
    if any(are_histories):
        raise UsageError(
            "One file is a history of monitor and the other is not",
            "Give two histories, or two posteriors or saved fits.",
        )
    posteriors: Sequence[GammaPosterior] = found
    if outputs.picture is not None:
        from gammagmm.report.plots import plot_comparison, save_picture

        named = [
            (f"{letter}  {visible(path)} ({labels_words(posterior)})", posterior)
            for letter, path, posterior in zip("AB", paths, posteriors, strict=True)
        ]
        save_picture(partial(plot_comparison, named), outputs.picture, request.running.force)
    if answer.as_json:
        from gammagmm.posterior.comparison import compare_posteriors

        return json.dumps(compare_posteriors(*posteriors), indent=2, allow_nan=False)
    return comparison_text(paths, posteriors)


def _read(name: Path) -> tuple[str, Any]:
    """The file with this name, or of this kept fit, and the posterior or the history in it."""
    from gammagmm.monitoring.history import FORM, History
    from gammagmm.posterior.gamma_posterior import GammaPosterior

    kept = kept_path(name)
    path = kept if kept.is_file() and not name.is_file() else name
    with path.open("rb") as file:
        is_fit = file.read(len(ARCHIVE)) == ARCHIVE
    if is_fit:
        return str(path), open_kept(path).fit.posterior
    reader = Reader(Form("", 1, "posterior, saved fit or history"), str(path))
    data = reader.parse(read_document(str(path), reader))
    is_history = isinstance(data, dict) and data.get("schema") == FORM.schema
    return str(path), (History if is_history else GammaPosterior).load(str(path))


def _histories_answer(names: Sequence[str], histories: Sequence[History], request: Request) -> str:
    if request.outputs.picture is not None:
        raise UsageError(
            "--picture draws posteriors, and these are histories",
            "Draw a history with gammagmm monitor --picture.",
        )
    if request.answer.as_json:
        return json.dumps(compare_histories(*histories), indent=2, allow_nan=False)
    return histories_text(names, histories)


def compare_histories(first: History, second: History) -> dict[str, Any]:
    """The rows above the threshold in the newest period of two histories, and whether they differ.

    The p-value is that of Fisher's exact test for a difference in either direction. It is None, and
    "reason" says why, if the histories belong to different fits.
    """
    from gammagmm.monitoring.variation import p_differs

    data: dict[str, Any] = {}
    counts = [history.newest.count for history in (first, second)]
    for letter, history, count in zip("ab", (first, second), counts, strict=True):
        data |= {
            f"period_{letter}": history.newest.name,
            f"n_rows_{letter}": count.n_rows,
            f"n_above_{letter}": count.n_above,
            f"share_{letter}": count.share,
            f"exact_range_90_{letter}": list(count.interval()),
        }
    is_same = first.fit == second.fit
    p_value = p_differs(*counts) if is_same else None
    return data | {"p_value": p_value, "reason": None if is_same else "other fits"}


def histories_text(names: Sequence[str], pair: Sequence[History]) -> str:
    """A table of the newest periods of two histories, and which share is higher."""
    table = [["", "period", "rows", "above the threshold", "share", "exact range (90%)"]]
    for letter, name, history in zip("AB", names, pair, strict=True):
        count = history.newest.count
        numbers = [f"{count.n_rows:,}", f"{count.n_above:,}", percent(count.share)]
        words = [f"{letter}  {one_line(name)}", one_line(history.newest.name)]
        table.append([*words, *numbers, " to ".join(map(percent, count.interval()))])
    found = compare_histories(*pair)
    return f"{aligned(table, n_words=2)}\n\n{OTHER_FITS if found['reason'] else _difference(found)}"


def _difference(found: dict[str, Any]) -> str:
    """Which share is higher, or that chance explains the difference."""
    test = f"(Fisher's exact test, p = {found['p_value']:.2g})"
    if found["p_value"] > CLEAR:
        return f"The difference in the share of rows above the threshold can be chance {test}."
    letter = "B" if found["share_b"] > found["share_a"] else "A"
    return f"The share of rows above the threshold is higher in {letter} {test}."
