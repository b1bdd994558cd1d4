"""The words of notes: a template, or a function of the values, for each code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gammagmm._support.text import counted, percent

__all__ = ["WORDS", "words_of"]


def words_of(code: str, values: dict[str, Any]) -> str:
    """The note with this `code` and these `values` as a sentence; a code of a newer version is one.

    >>> words_of("mixture.sampled", {"n_seen": 20000, "n_rows": 90000})
    'each run was fitted to 20000 random rows of 90000'
    """
    words = WORDS.get(code)
    if words is None:
        return ", ".join([code, *(f"{name}={value}" for name, value in values.items())])
    return words(values) if callable(words) else words.format(**values)


def _filled(noun: str, with_what: str) -> Callable[[dict[str, Any]], str]:
    def words(values: dict[str, Any]) -> str:
        of_training = " of the training rows" if values["is_new"] else ""
        filled = with_what.format(**values)
        return f"{counted(values['n_cells'], noun)} filled with the {filled}{of_training}"

    return words


def _encoded(values: dict[str, Any]) -> str:
    columns = counted(values["n_columns"], "column")
    return f"encoded as {columns} of 0 and 1 for its texts {values['texts']}"


def _unknown(values: dict[str, Any]) -> str:
    n_rows = values["n_rows"]
    have = f"{counted(n_rows, 'row')} {'has' if n_rows == 1 else 'have'}"
    return (
        f"{have} a text that the training rows do not have ({values['texts']}), so all its columns "
        "of 0 and 1 are 0"
    )


def _words(values: dict[str, Any]) -> str:
    n_numbers, n_gaps = values["n_numbers"], values["n_gaps"]
    if not n_numbers:
        return f"{counted(n_gaps, 'cell')} with words read as missing: {values['texts']}"
    gaps = f", and {counted(n_gaps, 'cell')} as missing" if n_gaps else ""
    cells = f"{counted(n_numbers, 'cell')} with words read as the number in it"
    return f"{cells}{gaps}: {values['texts']}"


def _numbers_first(values: dict[str, Any]) -> str:
    is_one = values["n_columns"] == 1
    named = "the column is called x1" if is_one else "the columns are called x1, x2, ..."
    return f"the first {values['unit']} has numbers, so it is a row of data; {named}"


def _cause(values: dict[str, Any]) -> str:
    """What to do about runs that have no solution, and why they have none."""
    words = "Check for duplicate rows, "
    if values["n_separate"]:
        words = "Look at the rows that are separate from the rest, "
    if values["is_first_large"]:
        words += (
            "or raise max_gamma: the most anomalous component alone contains at least "
            "max_gamma={max_gamma} of the rows. The"
        )
    else:
        words += "or raise p_high or high_gamma: the"
    words += (
        " mixtures allow {low:.3g} to {high:.3g} for P(gamma >= {high_gamma}), but p_high is "
        "{p_high}."
    )
    return words.format(**values)


def _period(values: dict[str, Any]) -> str:
    done = {
        "dropped": "was dropped, because the same rows are now counted under another name.",
        "replaced": "was replaced.",
    }[values["what"]]
    return f"{done} It had {values['had']}.{values['groups']}"


ROW_KINDS = {
    "asked": "asked for",
    "title": "text above the names of the columns",
    "headings": "headings above the names of the columns",
    "units": "units below the names of the columns",
    "names again": "repeated names of the columns",
    "total": "sums",
    "remark": "remarks",
    "other table": "another table",
}
"""What rows are that are no data."""
UNUSABLE = {
    "empty": "all its values are missing",
    "forms": "its cells are numbers in different forms",
    "infinite": "all its values are infinite",
    "kind": "its cells are neither numbers nor text",
    "many texts": "it has too many different texts",
    "taken name": "encoded, it would have the name of another column",
    "text": "some of its cells are no numbers",
}
"""Why a column cannot be used, by the code of the problem."""
WORDS: dict[str, str | Callable[[dict[str, Any]], str]] = {
    # How a file was read.
    "tables.numbers": "{words}",
    "tables.assumed": "{words}; --decimal {other} reads it in the other way",
    "tables.assumed in memory": "{words}; convert the column to numbers if this is wrong",
    "tables.other files": "{words}",
    "tables.row names": "the header has one cell less than the rows; the first column is taken as "
    "the names of the rows and is called {name!r}",
    "tables.unnamed": "column {place} has no name in the file and is called {name!r}",
    "tables.encoding": "not UTF-8, read as {encoding}; --encoding reads it in another way",
    "tables.text": "is text under the name of a workbook, and is read as CSV",
    "tables.sheet": "{sheet} is read, and not {others}; --table NAME reads another one",
    "tables.titles": "skipped the text above the column names: {titles}",
    "tables.durations": "durations are read as seconds",
    "tables.rows": lambda values: (
        f"not used, as {ROW_KINDS[values['kind']]}: {values['unit']}"
        f"{'' if values['n_rows'] == 1 else 's'} {values['lines']} ({values['texts']})"
    ),
    "tables.beside": lambda values: (
        "another table beside this one is not used: "
        f"{counted(values['n_columns'], 'column')}, {values['unit']}s {values['lines']} "
        f"({values['texts']}); --header LINE, the line of the names, reads all columns"
    ),
    "tables.words": _words,
    "tables.likely code": "the value {value} stands in {n_cells} cells and is far from all others: "
    "if it marks missing values, {ask} reads it so",
    "tables.clear code": "the value {value} in {n_cells} cells is read as missing; {ask} keeps it",
    "tables.codes": lambda values: (
        f"{counted(values['n_cells'], 'cell')} with a value for it read as missing"
    ),
    "tables.renamed": "is another column with the name {name!r}",
    "tables.missing words": lambda values: (
        f"{values['words']} read as {counted(values['n_cells'], 'missing value')}"
    ),
    "tables.numbers first": _numbers_first,
    "tables.computed": "is computed by the database when it is read, and is not used",
    "tables.binary": "contains binary data, which are not read",
    "tables.keys": "{words}",
    "tables.collected": "is a lazy frame, whose rows were collected into memory",
    # What a table became.
    "tables.guess": "{words}",
    "tables.guesses": "{words}",
    "tables.filled": _filled("missing value", "median {value:.6g}"),
    "tables.gap text": lambda values: (
        f"{counted(values['n_cells'], 'missing value')} encoded as the text {values['text']!r}"
    ),
    "tables.filled date": _filled("missing date", "median date"),
    "tables.one text": "not used: its only text is {text}",
    "tables.implied text": "not used: other columns say the same as its texts {texts}",
    "tables.unusable": lambda values: f"not used: {UNUSABLE[values['problem']]}",
    "tables.infinite": lambda values: (
        f"{counted(values['n_cells'], 'infinite value')} read as missing"
    ),
    "tables.encoded": _encoded,
    "tables.dates": "dates ({form}) encoded as {columns}",
    "tables.equal dates": "dates ({form}) not used: they are equal",
    "tables.unknown text": _unknown,
    "tables.dropped": "dropped {n_dropped:,} of {rows} because they have missing values",
    "tables.gaps dropped": "rows with missing values are dropped, and the others are numbered",
    "tables.added": "columns that the training rows do not have are not used for the scores: "
    "{columns}",
    "tables.no id": "the file does not have this id column, so its rows are numbered",
    "tables.by order": "the training rows have no names of columns, so the columns of the file are "
    "used in their order: {columns}",
    "tables.groups": "not used as data: it has the groups; {keep} keeps it",
    "tables.same id": "{n_repeated} rows have the same id as an earlier row; {id!r} occurs "
    "{n_times} times",
    "tables.sampled": "the fit has a random sample of {n_sampled} of {n_rows} rows",
    "columns.constant": "constant columns are not used by the detectors: {columns}",
    # Detectors and mixtures.
    "detectors.skipped": "skipped: {reason}",
    "detectors.sampled": "fitted on {n_fit} random rows of {n_rows}; the others are scored as new "
    "rows",
    "detectors.too slow": "skipped: on {n_rows} rows of {n_columns} columns it would take most of "
    "the time of the fit; a number for max_fit_rows includes it",
    "detectors.lowered": "{parameter} was lowered from {before} to {after} because the detector is "
    "fitted on {n_rows} rows",
    "detectors.novelty": "novelty was set to True so that the detector can score new rows",
    "mixture.sampled": "each run was fitted to {n_seen} random rows of {n_rows}",
    "mixture.components": "lowered from {before} to {after}: {have} {n_seen} rows",
    "mixture.regularised": "the covariance prior is singular: reg_covar times the mean of its "
    "diagonal was added to the diagonal, with reg_covar={reg_covar}",
    "mixture.start": "k-means was fitted to {n_rows} random rows; the other rows were assigned to "
    "the nearest centre",
    "mixture.timeout": "{n_done} of {n_runs} runs finished within timeout={timeout} s; the others "
    "do not enter the posterior",
    "mixture.max_iter": "{n_capped} of {n_runs} runs stopped at max_iter={max_iter} before they "
    "converged: raise {raised}.",
    "link.starts": lambda values: (
        f"{values['n_unsolved']} of {counted(values['n_starts'], 'start')} had no solution"
        + ("." if values["n_unsolved"] == values["n_starts"] else "; the estimate uses the others.")
    ),
    "link.slack": "In {n_slack} of {n_runs} runs P(gamma >= {high_gamma}) is at most {most:.3g}, "
    "below p_high={p_high}: these runs use delta = 0.",
    "link.missed": "P(gamma >= {high_gamma}) is {reached:.2g} on average over the {n_solved} "
    "solved runs, but p_high is {p_high}: p_high holds at the expected anomalousness r of each "
    "component, and the posterior averages over draws of r. If this matters, {change} p_high.",
    "link.unsolved": lambda values: (
        f"{values['n_unsolved']} of {values['n_runs']} runs have no solution and are excluded from "
        f"the posterior. {_cause(values)}"
    ),
    "link.no solution": lambda values: (
        "The model has no estimate for this table, which does not mean that its rows are clean. "
        "The result is the point mass at 0 that the paper prescribes, because none of "
        f"{counted(values['n_runs'], 'run')} has a solution. {_cause(values)}"
    ),
    # What speaks for and against the estimate.
    "evidence.separate rows": lambda values: (
        f"{counted(values['n_rows'], 'row')} ({percent(values['share'])}) are separate from the "
        f"rest, but the model range ends at {percent(values['high'])}: look at these rows, and "
        "label some."
    ),
    "evidence.no estimate": lambda values: (
        f"{counted(values['n_rows'], 'row')} ({percent(values['share'])}) are separate from the "
        "rest, and the model has no estimate: look at these rows, and label some."
    ),
    # Labels.
    "labels.posterior": "the posterior uses {n_known} known rows ({n_anomalies} anomalies) and, "
    "for the other rows, the distribution of the share in labelled real tables as its prior (with "
    "rows chosen at random, it has a part Beta(1, 1)); it "
    "does not use the mixtures",
    "labels.listed": "{n_rows} known rows were not chosen at random; they affect only their own "
    "labels",
    "labels.picked": "{n_rows} known rows were picked from the top of the ranking; for the "
    "posterior, they only give a minimum for the number of anomalies",
    "labels.corrected": "the labels of these rows were replaced by other ones: {rows}",
    "labels.ranking": "{words}",
    # Kept fits, histories and settings.
    "load.index": "has been texts since the fit was saved, because a file holds an index of whole "
    "numbers or texts; that of the training rows was another one ({kind})",
    "load.missing": "cannot score new rows any more ({versions}): {reason}",
    "load.other scores": "scores {n_changed:,} of {n_rows:,} rows that were tried differently from "
    "the saved fit ({versions}). The answers for the training rows are the saved ones; new rows "
    "are scored by the detector as it is now",
    "load.ranking": "was learned again from the labels and differs from the saved one ({versions})",
    "history.earlier": "is before {newest}, which is in the history already. The tests follow the "
    "order in which periods are added, so that it is compared with the rows of later periods.",
    "history.length": "has another length than {other}, which is in the history already. Make sure "
    "that no row is counted in both.",
    "history.no time": "{n_blank:,} of {n_rows:,} rows have no time and are skipped",
    "history.no period": "has no rows with a time, so that no period is added",
    "history.period": _period,
    "history.groups": "Its counts of groups were dropped{reason}: {groups}.",
    "settings.given": "sets {settings}",
}
"""Templates and functions by code; "{words}" stands for what was put into words before."""
