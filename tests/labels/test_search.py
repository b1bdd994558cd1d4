"""Rows to look at next, from a ranking that was learned and from the consensus."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gammagmm.labels.known_rows import KnownRows
from gammagmm.labels.labelled_rows import LabelledRows
from gammagmm.labels.learned_ranking import Inputs, learn_ranking
from gammagmm.labels.search import Candidates, next_rows


class TestTwoKindsOfAnomalies:
    """The consensus ranks one of them first, and the other, which is rare, last."""

    N_EASY, N_HARD = 40, 6

    def table(self, seed):
        rng = np.random.default_rng(seed)
        columns = rng.normal(size=(600, 4))
        columns[: self.N_EASY, 0] += 6.0
        columns[self.N_EASY : self.N_EASY + self.N_HARD] *= 0.3
        y = (np.arange(600) < self.N_EASY + self.N_HARD).astype(int)
        consensus = np.abs(columns).mean(axis=1)
        normal = rng.choice(np.arange(self.N_EASY + self.N_HARD, 600), 28, replace=False)
        first = np.append([self.N_EASY, self.N_EASY + 1], normal)  # two hard ones among the first
        return Inputs(consensus[:, None], consensus, columns), y, first

    def search(self, seed, with_consensus):
        """Anomalies found with each ten looks of thirty, after labels without an easy one."""
        inputs, y, first = self.table(seed)
        rows, found = LabelledRows(inputs.consensus).update(first, y[first]), []
        for _ in range(3):
            learned = learn_ranking(inputs, rows.known_rows, seed=0)
            taught = replace(rows, scores=learned.scores, honest_scores=learned.honest_scores)
            if with_consensus:
                taught = replace(taught, consensus=inputs.consensus)
            chosen = taught.suggest(10, purpose="find")
            rows = rows.update(chosen, y[chosen], purpose="find")
            found.append(int(y[chosen].sum()))
        return found

    def test_the_easy_ones_are_found_although_the_first_labels_are_of_the_hard_kind(self):
        alone = np.array([self.search(seed, with_consensus=False) for seed in range(6)])
        both = np.array([self.search(seed, with_consensus=True) for seed in range(6)])
        assert alone.sum(axis=1).max() <= 5
        # The first row of the consensus shows what it can do.
        assert (both[:, 0] == alone[:, 0] + 1).all()
        assert both[:, 1:].min() >= 9


def candidates(rows, p_next=0.5, n_looked=0, n_found=0):
    return Candidates(np.array(rows), p_next, n_looked, n_found)


TRIED = {"p_next": 0.2, "n_looked": 5, "n_found": 1}
FAILED = {"p_next": 0.2, "n_looked": 2, "n_found": 0}


@pytest.mark.parametrize(
    ("learned", "consensus", "expected"),
    [
        # Each ranking is tried.
        ({}, {}, [1, 6, 2, 3, 4, 5]),
        ({"p_next": 0.2}, {"p_next": 0.3}, [1, 6, 2, 3, 4, 5]),
        # (0.6 + 2) / 12 is more than (0.4 + 1) / 7, and (0.6 + 1) / 12 is less.
        ({"p_next": 0.3, "n_looked": 10, "n_found": 2}, TRIED, [1, 2, 3, 4, 5, 6]),
        ({"p_next": 0.3, "n_looked": 10, "n_found": 1}, TRIED, [6, 5, 4, 3, 2, 1]),
        # It finds more than its probabilities say.
        ({"p_next": 0.05, "n_looked": 10, "n_found": 1}, TRIED, [1, 2, 3, 4, 5, 6]),
        # Where the consensus has not led to an anomaly, one row of it is tried.
        ({"p_next": 0.3, "n_looked": 10, "n_found": 0}, FAILED, [6, 1, 2, 3, 4, 5]),
        ({"p_next": 0.3, "n_looked": 10, "n_found": 1}, FAILED, [1, 2, 3, 4, 5, 6]),
        # Of equal rates, what was learned comes first.
        ({"n_looked": 4, "n_found": 2}, {"n_looked": 2, "n_found": 1}, [1, 2, 3, 4, 5, 6]),
    ],
)
def test_the_ranking_with_the_better_rate_comes_first(learned, consensus, expected):
    order = [1, 2, 3, 4, 5, 6]
    found = next_rows(candidates(order, **learned), candidates(order[::-1], **consensus))
    assert found.tolist() == expected


class TestWhatARankingHasLedTo:
    """Rows 0 to 9 come first by the consensus, and 90 to 99 by what was learned."""

    CONSENSUS = -np.arange(100.0)
    LEARNED = np.arange(100.0)

    def first(self, picked, labels, honest=LEARNED, n=4):
        drawn = np.arange(20, 80, 3)
        known = KnownRows.none().add(drawn, drawn == 20, at_random=True, n_rows=100)
        known = known.add(picked, labels, at_random=True, picked=True, n_rows=100)
        rows = LabelledRows(self.LEARNED, known, honest, consensus=self.CONSENSUS)
        return rows.suggest(n, purpose="find").tolist()

    def test_both_are_tried_first(self):
        assert set(self.first([], [])[:2]) == {99, 0}

    def test_finds_of_the_consensus_are_those_before_its_first_row_without_a_label(self):
        assert self.first([0, 1, 2, 99], [1, 1, 1, 0]) == [3, 4, 5, 6]
        # Rows 7 to 9 come after row 3, so that something else has led to them.
        assert self.first([0, 1, 2, 9, 8, 7], [0, 0, 0, 1, 1, 1]) == [99, 98, 97, 96]

    def test_a_row_that_both_rank_first_counts_for_both(self):
        """Then they are equal, and the next rows are those of what was learned."""
        honest = self.LEARNED.copy()
        assert self.first([0, 1, 2, 99], [1, 1, 1, 0], honest) == [3, 4, 5, 6]
        honest[[0, 1, 2]] = 200.0
        assert self.first([0, 1, 2, 99], [1, 1, 1, 1], honest) == [98, 97, 96, 95]

    def test_more_rows_begin_with_the_same_ones(self):
        """So a dialogue, which asks for rows in advance, has the rows that `suggest` names."""
        many = self.first([0, 1], [1, 0], n=60)
        assert [many[:n] for n in (1, 3, 20)] == [
            self.first([0, 1], [1, 0], n=n) for n in (1, 3, 20)
        ]

    def test_no_random_number_decides_without_ties(self):
        assert len({tuple(self.first([0], [1])) for _ in range(5)}) == 1


def test_a_ranking_that_was_not_learned_is_followed():
    rows = LabelledRows(np.arange(50.0)).update([3, 20, 40], [0, 0, 1])
    assert rows.suggest(4, purpose="find").tolist() == [49, 48, 47, 46]
