from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.testing.compare import compare_images

from gammagmm import GammaGMM, History
from gammagmm.datasets import make_contaminated
from gammagmm.monitoring.counts import Count, Period
from gammagmm.posterior.betas import BetaMixture
from gammagmm.posterior.gamma_posterior import GammaPosterior
from gammagmm.report.plots import plot_comparison, plot_posterior

# Small fits are fast, and may leave most starts without a solution.
pytestmark = pytest.mark.filterwarnings("ignore::gammagmm.errors.UnsolvedRunsWarning")


@pytest.fixture
def ax():
    return Figure().subplots()


def test_the_picture_shows_density_interval_mean_and_atom(ax):
    posterior = GammaPosterior(0.2, BetaMixture(*np.array([[0.8], [5.0], [95.0]])))
    assert posterior.plot(ax) is ax
    curve, tables, mean, stem, _ = ax.get_lines()
    x, y = curve.get_data()
    np.testing.assert_allclose(y, posterior.pdf(x))
    assert np.trapezoid(y, x) == pytest.approx(0.8, abs=2e-3)
    shares, densities = tables.get_data()
    np.testing.assert_allclose(densities, GammaPosterior.reference().pdf(shares))
    assert mean.get_xdata()[0] == posterior.mean
    assert stem.get_ydata()[1] == 0.2
    (shade,) = ax.collections
    shaded = shade.get_paths()[0].vertices[:, 0]
    np.testing.assert_allclose([shaded.min(), shaded.max()], posterior.interval())
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["model range", "public tables", "mean 4.0%", "P(no anomalies) = 20.0%"]


def test_the_degenerate_posterior_is_drawn_as_an_atom_only(ax):
    plot_posterior(GammaPosterior.degenerate(), ax)
    assert len(ax.collections) == 0
    assert "P(no anomalies) = 100.0%" in [t.get_text() for t in ax.get_legend().get_texts()]


def test_a_history_shows_shares_intervals_the_reference_and_alarms(ax):
    counts = [Count(500, k) for k in (20, 18, 22, 160)]
    quiet = [{"a": Count(250, 10)}] * 3
    groups = [*quiet, {"a": Count(250, 120)}]
    periods = [Period(f"$day_{t}", *own) for t, own in enumerate(zip(counts, groups, strict=True))]
    history = History("", Count(2000, 80)).add(periods)
    assert history.plot(ax) is ax
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == [
        "usual range",
        "training rows 4.0%",
        "changed",
        "a group changed",
        "new rows, exact range (90%)",
    ]
    reference, shares, alarm, group_alarm = ax.get_lines()
    assert reference.get_ydata() == [0.04, 0.04]
    np.testing.assert_allclose(shares.get_ydata(), [count.share for count in counts])
    assert (alarm.get_xdata().tolist(), list(group_alarm.get_xdata())) == ([3], [3])
    (ends,) = (c for c in ax.collections if hasattr(c, "get_segments"))
    drawn = [segment[:, 1] for segment in ends.get_segments()]
    np.testing.assert_allclose(drawn, [count.interval() for count in counts])
    (band,) = (c for c in ax.collections if not hasattr(c, "get_segments"))
    corners = band.get_paths()[0].vertices
    for place, (low, high) in enumerate(history.usual_ranges):
        heights = corners[np.isclose(corners[:, 0], place - 0.5), 1]
        assert {round(low, 9), round(high, 9)} <= set(heights.round(9).tolist())
    assert ax.get_xticklabels()[0].get_text() == r"\$day_0"


def test_the_plot_of_a_history_marks_the_places_of_a_change_and_leaves_out_empty_periods(ax):
    beyond = [20] * 35 + [70] * 14 + [20] * 12
    periods = [Period(f"{t}", Count(500, k)) for t, k in enumerate(beyond)]
    history = History("", Count(2000, 80)).add([Period("empty", Count(0, 0)), *periods])
    history.plot(ax)
    changed = ax.get_lines()[2]
    assert changed.get_label() == "changed"
    assert list(changed.get_xdata()) == list(range(36, 50))


def test_a_figure_is_made_if_none_is_given():
    import matplotlib.pyplot as plt

    posterior = GammaPosterior(0.2, BetaMixture(*np.array([[0.8], [5.0], [95.0]])))
    made = posterior.plot()
    assert "share of anomalies" in made.get_xlabel()
    plt.close(made.figure)


@pytest.fixture(scope="module")
def labelled():
    data = make_contaminated(400, 3, 0.1, "global", random_state=0)
    estimator = GammaGMM(["KNN", "HBOS"], n_runs=1, random_state=0).fit(data.X)
    rows = estimator.suggest(60, random_state=0)
    estimator.update(rows, data.y[rows])
    return estimator


def test_a_ranking_shows_the_scores_the_cut_and_where_it_can_be(labelled, ax):
    fit = labelled.fit_
    assert fit.plot(ax) is ax
    end = ax.get_xlim()[1]
    flagged, others = (patch for patch in ax.patches if hasattr(patch, "get_data"))
    scores = -np.sort(-fit.decision_scores)
    values, edges, _ = flagged.get_data()
    np.testing.assert_array_equal(values, scores[: fit.n_flagged])
    np.testing.assert_allclose(edges, np.arange(fit.n_flagged + 1) / 400)
    assert others.get_data().edges[[0, -1]] == pytest.approx([fit.n_flagged / 400, end])
    (cut,) = (line for line in ax.get_lines() if line.get_linestyle() != "None")
    assert cut.get_xdata()[0] == fit.posterior.mean
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    low, high = fit.posterior.interval()
    assert f"{low:.1%} to {high:.1%}: 90% interval" in labels
    assert f"{fit.n_flagged} rows flagged" in labels
    known = fit.known_rows
    marks = {line.get_label(): line.get_ydata() for line in ax.get_lines()}
    places = np.searchsorted(-scores, -fit.decision_scores[known.rows]) / 400
    for label, name in ((0, "known normal"), (1, "known anomaly")):
        chosen = (known.labels == label) & (places < end)
        expected = fit.decision_scores[known.rows[chosen]]
        np.testing.assert_array_equal(np.sort(marks[name]), np.sort(expected))


def test_labels_show_what_is_found_in_the_order_of_the_ranking(labelled, ax):
    rows = labelled.labelled_rows_
    assert rows.plot(ax) is ax
    found = ax.get_lines()[0].get_ydata()
    known = rows.known_rows
    order = sorted(range(60), key=lambda i: -rows.honest_scores[known.rows[i]])
    np.testing.assert_array_equal(found, [0, *np.cumsum(known.labels[order])])
    assert found[-1] == known.labels.sum() > 0
    assert f"{rows.left.n_found} found" in ax.get_title("left")


def test_ticks_are_not_rounded(ax):
    posterior = GammaPosterior(0.0, BetaMixture(*np.array([[1.0], [5.0], [45.0]])))
    posterior.plot(ax)
    ax.set_xticks([0.05, 0.125, 0.175])
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["5%", "12.5%", "17.5%"]


def test_groups_show_the_flagged_rows_with_their_intervals(labelled, ax):
    names = np.array(["$a", "_b", "c"])[np.arange(400) % 3]
    groups = labelled.labelled_rows_.by_group(names)
    assert groups.plot(ax) is ax
    (bars,) = (c for c in ax.collections if hasattr(c, "get_segments"))
    drawn = [segment[:, 0] for segment in bars.get_segments()]
    expected = [(each.low_flagged, each.high_flagged) for each in groups]
    np.testing.assert_allclose(drawn, expected)
    assert [tick.get_text() for tick in ax.get_yticklabels()] == [r"\$a", " _b", "c"]


GOLDEN = Path(__file__).parents[1] / "golden"
TWO_HUMPS = GammaPosterior(
    0.05, BetaMixture(*np.array([[0.5, 0.45], [20.0, 90.0], [980.0, 910.0]]))
)
NARROW = GammaPosterior(0.01, BetaMixture(*np.array([[0.99], [50.0], [950.0]])))
PICTURES = {
    "posterior": lambda ax: plot_posterior(TWO_HUMPS, ax),
    "comparison": lambda ax: plot_comparison([("A", TWO_HUMPS), ("B", NARROW)], ax),
}


def draw(name, path):
    figure = Figure(figsize=(5.0, 3.5), layout="constrained")
    drawn = figure.subplots()
    assert PICTURES[name](drawn) is drawn
    figure.savefig(path, dpi=60, metadata={"Software": None})


@pytest.mark.skipif(
    matplotlib.__version_info__ < (3, 11),
    reason="drawn by Matplotlib 3.11, whose text differs in size from older versions",
)
@pytest.mark.parametrize("name", PICTURES)
def test_the_picture_equals_the_stored_one(name, tmp_path):
    draw(name, tmp_path / "new.png")
    # Root mean square of the differences of grey values up to 255; fonts differ by less.
    assert compare_images(GOLDEN / f"{name}.png", str(tmp_path / "new.png"), tol=3.0) is None


if __name__ == "__main__":  # python -m tests.report.test_plots redraws the stored pictures
    for picture in PICTURES:
        draw(picture, GOLDEN / f"{picture}.png")
