from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.testing.compare import compare_images

from gammagmm import GammaGMM, History
from gammagmm.errors import NoSolutionWarning
from gammagmm.monitoring.counts import Count, Period
from gammagmm.posterior.betas import BetaMixture
from gammagmm.posterior.gamma_posterior import GammaPosterior
from gammagmm.report.plots import plot_comparison, plot_posterior, plot_steps
from tests.support.solved_scores import SOLVED, grouped_scores, has_content


@pytest.fixture
def ax():
    return Figure().subplots()


def test_the_picture_shows_density_interval_mean_and_atom(ax):
    posterior = GammaPosterior(0.2, BetaMixture(*np.array([[0.8], [5.0], [95.0]])))
    assert posterior.plot(ax) is ax
    curve, mean, stem, _ = ax.get_lines()
    x, y = curve.get_data()
    np.testing.assert_allclose(y, posterior.pdf(x))
    assert np.trapezoid(y, x) == pytest.approx(0.8, abs=2e-3)
    assert mean.get_xdata()[0] == posterior.mean
    assert stem.get_ydata()[1] == 0.2
    (shade,) = ax.collections
    shaded = shade.get_paths()[0].vertices[:, 0]
    np.testing.assert_allclose([shaded.min(), shaded.max()], posterior.interval())
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["90 % interval", "mean 4.0%", "P(no anomalies) = 20.0%"]


def test_the_degenerate_posterior_is_drawn_as_an_atom_only(ax):
    plot_posterior(GammaPosterior.degenerate(), ax)
    assert len(ax.collections) == 0
    assert "P(no anomalies) = 100.0%" in [t.get_text() for t in ax.get_legend().get_texts()]


def test_a_history_shows_shares_intervals_the_reference_and_alarms(ax):
    counts = [Count(500, k) for k in (20, 18, 22, 60)]
    quiet = [{"a": Count(250, 10)}] * 3
    groups = [*quiet, {"a": Count(250, 40)}]
    periods = [Period(f"$day_{t}", *own) for t, own in enumerate(zip(counts, groups, strict=True))]
    history = History("", Count(2000, 80)).add(periods)
    assert history.plot(ax) is ax
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    expected = ["training rows 4.0%", "alarm", "alarm in a group", "new rows, 90 % interval"]
    assert labels == expected
    reference, shares, alarm, group_alarm = ax.get_lines()
    assert reference.get_ydata() == [0.04, 0.04]
    np.testing.assert_allclose(shares.get_ydata(), [count.share for count in counts])
    assert (alarm.get_xdata().tolist(), list(group_alarm.get_xdata())) == ([3], [3])
    (ends,) = (c for c in ax.collections if hasattr(c, "get_segments"))
    drawn = [segment[:, 1] for segment in ends.get_segments()]
    np.testing.assert_allclose(drawn, [count.interval() for count in counts])
    assert ax.get_xticklabels()[0].get_text() == r"\$day_0"


def test_a_figure_is_made_if_none_is_given():
    import matplotlib.pyplot as plt

    posterior = GammaPosterior(0.2, BetaMixture(*np.array([[0.8], [5.0], [95.0]])))
    made = posterior.plot()
    assert made.get_xlabel().startswith("contamination factor")
    plt.close(made.figure)


@pytest.fixture(scope="module")
def fitted():
    scores = grouped_scores(np.random.default_rng(0))
    fitted = GammaGMM("precomputed", **SOLVED, random_state=0).fit(scores).fit_
    assert has_content(fitted.runs)
    return fitted


@pytest.fixture
def panels():
    return Figure().subplots(2, 2)


def test_the_four_steps_are_those_of_the_first_solved_run(fitted, panels):
    raw, space, pmf, posterior = plot_steps(fitted, panels)
    assert [raw, space, pmf, posterior] == list(panels.ravel())
    (points,) = raw.collections
    np.testing.assert_array_equal(points.get_offsets(), fitted.scores[:, :2])
    assert (raw.get_xlabel(), raw.get_ylabel()) == ("score_1, raw", "score_2, raw")
    points, _ = space.collections
    np.testing.assert_array_equal(points.get_offsets(), fitted.score_space[:, :2])
    run = next(run for run in fitted.runs if run.status != "unsolved")
    expected = np.append(0.01, 0.99 * run.weights)
    heights = np.array([bar.get_height() for bar in pmf.patches])
    np.testing.assert_allclose(heights, expected[: len(heights)], rtol=1e-12)
    assert heights.sum() > 0.98
    assert posterior.get_lines()[1].get_xdata()[0] == fitted.posterior.mean


def test_an_ellipse_is_one_deviation_wide_and_has_the_colour_of_its_probability(fitted, panels):
    ellipses = plot_steps(fitted, panels)[1].collections[1]
    run = next(run for run in fitted.runs if run.status != "unsolved")
    n_candidates, components = len(run.weights), run.components
    p_anomalous = [0.99 * run.weights[k:].sum() for k in range(n_candidates)]
    # The likely anomalies are drawn last, and component 1 is the likeliest.
    np.testing.assert_allclose(ellipses.get_array()[-n_candidates:], p_anomalous[::-1], rtol=1e-12)
    assert (ellipses.get_array()[:-n_candidates] == 0.0).all()
    assert ellipses.get_array()[-1] == pytest.approx(0.99)
    assert ellipses.get_clim() == (0.0, 1.0)
    np.testing.assert_array_equal(ellipses.get_offsets()[-1], components.means[0, :2])
    turn = np.radians(ellipses.get_angles()[-1])
    axes = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    half = np.array([ellipses.get_widths()[-1], ellipses.get_heights()[-1]]) / 2.0
    covariance = axes @ np.diag(half**2) @ axes.T
    np.testing.assert_allclose(covariance, components.covariances[0, :2, :2], rtol=1e-9)


def test_without_a_solution_no_component_is_anomalous(panels):
    scores = np.exp(np.random.default_rng(0).normal(size=(60, 1)))
    estimator = GammaGMM("precomputed", n_runs=2, max_restarts=0, random_state=0)
    with pytest.warns(NoSolutionWarning):
        estimator.fit(scores)
    raw, space, pmf, posterior = plot_steps(estimator.fit_, panels)
    # A single detector is drawn against itself.
    assert (raw.get_xlabel(), raw.get_ylabel()) == ("score_1, raw", "score_1, raw")
    assert (space.collections[1].get_array() == 0.0).all()
    assert [bar.get_height() for bar in pmf.patches] == [1.0]
    assert posterior.get_lines()[0].get_xdata()[0] == 0.0


def test_the_steps_make_their_own_figure_and_refuse_other_numbers_of_axes(fitted):
    import matplotlib.pyplot as plt

    axes = plot_steps(fitted)
    assert [ax.get_title(loc="left")[0] for ax in axes] == ["1", "2", "3", "4"]
    plt.close(axes[0].figure)
    with pytest.raises(ValueError, match="axes must contain four axes, got 3"):
        plot_steps(fitted, Figure().subplots(1, 3))


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
