"""Rows of a table that have sums, carries or other figures of the rows around them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gammagmm.readers.numbers import number_and_digits

__all__ = ["figure_rows"]

SUM = (
    r"\*+|(?:\w*(?:total|totals|totale|totales|totali|totaal|totalt|totaux|gesamt|summe|summen|"
    r"summa|suma|somma|somme|součet|összesen|összeg|yhteensä)|(?:\w*gesamt)?ergebnis|\w*toplam|sum|"
    r"som|delsum|delsom|i alt|razem|ogółem|celkem|итого|всего|合計|小計|総計)"
)
"""How a label of sums begins or ends, in the languages of Europe and some others."""
CARRY = (
    r"übertrag|\w*vortrag|(?:carried|brought) (?:forward|down|over)|[bc]/[fd]|à reporter|reports?|"
    r"\w*saldo|balance|solde|suma y sigue|riporto|a riportare|a transportar|transporte|"
    r"transport(?:eren)?|przeniesienie"
)
FIGURE = (
    r"average|avg|mean|median|min(?:imum)?|max(?:imum)?|count|std\w*|sd|variance|mittelwert|"
    r"durchschnitt|mittel|anzahl|varianz|moyenne|nombre|écart[- ]type|promedio|media|mediana|"
    r"mínimo|máximo|gemiddelde|aantal|średnia|medelvärde|antal|průměr|(?:percentile|quantil|quartil)e?"
)
WORD_ENDS = r"(?<![^\W_])", r"(?![^\W_])"
MAX_LABEL = 60
"""Characters of a label; a longer text is a remark."""
FEW = 0.05
"""Share of the rows that have the label of sums, but no sums, and are no data."""
MOST_READ = 0.9
"""Share of the cells of a column that are numbers with a decimal mark if it is the right one."""
MAX_COLUMNS, MAX_LEVELS, MAX_END = 50, 50, 20
N_COMPUTED = 4
"""Statistics that no single row has: mean, spread, variance and count; quantiles follow."""
MAX_TESTED = 500
"""Rows with a label of sums that are tested first; if most are data, the others are data too."""
LEAST_ADDENDS = 2
CLEAR, LIKELY = 10_000.0, 100.0
"""Values that the numbers of a row could have, so that it is proved, alone or at the end."""


def _pattern(words: str) -> re.Pattern[str]:
    """A label that begins or ends with one of the words; one more may stand before it."""
    before, after = WORD_ENDS
    return re.compile(
        rf"\W*(?:[^\W_]+[\s-]+)?(?:{words}){after}|.*{before}(?:{words})\W*$", re.IGNORECASE
    )


def _alone(words: str) -> re.Pattern[str]:
    before, after = WORD_ENDS
    return re.compile(rf"(?:\W*{before}(?:{words}){after}\W*)+(?:\(.*\)\W*)?", re.IGNORECASE)


SUMS, TOTALS, FIGURES = _pattern(f"{SUM}|{CARRY}"), _pattern(SUM), _alone(FIGURE)
PLAIN = _alone(f"{SUM}|{CARRY}|{FIGURE}|grand|general|général|geral|gran|net|gross|overall")


@dataclass(frozen=True, eq=False)
class Numbers:
    """Numbers of the rows with one decimal mark: values (n, d), and the places after the mark."""

    values: NDArray[np.float64]
    digits: NDArray[np.int64]

    def tolerance(self, row: int, n_added: NDArray[np.float64] | float) -> NDArray[np.float64]:
        """How far the sum of so many rounded numbers may be from its rounded value."""
        unit = 10.0 ** -self.digits[row]
        near: NDArray[np.float64] = 1e-9 * np.abs(self.values[row]) + 0.501 * unit
        return near * np.sqrt(np.maximum(n_added, 1.0) / LEAST_ADDENDS)


def figure_rows(
    rows: Sequence[Sequence[Any]],
    keys: Collection[int],
    labels: Collection[int],
    columns: Sequence[int],
    nameless: Collection[int] = (),
) -> set[int]:
    """Places of the rows with sums and other figures, among the `rows` below the names.

    Their label says so, and arithmetic proves it: half of their numbers are the sums, the means,
    ... of rows above, or the sums of those below. Without a proof, which rounding or hidden rows
    may prevent, a row with such a label is one of them if it is at the end, or if it lacks most of
    what other rows have, and if there are few such rows, or most are proved. A brand "TOTAL" in
    complete rows is data, and so is a complete row "Transport" or "Balance" without a proof.

    Parameters
    ----------
    rows : sequence of sequences
        Their cells.
    keys : collection of int
        Columns in which nearly all rows have a cell, and a value where the others have values.
    labels : collection of int
        Columns of texts and of dates.
    columns : sequence of int
        Columns of numbers.
    nameless : collection of int
        Places of rows that have numbers, but lack all labels.

    Returns
    -------
    set of int
        The places.
    """
    finder = _Finder(rows, set(keys), set(labels), columns[:MAX_COLUMNS], set(nameless))
    return finder.found() if finder.candidates else set()


class _Finder:
    """The rows with a label of sums or figures, and what is known of them."""

    def __init__(
        self,
        rows: Sequence[Sequence[Any]],
        keys: set[int],
        labels: set[int],
        columns: Sequence[int],
        nameless: set[int],
    ) -> None:
        self.rows, self.keys, self.labels, self.columns = rows, keys, labels, columns
        named_sums = {i for i in range(len(rows)) if self._is_named(i, _says_sum)}
        self.nameless = nameless - named_sums
        self.sums = named_sums | nameless
        named = {i for i in range(len(rows)) if self._is_named(i, _says_figure)}
        # More rows than a table has figures are data, whose column says "mean", "max", ...
        named = named if len(named) <= MAX_END else set()
        unnamed = self._poor_ends() - named - self.sums
        self.figures = (named | unnamed) - self.sums
        self.unnamed = unnamed
        self.candidates = self.sums | self.figures
        self.levels = self.candidates
        self.sums_above = dict[Numbers, tuple[NDArray[np.float64], NDArray[np.float64]]]()
        self.statistics_above = dict[tuple[Numbers, int], NDArray[np.float64]]()

    def _poor_ends(self) -> set[int]:
        """The last rows that have numbers, but lack labels; they need no words to be figures."""
        ends = range(max(0, len(self.rows) - MAX_END), len(self.rows))
        return {i for i in ends if self._lacks_labels(i) and not self._is_empty(i)}

    def _texts(self, i: int) -> list[str]:
        found = (cell.strip() for cell in self.rows[i] if isinstance(cell, str))
        return [cell for cell in found if 0 < len(cell) <= MAX_LABEL]

    def _is_named(self, i: int, says: Callable[[str], bool]) -> bool:
        """Whether a text of the row is such a label, and one of its cells is a number."""
        if not any(map(says, self._texts(i))):
            return False
        cells = (self.rows[i][j] for j in self.columns if j < len(self.rows[i]))
        return any(_number(cell, mark) is not None for cell in cells for mark in ".,")

    def found(self) -> set[int]:
        """Those that are not data; sums are sums of all others."""
        first = self._found()
        if first == self.candidates:
            return first
        self.levels = first
        self.sums_above.clear()
        self.statistics_above.clear()
        return self._found()

    def _found(self) -> set[int]:
        """Those that are not data, if sums are sums of the rows outside of `levels`."""
        evidence = self._all_evidence()
        found = {i for i, n in evidence.items() if n >= CLEAR}
        named = self.sums - self.nameless
        likely = {i for i in named if evidence[i] > 0.0}
        has_one_label = len(self.labels & self.keys) <= 1
        complete = {i for i in self.candidates if self._is_complete(i)}
        carries = {i for i in complete & named if not any(map(_says_total, self._texts(i)))}
        weak = self.candidates - (carries if has_one_label else complete) - self.nameless
        if 2 * len(likely) > len(named):
            found |= (likely - carries) | (weak & named)
        few = {i for i in named if self._lacks_labels(i)}
        if len(few) <= max(1.0, FEW * len(self.rows)):
            found |= few
        proved = {i for i in self.figures if evidence[i] >= LIKELY and i in weak}
        return found | self._end(found | proved, weak)

    def _all_evidence(self) -> dict[int, float]:
        """The evidence of each candidate; 0 without a test where most of very many have none."""
        tested = sorted(self.candidates)
        first = {*tested[:: -(-len(tested) // MAX_TESTED)], *tested[-MAX_END:]}
        levels = np.array(sorted(self.levels), dtype=np.intp)
        found = dict.fromkeys(tested, 0.0) | {i: self._best_evidence(i, levels) for i in first}
        if 2 * sum(found[i] > 0.0 for i in first) > len(first):
            found |= {i: self._best_evidence(i, levels) for i in tested if i not in first}
        if any(found[i] >= LIKELY for i in self.unnamed):
            beside, self.unnamed = self.unnamed, set()  # a mean proves the extremes beside it
            found |= {i: self._best_evidence(i, levels) for i in beside}
        return found

    def _best_evidence(self, i: int, levels: NDArray[np.intp]) -> float:
        return max((self._evidence(i, own, levels) for own in self.numbers), default=0.0)

    def _lacks_labels(self, i: int) -> bool:
        """Whether a row has at most half of the labels that nearly all others have."""
        usual = self.labels & self.keys
        n_lacking = len(usual) - self._n_filled(i, usual)
        return n_lacking >= max(1, len(usual) // 2)

    def _is_complete(self, i: int) -> bool:
        return self._n_filled(i, self.keys) == len(self.keys)

    def _end(self, found: set[int], weak: set[int]) -> set[int]:
        """The rows at the end of which more than half are figures, so that all of them are."""
        with_numbers = [i for i in range(len(self.rows)) if not self._is_empty(i)]
        brands = Counter(t for i in self.candidates - found for t in self._texts(i))
        end, n_figures = set[int](), 0
        for n, i in enumerate(reversed(with_numbers[-MAX_END:]), start=1):
            is_plain = any(PLAIN.fullmatch(t) and brands[t] == 1 for t in self._texts(i))
            is_alone = n == 1 and i in self.figures and self._is_complete(i)
            n_figures += i in found or (i in weak and is_plain and not is_alone)
            if (i in found or i in weak) and 2 * n_figures > n:
                end = set(with_numbers[-n:])
        return end

    def _is_empty(self, i: int) -> bool:
        return all(np.isnan(numbers.values[i]).all() for numbers in self.numbers)

    def _n_filled(self, i: int, keys: set[int]) -> int:
        """In how many of these columns the row has such a cell as other rows."""
        row = self.rows[i]
        filled = (j for j in keys if j < len(row) and row[j] not in ("", None))
        return sum(j not in self._coded or _has_digit(row[j]) for j in filled)

    @cached_property
    def _coded(self) -> set[int]:
        """The columns of labels in which nearly all cells have digits, as dates and ids do."""
        found = set[int]()
        for j in self.labels:
            cells = [row[j] for row in self.rows if j < len(row) and row[j] not in ("", None)]
            found |= {j} if sum(map(_has_digit, cells)) > MOST_READ * len(cells) else set()
        return found

    @cached_property
    def numbers(self) -> list[Numbers]:
        """The numbers of the rows, with each decimal mark with which most cells are numbers."""
        found = [self._read(mark) for mark in ".,"]
        n_read = [int(np.isfinite(numbers.values).sum()) for numbers in found]
        return [own for own, n in zip(found, n_read, strict=True) if n > MOST_READ * max(n_read)]

    def _read(self, mark: str) -> Numbers:
        shape = len(self.rows), len(self.columns)
        values, digits = np.full(shape, np.nan), np.zeros(shape, dtype=np.int64)
        for i, row in enumerate(self.rows):
            for k, j in enumerate(self.columns):
                read = _number(row[j], mark) if j < len(row) else None
                if read is not None:
                    values[i, k], digits[i, k] = read
        return Numbers(values, digits)

    def _evidence(self, i: int, numbers: Numbers, levels: NDArray[np.intp]) -> float:
        """How improbable it is by chance that half of the numbers of a row are figures of others.

        It is the number of values that these numbers could have; 0 where fewer are such figures.
        """
        own = numbers.values[i]
        has = np.isfinite(own) & (own != 0.0)
        find = self._sums if i in self.sums else self._figures
        figures, n_added = find(i, numbers, levels)
        near = np.abs(figures - own) < numbers.tolerance(i, n_added)
        agree = near & (n_added >= LEAST_ADDENDS) & has
        if i not in self.sums:
            agree &= figures[N_COMPUTED] < figures[-1]  # a constant column proves nothing
        if i in self.unnamed:
            agree[N_COMPUTED:] &= self._are_all_alike(agree[N_COMPUTED:], own, has)
        is_half = 2 * agree.sum(axis=1) >= max(1, has.sum())
        n_values = np.abs(np.where(has, own, 1.0)) * 10.0 ** numbers.digits[i]
        products = np.prod(np.where(agree, np.maximum(n_values, 1.0), 1.0), axis=1)
        return float(np.where(is_half, products, 0.0).max(initial=0.0))

    def _are_all_alike(
        self, agree: NDArray[np.bool_], own: NDArray[np.float64], has: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """Whether all numbers of a row, at least two different ones, are the same quantile.

        One alone may be a measurement that is as high or as low as another one.
        """
        if len(np.unique(own[has])) < LEAST_ADDENDS:
            return np.zeros((len(agree), 1), dtype=bool)
        return np.asarray((agree | ~has).all(axis=1))[:, None]

    def _sums(
        self, i: int, numbers: Numbers, levels: NDArray[np.intp]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Sums of the data between the row and each other candidate, or an end of the table.

        A carry may also repeat the row before it.
        """
        sums, counts = self._sums_above(numbers)
        before = levels[: np.searchsorted(levels, i)]
        after = levels[np.searchsorted(levels, i, side="right") :]
        starts = np.concatenate([[0], before[-MAX_LEVELS:] + 1])
        ends = np.concatenate([after[:MAX_LEVELS], [len(self.rows)]])
        totals = np.concatenate([sums[i] - sums[starts], sums[ends] - sums[i + 1]])
        n_added = np.concatenate([counts[i] - counts[starts], counts[ends] - counts[i + 1]])
        if len(before) and not (n_added[len(before[-MAX_LEVELS:])]).any():
            repeated = np.nan_to_num(numbers.values[before[-1]])
            totals = np.vstack([totals, repeated])
            n_added = np.vstack([n_added, np.full(len(repeated), LEAST_ADDENDS)])
        return totals, n_added

    def _sums_above(self, numbers: Numbers) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Sums of the data above each row, and how many numbers were added, (n + 1, d)."""
        if numbers in self.sums_above:
            return self.sums_above[numbers]
        is_data = np.ones((len(self.rows), 1), dtype=bool)
        is_data[sorted(self.levels)] = False
        kept = np.where(is_data, np.nan_to_num(numbers.values), 0.0)
        start = np.zeros((1, kept.shape[1]))
        sums = np.concatenate([start, np.cumsum(kept, axis=0)])
        counts = np.concatenate([start, np.cumsum(kept != 0.0, axis=0)])
        self.sums_above[numbers] = sums, counts
        return sums, counts

    def _figures(
        self, i: int, numbers: Numbers, levels: NDArray[np.intp]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Statistics of the data above the row, whose errors do not add up."""
        before = levels[: np.searchsorted(levels, i)]
        key = numbers, i - len(before)
        if key not in self.statistics_above:
            above = np.delete(numbers.values[:i], before, axis=0)
            own = [_statistics(column[np.isfinite(column)]) for column in above.T]
            self.statistics_above[key] = np.array(own).T
        found = self.statistics_above[key]
        return found, np.full(found.shape, LEAST_ADDENDS)


@lru_cache(maxsize=100_000)
def _says_sum(label: str) -> bool:
    return SUMS.match(label) is not None


@lru_cache(maxsize=100_000)
def _says_total(label: str) -> bool:
    return TOTALS.match(label) is not None


@lru_cache(maxsize=100_000)
def _says_figure(label: str) -> bool:
    return FIGURES.fullmatch(label) is not None


def _has_digit(cell: Any) -> bool:
    return any(map(str.isdigit, str(cell)))


def _statistics(values: NDArray[np.float64]) -> list[float]:
    if len(values) < LEAST_ADDENDS:
        return [np.nan] * 9
    quarters = np.quantile(values, (0.0, 0.25, 0.5, 0.75, 1.0)).tolist()
    spread = float(values.std(ddof=1))
    return [float(values.mean()), spread, spread**2, float(len(values)), *quarters]


def _number(cell: Any, mark: str) -> tuple[float, int] | None:
    """The number in a cell and how many digits it has after the decimal mark."""
    if isinstance(cell, str):
        return number_and_digits(cell, mark)
    if isinstance(cell, bool) or not isinstance(cell, int | float) or not np.isfinite(cell):
        return None
    return float(cell), len(repr(round(cell, 9)).partition(".")[2]) if cell % 1.0 else 0
