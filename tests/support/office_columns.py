"""The columns of the files of `tests.support.office_files`, with what each cell means."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tests.support.office_styles import NO_DATE, Style, date_cell, number_cell, number_text
from tests.support.office_tables import (
    APPROXIMATELY,
    EMPTY,
    LABEL,
    REMARKS,
    YES_NO,
    Locale,
    Number,
    Office,
    Text,
    in_language,
)
from tests.support.workbooks import Cell

__all__ = ["ColumnTruth", "Plan", "Rows", "draw_columns"]

Floats = NDArray[np.float64]
Rows = tuple[int, ...]

FIRST_DATE = datetime.datetime(2025, 1, 3)
LIMITS = {-999.0: (-100.0, np.inf), 9999.0: (-np.inf, 3000.0), 99999.0: (-np.inf, 30000.0)}
"""Between which limits all numbers of a column lie if the gap code is far outside."""
INTEGER_CODES = {
    "year": (1950, 2006),
    "phone": (30_100_200, 89_900_000),
    "account": (70_000, 70_090),
    "ean": (4_006_381_000_000, 4_006_382_000_000),
}


@dataclass(frozen=True, eq=False)
class ColumnTruth:
    """What the cells of a column mean; rows are counted among the data rows, from 0."""

    name: str
    kind: str  # number, category, date, id, code, label, empty, remark
    cells: tuple[Cell, ...]  # as in the file; "" is a blank cell
    texts: tuple[str, ...]  # categories, ids and codes as written, dates in ISO; "" is a gap
    values: Floats  # numbers (12.5 for "12.5 %"), labels (1 is yes, 0 is no); NaN elsewhere
    gaps: Rows  # without a value: blank, a word for it, or the gap code
    code_rows: Rows = ()  # those of `gaps` that have the gap code
    gap_code: str = ""  # the code as it stands in the file
    word_rows: Rows = ()  # a number among words: "approx 10", "12 kg"
    odd_rows: Rows = ()  # the anomalies that are odd in this column
    unit: str = ""


@dataclass(frozen=True)
class Plan:
    """What is known of a file before its cells are drawn."""

    office: Office
    locale: Locale
    style: Style
    n_rows: int
    anomalies: Rows
    rng: np.random.Generator

    def words(self, words: str) -> str:
        """The words in the language of the file."""
        return in_language(words, self.locale.language)

    def some_rows(self, low: float, high: float, taken: Rows = ()) -> Rows:
        """A random share of the rows that are not taken, at least 3 rows."""
        free = np.setdiff1d(np.arange(self.n_rows), np.array(taken, dtype=int))
        n = max(3, round(self.n_rows * self.rng.uniform(low, high)))
        return tuple(np.sort(self.rng.choice(free, n, replace=False)).tolist())


def draw_columns(plan: Plan) -> list[ColumnTruth]:
    """The columns of the office, and one more if the style has one."""
    numbers = iter(_number_columns(plan))
    groups = next(spec for spec in plan.office.columns if _is_category(spec))
    columns = []
    for spec in plan.office.columns:
        if isinstance(spec, Number):
            columns.append(next(numbers))
        elif spec.kind == "date":
            columns.append(_date_column(spec, plan))
        else:
            columns.append(_text_column(spec, plan, spec is groups))
    if plan.style.extra == "empty":
        columns.append(_empty_column(plan))
    if plan.style.extra == "label":
        columns.append(_label_column(plan))
    return columns


def _is_category(spec: Number | Text) -> bool:
    return isinstance(spec, Text) and spec.kind == "category"


def _nothing(plan: Plan) -> Floats:
    return np.full(plan.n_rows, np.nan)


# ---- numbers


def _number_columns(plan: Plan) -> list[ColumnTruth]:
    """Two columns have gaps, one may have a gap code, and one words around its numbers."""
    rng = plan.rng
    specs = [spec for spec in plan.office.columns if isinstance(spec, Number)]
    values, odd = _draw_numbers(specs, plan)
    columns = []
    coded = _coded_column(values, plan)
    gapped = rng.choice(len(specs), 2, replace=False)
    worded = int(rng.integers(len(specs))) if plan.style.words else -1
    for j, spec in enumerate(specs):
        blanks = plan.some_rows(0.01, 0.05, odd[j]) if j in gapped else ()
        codes = plan.some_rows(0.03, 0.07, odd[j] + blanks) if j == coded else ()
        taken = odd[j] + blanks + codes
        taken += tuple(np.flatnonzero(values[:, j] < 0).tolist())
        words = plan.some_rows(0.005, 0.015, taken) if j == worded else ()
        columns.append(_number_column(spec, values[:, j], odd[j], blanks, codes, words, plan))
    return columns


def _draw_numbers(specs: Sequence[Number], plan: Plan) -> tuple[Floats, list[Rows]]:
    """Numbers, (n_rows, n_specs), with a common factor, and the rows that are odd in each column.

    An anomaly is 6 to 9 units of spread off in two columns or more, where others are at most 4.
    """
    rng, shape = plan.rng, (plan.n_rows, len(specs))
    common = np.clip(rng.standard_normal((plan.n_rows, 1)), -3, 3)
    noise = 0.6 * common + 0.8 * np.clip(rng.standard_normal(shape), -2.7, 2.7)
    odd: list[list[int]] = [[] for _ in specs]
    for row in plan.anomalies:
        for j in rng.choice(len(specs), int(rng.integers(2, len(specs) + 1)), replace=False):
            sign = rng.choice([-1, 1]) if specs[j].normal else 1
            noise[row, j] = sign * rng.uniform(6, 9)
            odd[j].append(row)
    columns = []
    for spec, column in zip(specs, noise.T, strict=True):
        steps = spec.spread * column
        values = spec.centre + steps if spec.normal else spec.centre * np.exp(steps)
        columns.append([float(f"{value:.{spec.digits}f}") + 0.0 for value in values])
    return np.array(columns).T, [tuple(rows) for rows in odd]


def _coded_column(values: Floats, plan: Plan) -> int:
    """A column whose numbers are all far from the gap code, or -1."""
    if not isinstance(plan.style.gap_code, float):
        return -1
    low, high = LIMITS[plan.style.gap_code]
    fit = np.flatnonzero((values.min(axis=0) > low) & (values.max(axis=0) < high))
    return int(plan.rng.choice(fit)) if len(fit) else -1


def _number_column(
    spec: Number, values: Floats, odd: Rows, blanks: Rows, codes: Rows, words: Rows, plan: Plan
) -> ColumnTruth:
    style = plan.style
    unit = plan.words(spec.unit).replace("¤", plan.locale.currency)
    cells = [number_cell(value, spec.digits, spec.unit, style) for value in values.tolist()]
    digits = spec.digits if plan.rng.random() < 0.5 else 0  # 9999 or 9999.0
    code = number_cell(style.gap_code, digits, "", style) if codes else ""
    for row in words:
        cells[row] = _among_words(float(values[row]), spec, unit, plan)
    for row in blanks:
        cells[row] = style.gap
    for row in codes:
        cells[row] = code
    values = values.copy()
    values[[*blanks, *codes]] = np.nan
    name = plan.words(spec.names)
    return ColumnTruth(
        name=f"{name} [{unit}]" if unit and style.units_in_names else name,
        kind="number",
        cells=tuple(cells),
        texts=("",) * plan.n_rows,
        values=values,
        gaps=tuple(sorted(blanks + codes)),
        code_rows=codes,
        gap_code=str(code),
        word_rows=words,
        odd_rows=odd,
        unit=unit,
    )


def _among_words(value: float, spec: Number, unit: str, plan: Plan) -> str:
    text = number_text(value, spec.digits, replace(plan.style, decimal=plan.locale.decimal))
    if spec.unit in ("", "¤", "%") or plan.rng.random() < 0.5:
        return plan.words(APPROXIMATELY) + text
    return f"{text} {unit}"


# ---- dates, texts, labels


def _date_column(spec: Text, plan: Plan) -> ColumnTruth:
    """Days of a year, some of them blank, or times six hours apart."""
    has_time = spec.shape == "time"
    hours = (
        6 * np.arange(plan.n_rows) if has_time else 24 * plan.rng.integers(360, size=plan.n_rows)
    )
    dates = [FIRST_DATE + datetime.timedelta(hours=hour) for hour in hours.tolist()]
    texts = [(date if has_time else date.date()).isoformat() for date in dates]
    blanks = () if has_time or plan.rng.random() < 0.5 else plan.some_rows(0.01, 0.05)
    codes = plan.some_rows(0.02, 0.05, blanks) if plan.style.gap_code == NO_DATE else ()
    for row in codes:
        dates[row] = NO_DATE
    cells = [date_cell(date, has_time, plan.style, plan.locale) for date in dates]
    for row in blanks:
        cells[row] = ""
    for row in blanks + codes:
        texts[row] = ""
    return ColumnTruth(
        name=plan.words(spec.names),
        kind="date",
        cells=tuple(cells),
        texts=tuple(texts),
        values=_nothing(plan),
        gaps=tuple(sorted(blanks + codes)),
        code_rows=codes,
        gap_code=str(cells[codes[0]]) if codes else "",
    )


def _text_column(spec: Text, plan: Plan, is_group: bool) -> ColumnTruth:
    """A column of texts; the groups of a table with subtotals or blocks are sorted."""
    draw = {"category": _categories, "id": _ids, "code": _codes, "remark": _remarks}[spec.kind]
    texts = draw(spec, plan)
    if is_group and {"totals", "blocks"} & set(plan.style.structure):
        texts.sort()
    if spec.kind == "category" and not is_group:
        for row in plan.some_rows(0.01, 0.03):
            texts[row] = ""
    is_integer = spec.shape in ("{:d}", "status", *INTEGER_CODES)
    cells = [int(text) for text in texts] if plan.style.native and is_integer else texts
    return ColumnTruth(
        name=plan.words(spec.names),
        kind=spec.kind,
        cells=tuple(cells),
        texts=tuple(texts),
        values=_nothing(plan),
        gaps=tuple(i for i, text in enumerate(texts) if not text),
    )


def _categories(spec: Text, plan: Plan) -> list[str]:
    shares = plan.rng.dirichlet(np.full(len(spec.values), 6.0))
    return plan.rng.choice([plan.words(v) for v in spec.values], plan.n_rows, p=shares).tolist()


def _ids(spec: Text, plan: Plan) -> list[str]:
    first = int(plan.rng.integers(100, 90_000))
    numbers = first + np.cumsum(plan.rng.integers(1, 4, plan.n_rows))
    return [spec.shape.format(number) for number in numbers.tolist()]


def _remarks(spec: Text, plan: Plan) -> list[str]:
    """Mostly blank."""
    words = [plan.words(remark) for remark in REMARKS]
    picked = plan.rng.choice(words, plan.n_rows, p=[0.4, 0.2, 0.2, 0.1, 0.1])
    blank = plan.rng.random(plan.n_rows) < plan.rng.uniform(0.6, 0.9)
    return np.where(blank, "", picked).tolist()


def _codes(spec: Text, plan: Plan) -> list[str]:
    rng, n = plan.rng, plan.n_rows
    if spec.shape == "postcode":
        return [_postcode(plan.locale.name, number) for number in rng.integers(1067, 99_000, n)]
    if spec.shape == "bank":
        return [f"{number:010d}" for number in rng.integers(10**7, 10**10, n)]
    if spec.shape == "status":
        return rng.choice(["200", "301", "404", "500"], n, p=[0.8, 0.08, 0.1, 0.02]).tolist()
    return [str(number) for number in rng.integers(*INTEGER_CODES[spec.shape], n)]


def _postcode(locale: str, number: int) -> str:
    """A postcode of the country, made from a number of up to five digits."""
    if locale == "ch":
        return str(1000 + number % 8600)
    if locale == "se":
        return f"{100 + number % 880} {number % 90 + 10}"
    if locale == "gb":
        town, letters = ("SW", "M", "LS", "EH")[number % 4], "ABDEHJLN"
        end = letters[number % 8] + letters[number // 8 % 8]
        return f"{town}{1 + number % 19} {number % 9}{end}"
    return f"{number:05d}"


def _empty_column(plan: Plan) -> ColumnTruth:
    name = plan.words(EMPTY)
    blank, rows = ("",) * plan.n_rows, tuple(range(plan.n_rows))
    return ColumnTruth(name, "empty", blank, blank, _nothing(plan), rows)


def _label_column(plan: Plan) -> ColumnTruth:
    """Half of the rows are inspected, with the anomalies among them."""
    values = np.where(plan.rng.random(plan.n_rows) < 0.5, np.nan, 0.0)
    values[list(plan.anomalies)] = 1.0
    yes, no = map(plan.words, YES_NO[plan.rng.integers(len(YES_NO))])
    texts = tuple("" if np.isnan(value) else yes if value else no for value in values)
    gaps = tuple(np.flatnonzero(np.isnan(values)).tolist())
    name = plan.words(LABEL)
    return ColumnTruth(name, "label", texts, texts, values, gaps)
