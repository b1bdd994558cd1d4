import numpy as np
import pytest
from matplotlib.figure import Figure

from gammagmm.betas import BetaMixture
from gammagmm.plots import plot_posterior
from gammagmm.posterior import GammaPosterior


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


def test_the_degenerate_posterior_is_drawn_as_its_atom_alone(ax):
    plot_posterior(GammaPosterior.degenerate(), ax)
    assert len(ax.collections) == 0
    assert "P(no anomalies) = 100.0%" in [t.get_text() for t in ax.get_legend().get_texts()]


def test_a_figure_is_made_where_none_is_given():
    import matplotlib.pyplot as plt

    posterior = GammaPosterior(0.2, BetaMixture(*np.array([[0.8], [5.0], [95.0]])))
    made = posterior.plot()
    assert made.get_xlabel().startswith("contamination factor")
    plt.close(made.figure)
