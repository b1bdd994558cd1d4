"""The trials of labels that teach: only rows that were not looked at count."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from experiments.plan import Trial, load_plan, record_tables

from experiments import learning, tables
from gammagmm.labels.labelled_rows import LabelledRows

PLAN = load_plan()
TRIAL = Trial("learning", "paper", "WBC", "default")


def planted(n_rows=400, n_anomalies=40):
    rng = np.random.default_rng(0)
    y = (rng.permutation(n_rows) < n_anomalies).astype(int)
    return y + rng.normal(size=n_rows), y


def test_rows_that_were_looked_at_do_not_count():
    """A ranking that knows the labels by heart, and nothing else, is as good as chance."""
    consensus, y = planted()

    def by_heart(rows):
        scores = np.random.default_rng(len(rows.known_rows)).normal(size=len(y))
        scores[rows.known_rows.rows] = 100.0 * rows.known_rows.labels
        return scores, True

    def knowing(rows):
        return y + 0.0, True

    rankings = {"heart": by_heart, "truth": knowing}
    found = learning._mean_figures(TRIAL, PLAN, y, consensus, rankings, 100)
    assert found["draws"] == PLAN["learning"]["draws"]
    assert found["auc_heart"] == pytest.approx(0.5, abs=0.12)
    assert found["ap_truth"] == found["auc_truth"] == 1.0
    assert found["worse_heart"] == 1.0
    assert found["worse_truth"] == 0.0
    assert found["anomalies"] == pytest.approx(10.0, abs=3.0)


def test_without_labels_it_is_the_consensus():
    consensus, y = planted()
    found = learning._mean_figures(
        TRIAL, PLAN, y, consensus, {"same": lambda rows: (rows.scores, False)}, 0
    )
    assert found["draws"] == 1
    assert found["auc_same"] == found["auc_consensus"]
    assert (found["used_same"], found["worse_same"]) == (0.0, 0.0)


def test_looks_are_counted_and_picked_rows_are_no_sample():
    consensus, y = planted()
    finding = PLAN["learning"]["finding"]
    seen = []

    def perfect(rows):
        seen.append(len(rows.known_rows))
        np.testing.assert_array_equal(rows.scores, consensus)
        return replace(rows, scores=y + 0.0)

    curve, rows = learning._look(
        LabelledRows(consensus), y, perfect, finding, np.random.default_rng(0)
    )
    assert seen == list(range(30, 100, 10))
    known = rows.known_rows
    assert (known.at_random.sum(), known.picked.sum()) == (30, 70)
    assert curve[-1] == known.labels.sum() == 40
    assert curve[2] == y[known.rows[known.at_random]].sum()
    assert len(curve) == 10


def test_tables_are_means_over_tables():
    plan = PLAN | {
        "record": PLAN["record"] | {"collections": ["paper"], "datasets": ["WBC", "Glass"]}
    }
    names = [name for _, name in record_tables(plan)]
    assert len(names) == 2

    def figures(ap, draws=10):
        own = {"draws": draws, "auc_consensus": 0.7, "ap_consensus": 0.2, "auc_learned": 0.8}
        return own | {"ap_learned": ap, "worse_learned": ap / 10, "used_learned": 1.0}

    kept = {
        name: {
            "figures": {str(n): figures(ap) for n in plan["learning"]["numbers"]},
            "finding": {
                **{"consensus": [1, 2], "learned": [1, 2 * i], "random": 1.0, "possible": 5},
                **{"held": 1.0, "width": 0.1},
            },
        }
        for i, (name, ap) in enumerate(zip(names, (0.3, 0.5), strict=True), start=1)
    }
    results = SimpleNamespace(plan=plan, get=lambda kind, collection, name, variant: kept[name])
    row = next(row for row in tables.learning(results) if row["labels"] == 30)
    assert row["tables"] == 2
    assert row["ap"] == pytest.approx(0.4)
    assert row["ap_ratio"] == pytest.approx(2.0)
    assert row["ap_difference"] == pytest.approx(0.2)
    assert row["ap_error"] == pytest.approx(np.std([0.1, 0.3], ddof=1) / np.sqrt(2))
    assert row["worse"] == pytest.approx(0.04)
    [found] = tables.finding(results)
    assert (found["consensus"], found["learned"], found["ratio"]) == (2.0, 3.0, 1.5)
    np.testing.assert_allclose(tables.found_curves(results, "paper")["learned"], [1.0, 3.0])
